#include "targets/cpu/host_compiler.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "support/error.h"
#include "support/files.h"
#include "support/fork_locks.h"

namespace cxxinductor::targets {
namespace {

constexpr size_t kMostQuotedOutput = 4000;
constexpr std::chrono::seconds kProbeTimeout{20};

// The file behind links, with what changes when it is replaced; empty when there is none.
std::string describe_file(const std::string& path) {
  const std::string resolved = resolved_path(path);
  struct stat info {};
  if (resolved.empty() || ::stat(resolved.c_str(), &info) != 0) return {};
  return fmt::format("{} {} bytes {}.{}", resolved, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

ProcessLimits probe_limits(const ProcessLimits& limits) {
  return {std::min<std::chrono::milliseconds>(limits.timeout, kProbeTimeout), limits.interrupted};
}

// The program that a driver or wrapper runs to compile: cc1plus of GCC, clang of Clang. Empty when it does not say.
std::string compiler_proper(const std::string& driver, const std::string& temporary_folder, const ProcessLimits& limits) {
  for (const char* program : {"cc1plus", "clang"}) {
    const ProcessResult result =
        run_process(driver, {fmt::format("-print-prog-name={}", program)}, temporary_folder, limits);
    if (result.exit_code != 0 || !result.output.starts_with('/')) continue;
    if (std::string file = describe_file(result.output.substr(0, result.output.find('\n'))); !file.empty()) return file;
  }
  return {};
}

}  // namespace

HostCompiler::Found HostCompiler::find(const ProcessLimits& limits) const {
  std::vector<std::string> candidates{config_.path};
  if (config_.path.empty()) candidates = {"c++", "g++", "clang++"};
  const ProcessLimits probe = probe_limits(limits);
  for (const std::string& candidate : candidates) {
    const std::string path = find_program(candidate);
    if (path.empty()) continue;
    const ProcessResult result = run_process(path, {"--version"}, config_.temporary_folder, probe);
    if (result.exit_code != 0 || result.output.empty()) continue;
    const std::string file = describe_file(path);
    return {path, file,
            fmt::format("{}\n{}\n{}\n{}", path, file, result.output,
                        compiler_proper(path, config_.temporary_folder, probe))};
  }
  if (config_.path.empty()) throw_user_error("no host compiler: none of c++, g++, clang++ can be run; install g++ or clang++");
  throw_user_error("no host compiler: '{}' cannot be run; install g++ or clang++, or name another", config_.path);
}

HostCompiler::Found HostCompiler::current(const ProcessLimits& limits) {
  Found found = [this] {
    const ForkGuard guard(ForkLock::Leaf);
    return found_;
  }();
  if (!found.path.empty() && describe_file(found.path) == found.file) return found;
  // Without the lock, which must not be held while a process runs. Two threads that get here find the same.
  found = find(limits);
  const ForkGuard guard(ForkLock::Leaf);
  return found_ = std::move(found);
}

std::string HostCompiler::identity(const ProcessLimits& limits) { return current(limits).description; }

std::string HostCompiler::compile(std::string_view source, const std::vector<std::string>& flags, std::string_view what,
                                  const ProcessLimits& limits) {
  const std::string path = current(limits).path;
  const PrivateFolder folder(config_.temporary_folder);
  if (folder.path().empty())
    throw_user_error("no temporary folder under '{}': {}; name another one", config_.temporary_folder,
                     std::strerror(errno));
  const std::string input = join_path(folder.path(), "unit.cpp"), output = join_path(folder.path(), "unit.so");
  {
    std::ofstream file(input, std::ios::binary);
    file.write(source.data(), static_cast<std::streamsize>(source.size()));
    file.close();
    if (!file) throw_user_error("cannot write to the temporary folder '{}'", config_.temporary_folder);
  }
  std::vector<std::string> arguments = flags;
  arguments.insert(arguments.end(), {"-o", output, input, "-lm"});
  // Its own temporary files go with the folder, even when it is killed.
  const ProcessResult result = run_process(path, arguments, folder.path(), limits);
  if (result.timed_out)
    throw_user_error(
        "{} was stopped: it had not compiled {} after {} s; raise the option compile_timeout if the machine is slow", path,
        what, std::chrono::duration<double>(limits.timeout).count());
  if (result.exit_code != 0)
    throw_internal("{} did not compile {} (exit code {}): {}", path, what, result.exit_code,
                   result.output.substr(0, kMostQuotedOutput));
  std::ifstream file(output, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!file) throw_internal("{} left no object for {}: {}", path, what, result.output.substr(0, kMostQuotedOutput));
  return std::move(bytes).str();
}

}  // namespace cxxinductor::targets

#include "targets/cpu/host_compiler.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "runtime/disk_cache.h"
#include "support/error.h"
#include "support/files.h"
#include "support/fork_locks.h"
#include "support/utf8.h"

namespace cxxinductor::targets {
namespace {

constexpr size_t kMostQuotedOutput = 4000;
constexpr std::chrono::seconds kProbeTimeout{20};

ProcessLimits probe_limits(const ProcessLimits& limits) { return {std::min<std::chrono::milliseconds>(limits.timeout, kProbeTimeout), limits.interrupted}; }

// The program that a driver or wrapper runs to compile: cc1plus of GCC, clang of Clang. Empty when it does not say.
std::string compiler_proper(const std::string& driver, const std::string& temporary_folder, const ProcessLimits& limits) {
  for (const char* program : {"cc1plus", "clang"}) {
    const ProcessResult result = run_process(driver, {fmt::format("-print-prog-name={}", program)}, temporary_folder, limits);
    if (result.exit_code != 0 || !result.output.starts_with('/')) continue;
    if (std::string path = result.output.substr(0, result.output.find('\n')); !describe_file(path).empty()) return path;
  }
  return {};
}

// Whether the program is a driver of GCC or Clang itself, by its format and its name behind links. Scripts, and programs as ccache, choose a
// compiler by what this library does not know.
bool is_driver(const std::string& path) {
  const std::string resolved = resolved_path(path);
  const std::string name = resolved.substr(resolved.rfind('/') + 1);
  const auto contains = [&name](const char* part) { return name.find(part) != std::string::npos; };
  if (!contains("g++") && !contains("c++") && !contains("clang")) return false;
  const Descriptor file(::open(resolved.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  std::array<char, 4> magic{};
  return file.open() && read_exactly(file.get(), magic.data(), magic.size()) && std::memcmp(magic.data(), "\177ELF", magic.size()) == 0;
}

// With what drivers choose the compiler proper by.
std::string memory_key(const std::string& path, const std::string& file) {
  std::string key = fmt::format("host compiler\n{}\n{}", path, file);
  for (const char* variable : {"PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "CCC_OVERRIDE_OPTIONS", "LD_LIBRARY_PATH", "LD_PRELOAD"}) {
    const char* value = std::getenv(variable);
    key += fmt::format("\n{}{}{}", variable, value ? "=" : "", value ? value : "");
  }
  return key;
}

std::string describe_compiler(const std::string& path, const std::string& file, const std::string& version, const std::string& proper_file) {
  return fmt::format("{}\n{}\n{}\n{}", path, file, version, proper_file);
}

}  // namespace

std::vector<std::string> HostCompiler::candidates() const {
  return config_.path.empty() ? std::vector<std::string>{"c++", "g++", "clang++"} : std::vector<std::string>{config_.path};
}

HostCompiler::Found HostCompiler::find(const ProcessLimits& limits) const {
  const ProcessLimits probe = probe_limits(limits);
  for (const std::string& candidate : candidates()) {
    const std::string path = find_program(candidate);
    if (path.empty()) continue;
    const ProcessResult result = run_process(path, {"--version"}, config_.temporary_folder, probe);
    if (result.exit_code != 0 || result.output.empty()) continue;
    const std::string file = describe_file(path), proper = compiler_proper(path, config_.temporary_folder, probe);
    return {path, file, result.output, proper, describe_compiler(path, file, result.output, describe_file(proper))};
  }
  if (config_.path.empty()) throw_user_error("no host compiler: none of c++, g++, clang++ can be run; install g++ or clang++");
  throw_user_error("no host compiler: '{}' cannot be run; install g++ or clang++, or name another", config_.path);
}

// An entry has the path of the compiler proper, its description, and what the driver calls itself.
void HostCompiler::remember(const Found& found, runtime::DiskCache& cache) {
  if (found.proper.empty() || !is_driver(found.path)) return;
  cache.put(memory_key(found.path, found.file), fmt::format("{}\n{}\n{}", found.proper, describe_file(found.proper), found.version));
}

// Of the first candidate that is there. If it does not run, nobody has remembered it.
std::optional<HostCompiler::Found> HostCompiler::recall(runtime::DiskCache& cache) const {
  for (const std::string& candidate : candidates()) {
    const std::string path = find_program(candidate);
    if (path.empty()) continue;
    if (!is_driver(path)) return std::nullopt;
    const std::string file = describe_file(path);
    const auto entry = cache.get(memory_key(path, file));
    if (!entry) return std::nullopt;
    const std::string text(reinterpret_cast<const char*>(entry->data()), entry->size());
    const size_t end = text.find('\n'), next = end == std::string::npos ? end : text.find('\n', end + 1);
    if (next == std::string::npos) return std::nullopt;
    const std::string proper = text.substr(0, end), proper_file = text.substr(end + 1, next - end - 1), version = text.substr(next + 1);
    if (proper_file.empty() || describe_file(proper) != proper_file) return std::nullopt;  // another compiler behind the same driver
    return Found{path, file, version, proper, describe_compiler(path, file, version, proper_file)};
  }
  return std::nullopt;
}

HostCompiler::Found HostCompiler::current(const ProcessLimits& limits, runtime::DiskCache* cache) {
  Found found = [this] {
    const ForkGuard guard(ForkLock::Leaf);
    return found_;
  }();
  if (!found.path.empty() && describe_file(found.path) == found.file) return found;
  // Without the lock, which must not be held while a process runs. Two threads that get here find the same.
  if (std::optional<Found> recalled = cache ? recall(*cache) : std::nullopt) {
    found = std::move(*recalled);
  } else {
    found = find(limits);
    if (cache) remember(found, *cache);
  }
  const ForkGuard guard(ForkLock::Leaf);
  return found_ = std::move(found);
}

std::string HostCompiler::identity(const ProcessLimits& limits, runtime::DiskCache* cache) { return current(limits, cache).description; }

std::string HostCompiler::compile(std::string_view source, const std::vector<std::string>& flags, std::string_view what, const ProcessLimits& limits) {
  const std::string path = current(limits, nullptr).path;
  const PrivateFolder folder(config_.temporary_folder);
  if (folder.path().empty()) throw_user_error("no temporary folder under '{}': {}; name another one", config_.temporary_folder, std::strerror(errno));
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
    throw_user_error("{} was stopped: it had not compiled {} after {} s; raise the option compile_timeout if the machine is slow", path, what,
                     std::chrono::duration<double>(limits.timeout).count());
  if (result.exit_code != 0)
    throw_internal("{} did not compile {} (exit code {}): {}", path, what, result.exit_code, as_utf8(result.output.substr(0, kMostQuotedOutput)));
  std::ifstream file(output, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!file) throw_internal("{} left no object for {}: {}", path, what, as_utf8(result.output.substr(0, kMostQuotedOutput)));
  return std::move(bytes).str();
}

}  // namespace cxxinductor::targets

#include "runtime/cpu/host_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/error.h"

extern char** environ;

namespace cxxinductor::runtime {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr size_t kMostQuotedOutput = 4000;

// A folder of our own, removed with what is in it.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& parent) : path_(parent + "/cxxinductor-XXXXXX") {
    if (!::mkdtemp(path_.data())) {
      throw_user_error("no temporary folder under '{}': {}; name another one", parent, std::strerror(errno));
    }
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_all(int descriptor) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(descriptor, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    if (text.size() < kMostOutput) text.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) return {-1, std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  ProcessResult result;
  if (failed != 0) {
    result.output = std::strerror(failed);
  } else {
    result.output = read_all(pipe_ends[0]);
    int status = 0;
    pid_t waited;
    do {
      waited = ::waitpid(child, &status, 0);
    } while (waited < 0 && errno == EINTR);
    if (waited == child && WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  }
  ::close(pipe_ends[0]);
  return result;
}

void HostCompiler::find() {
  std::vector<std::string> candidates{config_.path};
  if (config_.path.empty()) candidates = {"c++", "g++", "clang++"};
  for (const std::string& candidate : candidates) {
    const ProcessResult result = run_process({candidate, "--version"});
    if (result.exit_code != 0 || result.output.empty()) continue;
    path_ = candidate;
    version_ = result.output.substr(0, result.output.find('\n'));
    return;
  }
  missing_ = fmt::format("no host compiler: {} cannot be run; install g++ or clang++, or name a compiler",
                         config_.path.empty() ? "none of c++, g++, clang++" : "'" + config_.path + "'");
}

const std::string& HostCompiler::version() {
  std::call_once(found_, [this] { find(); });
  if (path_.empty()) throw UserError(missing_);
  return version_;
}

std::string HostCompiler::compile(std::string_view source, const std::vector<std::string>& flags,
                                  std::string_view what) {
  version();
  const PrivateFolder folder(config_.temporary_folder);
  const std::string input = folder.path() + "/unit.cpp", output = folder.path() + "/unit.so";
  {
    std::ofstream file(input, std::ios::binary);
    file.write(source.data(), static_cast<std::streamsize>(source.size()));
    file.close();
    if (!file) throw_user_error("cannot write to the temporary folder '{}'", config_.temporary_folder);
  }
  std::vector<std::string> command{path_};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", output, input, "-lm"});
  const ProcessResult result = run_process(command);
  if (result.exit_code != 0) {
    throw_internal("{} did not compile {} (exit code {}): {}", path_, what, result.exit_code,
                   result.output.substr(0, kMostQuotedOutput));
  }
  std::ifstream file(output, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  if (!file) throw_internal("{} left no object for {}", path_, what);
  return std::move(bytes).str();
}

}  // namespace cxxinductor::runtime

#include "targets/cpu/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "support/files.h"

extern char** environ;

namespace cxxinductor::targets {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = size_t{1} << 20;
constexpr int kLongestPoll = 20;  // milliseconds

// Runs "$@" without the pipe, then writes its exit code to it.
constexpr const char* kShell = "/bin/sh";
constexpr const char* kSupervise = "\"$@\" 3>&-; printf '%s\\n' $? >&3";
constexpr int kStatusDescriptor = 3;  // in the shell
constexpr int kFirstFree = 10;        // our descriptors are beyond those that the child replaces

struct Pipe {
  Descriptor read, write;
  bool open() const { return read.open() && write.open(); }
};

// Reading does not block.
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const Descriptor read(ends[0]), write(ends[1]);
  Pipe pipe{Descriptor(::fcntl(read.get(), F_DUPFD_CLOEXEC, kFirstFree)), Descriptor(::fcntl(write.get(), F_DUPFD_CLOEXEC, kFirstFree))};
  if (pipe.open()) ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  return pipe;
}

std::vector<std::string> environment_with(const std::string& temporary_folder) {
  std::vector<std::string> all;
  for (char** entry = environ; entry && *entry; ++entry)
    if (!std::string_view(*entry).starts_with("TMPDIR=")) all.emplace_back(*entry);
  all.push_back("TMPDIR=" + temporary_folder);
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// Reads what is there. False when the other end is closed everywhere.
bool read_available(int pipe, std::string& text) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    if (text.size() < kMostOutput) text.append(buffer.data(), static_cast<size_t>(n));
  }
}

// An error number; 0 when the process has started.
int start_process(const std::vector<char*>& arguments, const std::vector<char*>& environment, const Pipe& output, const Pipe& status, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, output.write.get(), 2);
  ::posix_spawn_file_actions_adddup2(&actions, status.write.get(), kStatusDescriptor);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  // Signals that are ignored or blocked here must not be so there: the compiler waits for children of its own.
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const int error = ::posix_spawn(&child, kShell, &actions, &attributes, arguments.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

void reap(pid_t child) {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// The group is killed before its leader is reaped: until then its number is not reused.
void kill_group(pid_t leader) {
  ::kill(-leader, SIGKILL);
  reap(leader);
}

// Until the process ends, its time is over or the check says so.
void await_end(pid_t child, int output, int status, const ProcessLimits& limits, ProcessResult& result) {
  const Clock::time_point deadline = Clock::now() + limits.timeout;
  bool output_open = true, reaped = false;
  std::string code;
  for (int wait = 1;; wait = std::min(2 * wait, kLongestPoll)) {
    std::array<pollfd, 2> ready{pollfd{output_open ? output : -1, POLLIN, 0}, pollfd{status, POLLIN, 0}};
    ::poll(ready.data(), ready.size(), wait);
    bool ended = !read_available(status, code) || code.ends_with('\n');
    if (!ended && ::waitpid(child, nullptr, WNOHANG) != 0) {
      // The shell was killed, or somebody else has reaped it; what it started may hold its end of the pipe.
      read_available(status, code);
      ended = reaped = true;
    }
    if (output_open) output_open = read_available(output, result.output);
    if (ended) {
      if (!reaped) reap(child);
      int number = -1;
      std::from_chars(code.data(), code.data() + code.size(), number);
      result.exit_code = number < 128 ? number : -1;  // the shell's way to say that a signal ended it
      return;
    }
    bool stop = true;
    try {
      stop = limits.interrupted && limits.interrupted();
    } catch (...) {
      kill_group(child);
      throw;
    }
    if (!stop && Clock::now() < deadline) continue;
    kill_group(child);
    if (stop) throw Interrupted();
    result.timed_out = true;
    return;
  }
}

}  // namespace

ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments, const std::string& temporary_folder,
                          const ProcessLimits& limits) {
  std::vector<std::string> argument_texts{kShell, "-c", kSupervise, kShell, program};
  argument_texts.insert(argument_texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment_texts = environment_with(temporary_folder);
  Pipe output = make_pipe(), status = make_pipe();
  if (!output.open() || !status.open()) return {-1, false, std::strerror(errno)};
  pid_t child = -1;
  if (const int error = start_process(pointers_to(argument_texts), pointers_to(environment_texts), output, status, child))
    return {-1, false, std::strerror(error)};
  output.write.close();
  status.write.close();
  ProcessResult result;
  await_end(child, output.read.get(), status.read.get(), limits, result);
  return result;
}

std::string find_program(const std::string& name) {
  const auto may_run = [](const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return may_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const std::string_view folder = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    // An empty or relative folder depends on where the process stands: what is there is not trusted to be a compiler.
    if (!folder.starts_with('/')) continue;
    if (std::string found = join_path(folder, name); may_run(found)) return found;
  }
  return {};
}

}  // namespace cxxinductor::targets

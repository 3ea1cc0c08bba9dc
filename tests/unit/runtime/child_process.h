// Tests of what ends with a process: limits, rights, forks.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace cxxinductor::runtime {

// The number that `body` returns in a process of its own; -1 when a signal ended it.
inline int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 99;
    try {
      result = body();
    } catch (...) {
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace cxxinductor::runtime

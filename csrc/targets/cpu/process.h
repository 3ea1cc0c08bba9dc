// Child processes in a process group of their own, with a deadline.
//
// Exit codes arrive even if the program ignores SIGCHLD or handles it by waiting for any child: the process is the child of a
// shell that does nothing but wait for it and write its exit code to a pipe. The shell interprets no text: program and arguments
// are its positional parameters. The end of the process counts, not the end of its output, which a daemon that it left may hold
// open. When it is stopped, its whole group is killed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "support/interrupt.h"

namespace cxxinductor::targets {

struct ProcessLimits {
  std::chrono::milliseconds timeout{300'000};
  InterruptCheck interrupted;
};

struct ProcessResult {
  int exit_code = -1;      // 126, 127: it did not start; -1: nor did the shell, or a signal ended it
  bool timed_out = false;  // and was killed
  std::string output;      // standard output and error, the first megabyte; why it did not start
};

// program: a path. arguments: without the program's name. Standard input is empty; temporary_folder becomes its TMPDIR.
// Throws Interrupted, the group killed, when the limits' check says so.
ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments, const std::string& temporary_folder,
                          const ProcessLimits& limits);

// The path of a program: its name in the folders of PATH, or the name itself where it has a slash. Empty when there is none
// that may be executed.
std::string find_program(const std::string& name);

}  // namespace cxxinductor::targets

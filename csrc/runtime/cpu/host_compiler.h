// The C++ compiler of the machine, run as a child process without a shell. One source text in, the bytes of a shared
// object out; files live in a private folder for the time of the call.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor::runtime {

struct HostCompilerConfig {
  std::string path;  // empty: the first of c++, g++, clang++ that runs
  std::string temporary_folder = "/tmp";
};

struct ProcessResult {
  int exit_code = -1;  // -1: it did not start, or a signal ended it
  std::string output;  // standard output and error, the first megabyte
};
// arguments[0] is looked up in PATH when it has no slash. Standard input is empty.
ProcessResult run_process(const std::vector<std::string>& arguments);

class HostCompiler {
 public:
  explicit HostCompiler(HostCompilerConfig config) : config_(std::move(config)) {}
  // First line of --version: part of what makes two objects equal. UserError when there is no compiler.
  const std::string& version();
  // Flags without input and output files. InternalError with the compiler's messages when it refuses the source: the
  // source is ours. `what` names the unit in messages.
  const std::string& temporary_folder() const { return config_.temporary_folder; }
  std::string compile(std::string_view source, const std::vector<std::string>& flags, std::string_view what);

 private:
  void find();

  HostCompilerConfig config_;
  std::once_flag found_;
  std::string path_, version_, missing_;
};

}  // namespace cxxinductor::runtime

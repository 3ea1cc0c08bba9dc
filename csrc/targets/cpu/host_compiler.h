// The C++ compiler of the machine, run as a child process. One source text in, the bytes of a shared object out; files live in
// a private folder for the time of the call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "targets/cpu/process.h"

namespace cxxinductor::runtime {
class DiskCache;
}

namespace cxxinductor::targets {

struct HostCompilerConfig {
  std::string path;  // empty: the first of c++, g++, clang++ that runs
  std::string temporary_folder = "/tmp";
};

class HostCompiler {
 public:
  explicit HostCompiler(HostCompilerConfig config) : config_(std::move(config)) {}

  // What makes two objects equal: the file that is run (a wrapper, say), what it calls itself, and the compiler proper behind
  // it, each file with its size and time of change. Looked for again while there is none, and when the file has changed.
  // cache: remembers it for processes that compile nothing, which then run no compiler to find out what it is; null: none. Wrappers, which
  // choose by what this library does not know, are asked in every process.
  // UserError when there is no compiler.
  std::string identity(const ProcessLimits& limits = {}, runtime::DiskCache* cache = nullptr);

  const std::string& temporary_folder() const { return config_.temporary_folder; }
  // flags: without input and output files. InternalError with the compiler's messages if it rejects the source,
  // which is generated. UserError after the deadline. `what` names the unit in messages.
  std::string compile(std::string_view source, const std::vector<std::string>& flags, std::string_view what, const ProcessLimits& limits = {});

 private:
  struct Found {
    std::string path, file;       // file: describe_file of what lies behind the path
    std::string version, proper;  // what it calls itself; the path of the compiler proper, which may be empty
    std::string description;
  };
  std::vector<std::string> candidates() const;
  Found find(const ProcessLimits& limits) const;
  std::optional<Found> recall(runtime::DiskCache& cache) const;
  static void remember(const Found& found, runtime::DiskCache& cache);
  Found current(const ProcessLimits& limits, runtime::DiskCache* cache);

  HostCompilerConfig config_;
  Found found_;  // guarded by ForkLock::Leaf; an empty path before one was found
};

}  // namespace cxxinductor::targets

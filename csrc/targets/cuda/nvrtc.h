// NVRTC: CUDA C++ text to machine code. Needs no GPU and no driver. Thread-safe: several compiles may run at once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/interrupt.h"

namespace cxxinductor::targets {

struct CubinResult {
  std::string cubin;
  std::string log;  // warnings, and what ptxas says when it was asked
};

class Nvrtc {
 public:
  // Opens the first of these libraries that opens (nvrtc_places.h). UserError, which lists them all, when none does.
  explicit Nvrtc(const std::vector<std::string>& candidates);
  ~Nvrtc();
  Nvrtc(const Nvrtc&) = delete;
  Nvrtc& operator=(const Nvrtc&) = delete;

  // "13.0": part of what makes two cubins equal.
  const std::string& version() const;
  const std::string& path() const;                // the candidate that opened
  static std::span<const char* const> options();  // those of every compile, --gpu-architecture excepted
  // arch: "sm_90a". InternalError with the log if the source, which is generated, does not compile. `what` names the unit.
  // Throws Interrupted when the check, asked from threads of NVRTC, says so (12.8 and later; earlier ones go on to the end).
  CubinResult compile_to_cubin(const std::string& source, const std::string& arch, const std::string& what, const std::vector<std::string>& more_options = {},
                               const InterruptCheck& interrupted = {}) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
  std::string version_;
};

}  // namespace cxxinductor::targets

// check=interp: compares each launch of a call with the interpreter's result for the same kernel on copies of the same memory.
// The first launch that differs ends the call with a KernelMismatch that names the kernel.
//
// The interpreter is slow, so of a large launch only the first and the last points of its outer variables are computed;
// a launch whose single row is too long is not checked, and a note says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "driver/kernel_check.h"
#include "interp/kernel_interp.h"
#include "support/options.h"

namespace cxxinductor::driver {

struct InterpLimits {
  int64_t points = int64_t{1} << 18;      // computed of one launch
  int64_t row_points = int64_t{1} << 22;  // of a row, which cannot be cut
};

// For one call.
class InterpCheck final : public KernelCheck {
 public:
  // note: takes a line about each launch that was not checked.
  InterpCheck(const Options& options, std::function<void(std::string)> note, InterpLimits limits = {});
  void before_step(const runtime::CallView& call, size_t step) override;
  void after_step(const runtime::CallView& call, size_t step) override;

 private:
  void check_launch(const runtime::CallView& call, size_t step, const plan::Launch& launch, const std::vector<interp::MemRef>& before);

  const Options options_;
  const std::function<void(std::string)> note_;
  const InterpLimits limits_;
  interp::Symbols symbols_;  // of the plan
  // For each launch of the step, one per parameter: the buffer, with its memory before the launch.
  std::vector<std::vector<interp::MemRef>> memrefs_;
};

}  // namespace cxxinductor::driver

// Shared by both modes of option check: tolerances of kernels, and the message that names a wrong one.
#pragma once

#include <string>

#include "interp/difference.h"
#include "ir/plan/plan.h"
#include "runtime/observer.h"
#include "support/options.h"

namespace cxxinductor::driver {

// Either mode, for one call.
class KernelCheck : public runtime::StepObserver {
 public:
  int64_t checked() const { return checked_; }  // launches of kernels so far that agreed with their reference

 protected:
  int64_t checked_ = 0;
};

// Magnitudes of a launch: interp::magnitude of the expected output and of its largest input, and the number of elements that one
// sum adds up (1: no sums). The error of a sum in another order is relative to its terms, which may be far larger than the
// result.
struct Scale {
  double output = 0, input = 0;
  int64_t summed = 1;
};
interp::Tolerance tolerance_for(const plan::Kernel& kernel, DType output, Scale scale, const Options& options);
// Elements of the longest sum of a kernel; symbols: those of the kernel.
int64_t longest_sum(const plan::Kernel& kernel, const interp::Symbols& symbols);
// The values of a kernel's symbols in a launch; symbols: those of the plan.
interp::Symbols launch_symbols(const plan::Plan& plan, const plan::Launch& launch, const interp::Symbols& symbols);
// For what torch itself computed twice (externs).
interp::Tolerance tolerance_for_extern(DType output, double output_magnitude, const Options& options);

// As describe() of ir/origin.h; "" for an unknown origin.
std::string describe_origin(const OriginTable& origins, OriginId origin);
// Several lines: which kernel (or extern call), what it computes and where in the model, the output, the worst element.
// check: "interp" or "eager"; reference: whose value `difference.expected` is.
std::string describe_mismatch(const plan::Plan& plan, size_t step, plan::BufferId output, const std::string& sizes, const interp::Difference& difference,
                              std::string_view check, std::string_view reference);

}  // namespace cxxinductor::driver

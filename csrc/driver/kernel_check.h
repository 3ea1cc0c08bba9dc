// What the check option's two modes share: how far a kernel may be from its reference, and how a wrong one is named.
#pragma once

#include <string>

#include "interp/difference.h"
#include "ir/plan/plan.h"
#include "support/options.h"

namespace cxxinductor::driver {

// What a launch computes with: interp::magnitude of the expected output and the largest of its inputs, and the number
// of elements that one sum adds up (1: nothing is summed). Sums in another order err by a part of what they add up,
// which may be far larger than the result.
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

// "aten.gelu.default (model.py:7, module h.0.mlp)"; "" for an unknown origin.
std::string describe_origin(const OriginTable& origins, OriginId origin);
// Several lines: which kernel (or extern call), what it computes and where in the model, the output, the worst element.
// check: "interp" or "eager"; reference: whose value `difference.expected` is.
std::string describe_mismatch(const plan::Plan& plan, size_t step, plan::BufferId output, const std::string& sizes,
                              const interp::Difference& difference, std::string_view check, std::string_view reference);

}  // namespace cxxinductor::driver

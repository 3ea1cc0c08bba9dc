// How far a tensor is from the expected one.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>

#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::cli {

struct Difference {
  double absolute = 0;  // largest |found - expected|
  // Largest |found - expected| / max(|expected|, root mean square of all expected): elements near zero are sums of larger terms.
  double relative = 0;
  std::string mismatch;  // not of numbers: dtype, sizes, device; then the others say nothing
};
// NaN equals NaN, and an infinity itself; beside anything else they are infinitely far.
Difference compare(const at::Tensor& expected, const at::Tensor& found);

// Whether a value is the expected one, tensors within the tolerance, or their dtype's. Prints a line.
bool agree(const std::string& name, const c10::IValue& expected, const c10::IValue& found, std::optional<double> tolerance);
// The last lines of `verify`.
void print_verdict(const torch_bridge::Counters& counters, bool all_agree);

// The largest relative difference that `verify` accepts of a dtype: 0 for integers and booleans.
double default_tolerance(c10::ScalarType dtype);

}  // namespace cxxinductor::cli

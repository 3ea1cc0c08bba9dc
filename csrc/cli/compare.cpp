#include "cli/compare.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <iostream>
#include <limits>

#include "cli/model_file.h"

namespace cxxinductor::cli {
namespace {

// Parts of complex numbers as elements of their own.
at::Tensor real_numbers(const at::Tensor& tensor) {
  const at::Tensor here = tensor.detach().to(at::kCPU);
  return (here.is_complex() ? at::view_as_real(here.resolve_conj()) : here).to(at::kDouble);
}

double largest(const at::Tensor& numbers) { return numbers.max().item<double>(); }

}  // namespace

Difference compare(const at::Tensor& expected, const at::Tensor& found) {
  if (expected.scalar_type() != found.scalar_type() || expected.sizes() != found.sizes() || expected.device() != found.device())
    return {0, 0, fmt::format("expected {}, found {}", value_text(expected), value_text(found))};
  if (expected.numel() == 0) return {};
  const at::Tensor a = real_numbers(expected), b = real_numbers(found);
  // Integers beyond 2^53 are equal or at least 1 apart, whatever their doubles are.
  const bool whole = at::isIntegralType(expected.scalar_type(), /*includeBool=*/true);
  const at::Tensor equal = whole ? expected.eq(found).to(at::kCPU) : a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor differences = at::where(equal, at::zeros({}, at::kDouble), (b - a).abs().nan_to_num(infinity, infinity).clamp_min(whole ? 1 : 0));
  const at::Tensor magnitudes = a.abs().nan_to_num(0, 0, 0), mean = magnitudes.square().mean().sqrt();
  // The smallest double stands for zero: a difference from nothing but zeros is infinite.
  const at::Tensor scale = at::maximum(magnitudes, mean).clamp_min(std::numeric_limits<double>::denorm_min());
  return {largest(differences), largest(at::where(equal, at::zeros({}, at::kDouble), differences / scale)), ""};
}

bool agree(const std::string& name, const c10::IValue& expected, const c10::IValue& found, std::optional<double> tolerance) {
  std::cout << "  " << name << ": " << value_text(expected) << ": ";
  if (!expected.isTensor() || !found.isTensor()) {
    const bool equal = expected.tagKind() == found.tagKind() && !expected.isTensor() && expected == found;
    std::cout << (equal ? "equal" : "DIFFERS: found " + value_text(found)) << "\n";
    return equal;
  }
  const Difference difference = compare(expected.toTensor(), found.toTensor());
  if (!difference.mismatch.empty()) {
    std::cout << "DIFFERS: " << difference.mismatch << "\n";
    return false;
  }
  const double allowed = tolerance.value_or(default_tolerance(expected.toTensor().scalar_type()));
  const bool equal = difference.relative <= allowed;
  std::cout << fmt::format("largest error {:.3g}, relative {:.3g}, {} {:.3g}\n", difference.absolute, difference.relative,
                           equal ? "within" : "DIFFERS: allowed is", allowed);
  return equal;
}

void print_verdict(const torch_bridge::Counters& counters, bool all_agree) {
  std::cout << fmt::format("counters: graphs {}, kernels {}, extern {}, aten_fallback {}\n", counters.graphs, counters.kernels, counters.externs,
                           counters.aten_fallbacks)
            << (all_agree ? "verified" : "NOT verified") << ": compiled against ATen op by op\n";
}

double default_tolerance(c10::ScalarType dtype) {
  switch (c10::toRealValueType(dtype)) {
    case at::kDouble:
      return 1e-9;
    case at::kFloat:
      return 1e-4;
    case at::kHalf:
      return 1e-2;
    case at::kBFloat16:
      return 5e-2;
    default:
      return c10::isFloatingType(dtype) ? 0.5 : 0;  // formats of 8 bits
  }
}

}  // namespace cxxinductor::cli

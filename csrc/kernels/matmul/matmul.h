// Maps regions that are matrix products to tensor cores.
//
// A candidate is any region whose one reduction is a sum over k of products of two 16-bit floats (plan::find_matmul), whose
// factors vary over different variables, and whose stored factors consist of 16-byte chunks, which are aligned unless
// the product is a small one (cost.h). Its origin does not matter.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/instance.h"
#include "kernels/matmul/cost.h"
#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

// Size of the product that a region of a program computes, and the expected time of its kernel without the epilogue.
struct MatmulEstimate {
  MatmulSize size;
  double seconds;
};
std::optional<MatmulEstimate> estimate_matmul(const loops::Program& program, const loops::Region& region, const Target& target);

// Elements of a factor that move together.
inline constexpr int factor_width = 8;

std::vector<NamedBody> matmul_bodies(const plan::Kernel& kernel);
std::vector<std::string_view> matmul_library(const plan::Kernel& kernel);
Instance instantiate_matmul(const plan::Kernel& kernel, plan::Variant variant);

}  // namespace cxxinductor::kernels

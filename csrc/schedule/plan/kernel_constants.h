// Constants of a kernel that may become arguments. A mean over n elements multiplies by 1 / n, so that kernels which differ in sizes
// differ in such constants too. As an argument an f32 constant is an integer times a power of two, which is exact.
#pragma once

#include <optional>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::schedule {

// The f32 constants of ordinary magnitude, in the order of statements.
std::vector<double> constants_of(const plan::Kernel& kernel);

// The same kernel with ones in their places.
plan::Kernel without_constants(plan::Kernel kernel);

// values[i] == integers[i] * 2^exponent, with integers that doubles hold exactly.
struct ScaledIntegers {
  int exponent = 0;
  std::vector<int64_t> integers;
};
std::optional<ScaledIntegers> scaled_integers(const std::vector<double>& values);

// What stands in a constant's place: `integer` * 2^`exponent`.
struct ConstantArgument {
  sym::Expr integer;
  int exponent = 0;
};

// Puts `arguments` (one for each of constants_of; none: the constant stays) into the kernel's statements.
void replace_constants(plan::Kernel& kernel, const std::vector<std::optional<ConstantArgument>>& arguments);

}  // namespace cxxinductor::schedule

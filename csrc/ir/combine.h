// How a store changes an element in memory: it replaces the element, or combines with it by an op. Shared by the graph's
// scatters and the loops' stores.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/scalar_op.h"

namespace cxxinductor {

enum class Combine : uint8_t { Overwrite, Add, Mul, Max, Min };

std::string_view name_of(Combine combine);  // "overwrite", "add" ...
std::optional<Combine> find_combine(std::string_view name);
std::optional<ScalarOp> op_of(Combine combine);  // none for Overwrite
// Whether combining twice with one value differs from combining once.
bool counts_repeats(Combine combine);
bool accepts(Combine combine, DType dtype);
// The new element: combined in the compute type and rounded to the element's dtype.
Scalar combined(Combine combine, const Scalar& old, const Scalar& value);

}  // namespace cxxinductor

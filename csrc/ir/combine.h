// How a store meets what lies in memory already: it replaces it, or is combined with it by an op. Shared by the graph's
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
// Combining with one value twice differs from doing so once.
bool counts_repeats(Combine combine);
bool accepts(Combine combine, DType dtype);
// What an element becomes: combined in the compute type and rounded to the element's dtype.
Scalar combined(Combine combine, const Scalar& old, const Scalar& value);

}  // namespace cxxinductor

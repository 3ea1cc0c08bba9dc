// Matrix products as regions: a library's call, and the loops that compute the same.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/target.h"

namespace cxxinductor::schedule {

// A library product without scales, on 16-bit floats of a GPU.
struct MatmulCall {
  const loops::View *left = nullptr, *right = nullptr;
  const loops::View* added = nullptr;  // to the sums, before they are rounded
  loops::BufferId result;
};
// The views are the call's.
std::optional<MatmulCall> matmul_call(const loops::Program& program, const loops::ExternCall& call, const Targets& targets);

// Whether a matrix lies in memory column by column.
bool is_turned(const std::vector<sym::Expr>& strides);

// A product and a sum over k in f32, rounded once. Nothing where the buffers' strides do not nest.
std::optional<loops::Region> write_matmul_region(const loops::Program& program, const MatmulCall& call, OriginId origin);

}  // namespace cxxinductor::schedule

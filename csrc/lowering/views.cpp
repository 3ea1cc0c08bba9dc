#include "lowering/views.h"

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::lowering {
namespace {

using Exprs = std::vector<sym::Expr>;

std::vector<size_t> dims_beyond_one(const Exprs& sizes) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].is_constant(1)) dims.push_back(d);
  return dims;
}

// Operand dims [a_begin, a_end) and result dims [r_begin, r_end) hold the same elements in the same order.
void map_group(const Exprs& operand_sizes, const std::vector<size_t>& operand_dims, size_t a_begin, size_t a_end, const Exprs& result_sizes,
               const std::vector<size_t>& result_dims, size_t r_begin, size_t r_end, const Exprs& coords, const loops::Space& space, Exprs& out) {
  sym::Expr position = 0, stride = 1;
  for (size_t r = r_end; r-- > r_begin;) {
    position = position + coords[result_dims[r]] * stride;
    stride = stride * result_sizes[result_dims[r]];
  }
  position = loops::expand(position);
  stride = 1;
  for (size_t a = a_end; a-- > a_begin;) {
    sym::Expr size = operand_sizes[operand_dims[a]];
    sym::Expr coord = stride.is_constant(1) ? position : sym::floor_div(position, stride);
    if (a > a_begin) coord = sym::mod(coord, size);
    out[operand_dims[a]] = space.simplify(coord);
    stride = stride * size;
  }
}

// The dims fall into groups of equal element count, matched from the left, as small as possible; only within a group
// that splits and merges at once do divisions arise.
Exprs through_reshape(const graph::Value& operand, const graph::Value& result, const Exprs& coords, const loops::Space& space) {
  Exprs out(operand.sizes.size(), 0);
  auto is_zero = [](sym::Expr size) { return size.is_constant(0); };
  if (std::any_of(operand.sizes.begin(), operand.sizes.end(), is_zero) || std::any_of(result.sizes.begin(), result.sizes.end(), is_zero)) return out;
  const auto operand_dims = dims_beyond_one(operand.sizes), result_dims = dims_beyond_one(result.sizes);
  const size_t rank_a = operand_dims.size(), rank_r = result_dims.size();
  size_t a = 0, r = 0;
  while (a < rank_a && r < rank_r) {
    size_t a_end = 0, r_end = 0;
    for (size_t taken = 2; !a_end && taken <= rank_a - a + rank_r - r; ++taken) {
      for (size_t from_a = 1; from_a < taken && from_a <= rank_a - a && !a_end; ++from_a) {
        if (taken - from_a > rank_r - r) continue;
        sym::Expr count_a = 1, count_r = 1;
        for (size_t k = 0; k < from_a; ++k) count_a = count_a * operand.sizes[operand_dims[a + k]];
        for (size_t k = 0; k < taken - from_a; ++k) count_r = count_r * result.sizes[result_dims[r + k]];
        if (!space.equal(count_a, count_r)) continue;
        a_end = a + from_a;
        r_end = r + taken - from_a;
      }
    }
    // Equal counts beyond proof: all that is left is one group.
    if (!a_end) a_end = rank_a, r_end = rank_r;
    map_group(operand.sizes, operand_dims, a, a_end, result.sizes, result_dims, r, r_end, coords, space, out);
    a = a_end;
    r = r_end;
  }
  return out;
}

}  // namespace

std::vector<sym::Expr> coords_through_view(const graph::NodeKind& kind, const graph::Value& operand, const graph::Value& result, const Exprs& coords,
                                           const loops::Space& space) {
  CXXI_CHECK(coords.size() == result.sizes.size(), "view %{} has rank {}, found {} coordinates", result.name, result.sizes.size(), coords.size());
  if (const auto* permute = std::get_if<graph::Permute>(&kind)) {
    Exprs out(coords.size());
    for (size_t d = 0; d < coords.size(); ++d) out[static_cast<size_t>(permute->dims[d])] = coords[d];
    return out;
  }
  if (std::holds_alternative<graph::Reshape>(kind)) return through_reshape(operand, result, coords, space);
  if (std::holds_alternative<graph::Expand>(kind)) {
    size_t missing = coords.size() - operand.sizes.size();
    Exprs out(coords.begin() + static_cast<ptrdiff_t>(missing), coords.end());
    for (size_t d = 0; d < out.size(); ++d)
      if (operand.sizes[d].is_constant(1)) out[d] = 0;
    return out;
  }
  Exprs out = coords;
  if (const auto* slice = std::get_if<graph::Slice>(&kind)) {
    auto d = static_cast<size_t>(slice->dim);
    out[d] = loops::expand(slice->start + slice->step * coords[d]);
  } else if (const auto* flip = std::get_if<graph::Flip>(&kind)) {
    for (int dim : flip->dims) {
      auto d = static_cast<size_t>(dim);
      out[d] = operand.sizes[d] - 1 - coords[d];
    }
  } else {
    throw_internal("%{} is no view", result.name);
  }
  return out;
}

}  // namespace cxxinductor::lowering

#include "ir/graph/graph.h"

#include "ir/strides.h"

namespace cxxinductor::graph {

std::vector<sym::Expr> contiguous_strides(const std::vector<sym::Expr>& sizes) { return row_major_strides(sizes); }

sym::Expr element_count(const std::vector<sym::Expr>& sizes) { return sym::product(sizes); }

bool is_view(const NodeKind& kind) {
  return std::holds_alternative<Permute>(kind) || std::holds_alternative<Reshape>(kind) ||
         std::holds_alternative<Expand>(kind) || std::holds_alternative<Slice>(kind) ||
         std::holds_alternative<Flip>(kind);
}

}  // namespace cxxinductor::graph

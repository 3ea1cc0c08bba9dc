// Result types of graph nodes, for Builder, the parser and the verifier.
//
// What operands and kind do not determine (dtype of a cast, sizes of a reshape, everything about a full) is *declared*;
// the rest of the declaration is ignored. Strides of views are what eager's view would have where strides can express
// it; every other result is contiguous. Layouts come out Flexible, names empty. Extern results are never inferred.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/graph.h"

namespace cxxinductor::graph {

// Results of a node; UserError says what does not fit. `declared` gives dtype, device and sizes where needed.
std::vector<Value> infer_results(const Graph& graph, const NodeKind& kind, const std::vector<Operand>& operands, const Value& declared);
// Whether the result's sizes (and for Full and Iota its dtype and device) must be declared.
bool declares_sizes(const NodeKind& kind);

// The dtype T that an elementwise op is applied in: immediates have compute_type(T).
DType operand_dtype(const Graph& graph, ScalarOp op, const std::vector<Operand>& operands);
// What immediates of the op must have, as far as its tensor operands say; nothing when it has none but a condition.
std::optional<DType> immediate_dtype(const Graph& graph, ScalarOp op, const std::vector<Operand>& operands);
// Right-aligned broadcast of two shapes; UserError where two sizes are not provably equal and neither is 1.
std::vector<sym::Expr> broadcast_sizes(const sym::Assumptions& assumptions, const std::vector<sym::Expr>& a, const std::vector<sym::Expr>& b);
bool same_sizes(const sym::Assumptions& assumptions, const std::vector<sym::Expr>& a, const std::vector<sym::Expr>& b);
// Strides of the reshape as a view, or nothing where it must copy.
std::optional<std::vector<sym::Expr>> reshape_strides(const sym::Assumptions& assumptions, const Value& operand, const std::vector<sym::Expr>& sizes);

}  // namespace cxxinductor::graph

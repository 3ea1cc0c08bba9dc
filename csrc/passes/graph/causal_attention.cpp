// Sets is_causal on attention whose mask is the causal one: it then reads no mask and skips half of the work. A mask that is
// true everywhere is dropped.
//
// Traced models compute the mask themselves; run eagerly they pass is_causal and no mask.
#include <algorithm>

#include "ir/library_ops.h"
#include "passes/graph/index_propagation.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

// Added to scores, or true where they count.
bool lets_through(const ScalarOrExpr& number) {
  const auto* scalar = std::get_if<Scalar>(&number);
  return scalar && (scalar->dtype() == DType::Bool ? scalar->truth() : is_float(scalar->dtype()) && scalar->real() == 0);
}
// Torch masks with the least f16 where cuDNN has no infinity: no score comes near it.
bool shuts_out(const ScalarOrExpr& number) {
  const auto* scalar = std::get_if<Scalar>(&number);
  return scalar && (scalar->dtype() == DType::Bool ? !scalar->truth() : is_float(scalar->dtype()) && scalar->real() <= -65504);
}

// Of keys, by a mask, to each query: all; those at its place and before it, of as many as there are queries; or others.
enum class Shown { All, Before, Others };

Shown shown_by(IndexPropagation& elements, const graph::Graph& graph, ValueId mask, ValueId query, ValueId key) {
  const auto element = elements.of(mask);
  if (!element) return Shown::Others;
  if (!element->condition) return lets_through(element->value) ? Shown::All : Shown::Others;
  const std::vector<sym::Expr>&q = graph.values[query].sizes, &k = graph.values[key].sizes, &m = graph.values[mask].sizes;
  if (q.size() < 2 || k.size() < 2 || m.size() < 2) return Shown::Others;
  const loops::Space& space = elements.space(mask);
  const std::vector<sym::Expr> position = elements.position(mask);
  const sym::Expr length = q[q.size() - 2], row = position[m.size() - 2], column = position[m.size() - 1];
  if (!space.equal(length, k[k.size() - 2]) || !space.equal(length, m[m.size() - 2]) || !space.equal(length, m[m.size() - 1])) return Shown::Others;
  // Scores count where `reach` is not negative.
  const auto [a, b] = *element->condition;
  sym::Expr reach;
  if (lets_through(element->value) && shuts_out(element->other))
    reach = b - a;
  else if (shuts_out(element->value) && lets_through(element->other))
    reach = a - b - 1;
  else
    return Shown::Others;
  return space.equal(reach, row - column) ? Shown::Before : Shown::Others;
}

// The argument becomes none, and the operand that it alone stood for goes.
void take_away(graph::Node& node, Arg& mask) {
  const uint32_t number = mask.as<OperandRef>()->operand;
  mask = Arg(None{});
  node.operands.erase(node.operands.begin() + number);
  for_each_operand_ref(std::get<graph::Extern>(node.kind), [&](OperandRef& ref) { ref.operand -= ref.operand > number; });
}

bool set_is_causal(IndexPropagation& elements, const graph::Graph& graph, graph::Node& node, const LibraryOp& op) {
  auto& call = std::get<graph::Extern>(node.kind);
  Arg* mask = find_argument(call, ArgRole::Mask);
  if (mask == nullptr || !mask->as<OperandRef>()) return false;
  const OperandRef *query = find_operand_ref(call, ArgRole::Query), *key = find_operand_ref(call, ArgRole::Key);
  const Arg* is_causal = find_argument(call, ArgRole::IsCausal);
  const bool is_set = is_causal && !(*is_causal == Arg(false));
  if (!query || !key || is_set) return false;
  const auto operand = [&](const OperandRef* ref) { return std::get<ValueId>(node.operands[ref->operand]); };
  const Shown shown = shown_by(elements, graph, operand(mask->as<OperandRef>()), operand(query), operand(key));
  if (shown == Shown::Others) return false;
  uint32_t readers = 0;
  for_each_operand_ref(call, [&](OperandRef ref) { readers += ref.operand == mask->as<OperandRef>()->operand; });
  const bool plain = call.mutated_operands.empty() && std::all_of(call.alias_of.begin(), call.alias_of.end(), [](int of) { return of < 0; });
  if (readers != 1 || !plain) return false;
  // Before is_causal a call may leave out dropout_p alone.
  const auto before = static_cast<size_t>(op.find(ArgRole::IsCausal)->position);
  const bool lacks_dropout = call.args.size() + 1 == before && op.find(ArgRole::Dropout);
  if (shown == Shown::Before && call.args.size() + (lacks_dropout ? 1 : 0) < before) return false;
  take_away(node, *mask);
  if (shown == Shown::All) return true;
  if (lacks_dropout) set_argument(call, ArgRole::Dropout, 0.0);
  set_argument(call, ArgRole::IsCausal, true);
  return true;
}

}  // namespace

bool use_causal_attention(graph::Graph& graph, const Options&) {
  IndexPropagation elements(graph);
  bool changed = false;
  for (graph::Node& node : graph.nodes) {
    const auto* call = node.as<graph::Extern>();
    const LibraryOp* op = call ? library_op(*call) : nullptr;
    if (op && (op->family == OpFamily::Attention || op->family == OpFamily::AttentionGradient)) changed = set_is_causal(elements, graph, node, *op) || changed;
  }
  return changed;
}

}  // namespace cxxinductor::passes

#include "passes/graph/edit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/graph/symbols.h"
#include "support/error.h"

namespace cxxinductor::passes {

using graph::NodeId;
using graph::ValueId;

IdVector<ValueId, ValueId> no_replacements(const graph::Graph& graph) {
  IdVector<ValueId, ValueId> replacements;
  for (size_t v = 0; v < graph.values.size(); ++v) replacements.push_back(ValueId(v));
  return replacements;
}

void replace_values(graph::Graph& graph, const IdVector<ValueId, ValueId>& replacements, NodeId end) {
  auto last = [&](ValueId id) {
    while (replacements.contains(id) && replacements[id] != id) id = replacements[id];
    return id;
  };
  const size_t nodes = end.valid() ? end.index() : graph.nodes.size();
  for (size_t n = 0; n < nodes; ++n)
    for (graph::Operand& operand : graph.nodes[NodeId(n)].operands)
      if (auto* id = std::get_if<ValueId>(&operand)) *id = last(*id);
  for (graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::Tensor) output.value = last(output.value);
  for (graph::Mutation& mutation : graph.mutations) mutation.value = last(mutation.value);
}

void keep_nodes(graph::Graph& graph, const std::vector<bool>& keep) {
  IdVector<ValueId, ValueId> renumbered(graph.values.size());
  decltype(graph.values) values;
  IdVector<NodeId, NodeId> nodes_renumbered(graph.nodes.size());
  IdVector<ValueId, char> is_input(graph.values.size(), 0);
  for (const graph::Input& input : graph.inputs)
    if (input.kind == graph::Input::Kind::Tensor) is_input[input.value] = 1;
  size_t kept = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (keep[n]) nodes_renumbered[NodeId(n)] = NodeId(kept++);
  for (size_t v = 0; v < graph.values.size(); ++v) {
    graph::Value& value = graph.values[ValueId(v)];
    if (value.producer.valid() ? !keep[value.producer.index()] : !is_input[ValueId(v)]) continue;
    if (value.producer.valid()) value.producer = nodes_renumbered[value.producer];
    renumbered[ValueId(v)] = values.push_back(std::move(value));
  }
  decltype(graph.nodes) nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!keep[n]) continue;
    graph::Node& node = graph.nodes[NodeId(n)];
    for (graph::Operand& operand : node.operands)
      if (auto* id = std::get_if<ValueId>(&operand)) *id = renumbered[*id];
    for (ValueId& result : node.results) result = renumbered[result];
    nodes.push_back(std::move(node));
  }
  graph.values = std::move(values);
  graph.nodes = std::move(nodes);
  for (graph::Input& input : graph.inputs)
    if (input.kind == graph::Input::Kind::Tensor) input.value = renumbered[input.value];
  for (graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::Tensor) output.value = renumbered[output.value];
  for (graph::Mutation& mutation : graph.mutations) mutation.value = renumbered[mutation.value];
}

void sort_nodes(graph::Graph& graph, const IdVector<ValueId, ValueId>* replacements) {
  std::vector<NodeId> order;
  std::vector<char> placed(graph.nodes.size(), 0);
  // Depth first along operands. A chain of appended nodes is as deep as what one pass appends for one node: short.
  const graph::Definers definers = graph::find_definers(graph);
  auto place = [&](auto&& self, NodeId id) -> void {
    if (std::exchange(placed[id.index()], 1)) return;
    for (const graph::Operand& operand : graph.nodes[id].operands)
      if (const auto* value = std::get_if<ValueId>(&operand); value && graph.values[*value].producer.valid()) self(self, graph.values[*value].producer);
    graph::for_each_definer(graph, definers, id, [&](NodeId definer) { self(self, definer); });
    order.push_back(id);
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    place(place, NodeId(n));
    if (!replacements) continue;
    for (ValueId result : graph.nodes[NodeId(n)].results) {
      if (result.index() >= replacements->size()) continue;  // of an appended node
      if (const NodeId instead = graph.values[(*replacements)[result]].producer; instead.valid()) place(place, instead);
    }
  }
  decltype(graph.nodes) nodes;
  for (NodeId id : order) {
    const NodeId now = nodes.push_back(std::move(graph.nodes[id]));
    for (ValueId result : nodes[now].results) graph.values[result].producer = now;
  }
  graph.nodes = std::move(nodes);
}

IdVector<ValueId, char> escaping_values(const graph::Graph& graph, bool flexible_strides) {
  IdVector<ValueId, char> escaping(graph.values.size(), 0);
  const auto mark = [&](ValueId id) {
    for (std::optional<ValueId> next = id; next; next = graph::shares_storage_with(graph, *next)) escaping[*next] = 1;
  };
  for (const graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::Tensor && (flexible_strides || !output.flexible_strides)) mark(output.value);
  for (const graph::Mutation& mutation : graph.mutations) mark(mutation.value);
  return escaping;
}

bool is_signature_value(const graph::Graph& graph, ValueId id) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const graph::Output& o) { return o.kind == graph::Output::Kind::Tensor && o.value == id; }) ||
         std::any_of(graph.mutations.begin(), graph.mutations.end(), [&](const graph::Mutation& m) { return m.value == id; });
}

const ValueId* value_argument(const graph::Node& call, ArgRole role) {
  const auto& callee = *call.as<graph::Extern>();
  const OperandRef* ref = find_operand_ref(callee, role);
  return ref ? std::get_if<ValueId>(&call.operands.at(ref->operand)) : nullptr;
}

bool makes_gradient(const graph::Node& node, size_t which) {
  const auto* callee = node.as<graph::Extern>();
  if (!callee || !is_call_of(*callee, OpFamily::ConvolutionGradient)) return false;
  const Arg* argument = find_argument(*callee, ArgRole::OutputMask);
  const auto* mask = argument ? argument->as<ArgList>() : nullptr;
  const bool* wanted = mask && mask->size() > which ? (*mask)[which].as<bool>() : nullptr;
  return wanted && *wanted;
}

void leave_out_gradient(graph::Graph& graph, graph::Node& call, size_t which) {
  // As the front-end makes results that are None.
  graph::Value& result = graph.values[call.results.at(which)];
  result.dtype = DType::U8;
  result.sizes = {sym::Expr(0)};
  result.layout.strides = {sym::Expr(1)};
  auto& callee = *call.as<graph::Extern>();
  auto& mask = std::get<ArgList>(find_argument(callee, ArgRole::OutputMask)->value);
  mask.at(which) = Arg(false);
}

}  // namespace cxxinductor::passes

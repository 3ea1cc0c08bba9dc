#include "ir/graph/symbols.h"

#include "ir/graph/node_traits.h"

namespace cxxinductor::graph {
namespace {

using Visit = std::function<void(sym::Expr)>;

void visit_all(const std::vector<sym::Expr>& list, const Visit& visit) {
  for (sym::Expr e : list) visit(e);
}

}  // namespace

void for_each_expression(const Graph& graph, const Node& node, const Visit& visit) {
  for (const Operand& operand : node.operands)
    if (const auto* e = std::get_if<sym::Expr>(&operand)) visit(*e);
  for_each_expression(node.kind, visit);
  for (ValueId result : node.results) {
    visit_all(graph.values[result].sizes, visit);
    visit_all(graph.values[result].layout.strides, visit);
  }
}

Definers find_definers(const Graph& graph) {
  Definers definers;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (const auto* callee = graph.nodes[NodeId(n)].as<Extern>())
      for (const Definition& definition : callee->defines) definers.emplace(definition.symbol, NodeId(n));
  return definers;
}

void for_each_definer(const Graph& graph, const Definers& definers, NodeId node, const std::function<void(NodeId)>& visit) {
  if (definers.empty()) return;
  for_each_expression(graph, graph.nodes[node], [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (const auto found = definers.find(symbol.name()); found != definers.end() && found->second != node) visit(found->second);
  });
}

}  // namespace cxxinductor::graph

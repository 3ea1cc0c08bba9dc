// Which nodes of a graph need which symbols, and which calls define some: what passes must keep in order besides
// operands.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/graph/graph.h"

namespace cxxinductor::graph {

// Calls visit with every expression of a node: its operands, attributes and arguments, and its results' sizes and
// strides.
void for_each_expression(const Graph& graph, const Node& node, const std::function<void(sym::Expr)>& visit);

// The externs that define symbols, by symbol. Most graphs have none.
using Definers = std::map<std::string, NodeId, std::less<>>;
Definers find_definers(const Graph& graph);

// Calls visit with each other node that defines a symbol of the node's expressions; perhaps more than once.
void for_each_definer(const Graph& graph, const Definers& definers, NodeId node, const std::function<void(NodeId)>& visit);

}  // namespace cxxinductor::graph

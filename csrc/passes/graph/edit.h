// Edits and facts that graph passes share.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "ir/library_ops.h"

namespace cxxinductor::passes {

constexpr size_t image_rank = 4;  // batch, channels, height, width

// Reads of a value become reads of its replacement (itself, or a replaced value in turn) in operands, outputs and
// mutations; in nodes before `end` only, when that is given. Values without an entry stand for themselves.
void replace_values(graph::Graph& graph, const IdVector<graph::ValueId, graph::ValueId>& replacements, graph::NodeId end = {});
IdVector<graph::ValueId, graph::ValueId> no_replacements(const graph::Graph& graph);
// Drops nodes, their results and values of removed inputs, and renumbers the rest.
void keep_nodes(graph::Graph& graph, const std::vector<bool>& keep);
// Puts appended nodes before their first reader, those that make replacements at the latest where the replaced values are
// made. Nodes that stood in order keep it.
void sort_nodes(graph::Graph& graph, const IdVector<graph::ValueId, graph::ValueId>* replacements = nullptr);
// Values that are outputs or mutations, and the values that those are views of; with or without the outputs that are
// taken in any strides.
IdVector<graph::ValueId, char> escaping_values(const graph::Graph& graph, bool flexible_strides = true);
// The value that an argument of a call of a library op names; null where it is none.
const graph::ValueId* value_argument(const graph::Node& call, ArgRole role);
// Is the node the gradient of a convolution, and is gradient `which` (input, weight, bias) wanted of it?
bool makes_gradient(const graph::Node& node, size_t which);
// The call no longer makes that gradient, whose readers have another value.
void leave_out_gradient(graph::Graph& graph, graph::Node& call, size_t which);
bool is_signature_value(const graph::Graph& graph, graph::ValueId id);  // an output or the final value of a mutation

}  // namespace cxxinductor::passes

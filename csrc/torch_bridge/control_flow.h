// Control flow of models as steps of a graph: calls of functions (functions.h) that run the operator's compiled subgraphs, in C++.
#pragma once

#include <functional>
#include <memory>

#include "model/call_graph.h"
#include "torch_bridge/file_model.h"

namespace cxxinductor::torch_bridge {

// make: compiles a subgraph, which holds no control flow any more; those of nested calls before their own, else in the order of the calls.
// null: the result is planned and not run. Unsupported for operators that are not known, and results that are integers. Results share no
// memory with operands, nor with each other.
model::CallGraph with_functions(const model::CallGraph& calls, const std::function<std::shared_ptr<const FileModel>(model::CallGraph subgraph)>& make);

}  // namespace cxxinductor::torch_bridge

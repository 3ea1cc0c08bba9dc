// The Python object that torch.compile calls: a C type with vectorcall. It takes one list (boxed calling convention),
// empties it so that inputs can be freed early, releases the GIL, runs, and returns a list.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <memory>

#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/pending_graph.h"

namespace cxxinductor::bindings {

namespace py = pybind11;

void bind_compiled_callable(py::module_& module);
py::object make_compiled_callable(std::shared_ptr<torch_bridge::CompiledGraph> graph);
// waits: whether calls wait for the graph; else they run without it. ended(callable) calls finish() of the callable, and is called by the
// first call that waits, or that finds that the compile has ended.
py::object make_pending_callable(std::shared_ptr<torch_bridge::PendingGraph> pending, bool waits, const py::object& ended);

}  // namespace cxxinductor::bindings

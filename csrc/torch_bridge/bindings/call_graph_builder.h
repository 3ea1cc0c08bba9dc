// Python -> CallGraph: one call a node, driven by fx_reader.py. No FakeTensor and no sympy object crosses, only
// numbers, text and torch's plain enums.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::bindings {

namespace py = pybind11;

// A value of the graph that is being built, as Python holds it.
struct ValueRef {
  model::CallValue value;
};
// A symbolic integer: sympy.srepr text, parsed once for each distinct text.
struct SymText {
  std::string srepr;
};
// A condition on sizes, as an integer that is 1 where it holds and 0 where not.
struct ConditionValue {
  sym::Expr truth;
};

// A Python function that the graph calls (torch_bridge/functions.h).
struct FunctionRef {
  uint32_t number;
};

class CallGraphBuilder {
 public:
  explicit CallGraphBuilder(std::string name) { graph_.name = std::move(name); }
  explicit CallGraphBuilder(model::CallGraph graph) : graph_(std::move(graph)) {}

  void symbol(const std::string& name, int64_t low, int64_t high, int64_t divisor);
  ValueRef tensor_input(const std::string& name, int dtype, const std::string& device_type, int device_index, const py::sequence& sizes,
                        const py::sequence& strides, const py::object& storage_offset, uint32_t storage, const std::string& source, bool conjugate = false,
                        bool negative = false);
  ValueRef symint_input(const std::string& name, const std::string& srepr, const std::string& source);
  ValueRef opaque_input(const std::string& name, const std::string& source);
  // results: for each flattened result None or (name, dtype, device_type, device_index, sizes, strides, storage_offset,
  // storage[, conjugate, negative]) for a tensor, or SymText for an int. Returns a ValueRef each.
  std::vector<ValueRef> call(const std::string& callee, const std::string& overload, const py::sequence& args, const py::dict& kwargs,
                             const py::sequence& results, bool result_is_list, const py::tuple& origin);
  // function(tensors or None, integers) -> list of tensors or None, sharing no memory with its arguments. Lives as long as
  // the graph that is built.
  FunctionRef function(py::function function);
  // The last call keeps its place among the ordered calls.
  void order_last_call() { graph_.calls.back().ordered = true; }
  // model::join_collectives, on all calls so far.
  void join_collectives(int64_t limit, bool sizes_may_vary);
  void output(const py::sequence& outputs);
  // The input at a position comes in these strides, not in those that the calls were recorded with.
  void restride_input(uint32_t position, const py::sequence& strides);
  // Outputs at these positions may come in any strides; the compiled graph says which (output_strides).
  void flexible_output_strides(std::set<uint32_t> positions) { graph_.flexible_outputs = std::move(positions); }
  // Inputs that the caller keeps no reference to.
  void donate_inputs(std::set<uint32_t> positions) { graph_.donated = std::move(positions); }
  void freeze_inputs(std::set<uint32_t> positions) { graph_.frozen = std::move(positions); }

  // Whether some calls are of Python functions, which no text holds.
  bool has_functions() const { return !graph_.objects.empty(); }

  const model::CallGraph& graph() const { return graph_; }
  // The graph IR before any pass, as cxxi-opt reads it. Needs no device.
  std::string graph_text() const;

 private:
  sym::Expr expression(const py::handle& size);
  std::vector<sym::Expr> expressions(const py::sequence& sizes);
  Arg argument(const py::handle& object);
  model::CallValue add(model::CallValueInfo info);
  OriginId origin(const py::tuple& origin);

  model::CallGraph graph_;
  std::map<std::string, sym::Expr> parsed_;
};

void bind_call_graph_builder(py::module_& module);

}  // namespace cxxinductor::bindings

#include "torch_bridge/bindings/kernel_timing.h"

#include <map>
#include <optional>

#include "ir/plan/text.h"
#include "support/error.h"
#include "torch_bridge/bindings/compiled_callable.h"

namespace cxxinductor::bindings {
namespace {

using SymbolValues = std::map<std::string, int64_t>;

py::list evaluated(const std::vector<sym::Expr>& list, const SymbolValues& symbols) {
  py::list values;
  for (sym::Expr e : list) {
    values.append(sym::evaluate(e, [&](std::string_view name) {
      const auto found = symbols.find(std::string(name));
      if (found == symbols.end()) throw_user_error("the symbol {} needs a value", name);
      return found->second;
    }));
  }
  return values;
}

py::object load_plan(const std::string& text, const std::optional<std::string>& source, const Options& options) {
  std::shared_ptr<torch_bridge::CompiledGraph> graph;
  {
    py::gil_scoped_release release;
    graph = torch_bridge::CompiledGraph::from_plan(text, source, options);
  }
  return make_compiled_callable(std::move(graph));
}

// The integers that a plan takes, with their ranges.
py::list plan_symbols(const std::string& text) {
  const plan::Plan plan = plan::parse(text);
  py::list symbols;
  for (const plan::Input& input : plan.inputs) {
    if (input.kind != plan::Input::Kind::Symbol) continue;
    const sym::Interval range = plan.assumptions.range(input.symbol);
    symbols.append(py::make_tuple(input.symbol, range.low, range.high));
  }
  return symbols;
}

// The tensors that it takes, in order, and what its kernels move.
py::dict plan_arguments(const std::string& text, const SymbolValues& symbols) {
  const plan::Plan plan = plan::parse(text);
  py::list tensors;
  for (const plan::Input& input : plan.inputs) {
    if (input.kind != plan::Input::Kind::Tensor) continue;
    const plan::Buffer& buffer = plan.buffers[input.buffer];
    tensors.append(py::dict(py::arg("name") = buffer.name, py::arg("dtype") = std::string(to_string(buffer.dtype)),
                            py::arg("device") = to_string(buffer.device), py::arg("sizes") = evaluated(buffer.sizes, symbols),
                            py::arg("strides") = evaluated(buffer.strides, symbols)));
  }
  int64_t read = 0, written = 0;
  for (const plan::Kernel& kernel : plan.kernels) {
    read += kernel.bytes_read_hint;
    written += kernel.bytes_written_hint;
  }
  return py::dict(py::arg("tensors") = tensors, py::arg("bytes_read") = read, py::arg("bytes_written") = written);
}

}  // namespace

void bind_kernel_timing(py::module_& module) {
  module.def("load_plan", load_plan, py::arg("text"), py::arg("source"), py::arg("options"));
  module.def("plan_symbols", plan_symbols, py::arg("text"));
  module.def("plan_arguments", plan_arguments, py::arg("text"), py::arg("symbols"));
}

}  // namespace cxxinductor::bindings

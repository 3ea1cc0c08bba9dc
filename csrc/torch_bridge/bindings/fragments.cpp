#include "torch_bridge/bindings/fragments.h"

#include <pybind11/complex.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "model/attention_mask.h"
#include "model/decompose/decompose.h"
#include "support/error.h"
#include "torch_bridge/bindings/call_graph_builder.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/types.h"

namespace cxxinductor::bindings {
namespace {

using model::Fragments;

// A size in terms of symbols, as text.
struct SizeText {
  std::string text;
};

py::object to_python(const Arg& arg) {
  if (const auto* ref = arg.as<OperandRef>()) return py::cast(ValueRef{ref->operand});
  if (const auto* e = arg.as<sym::Expr>()) return py::cast(SizeText{sym::to_string(*e)});
  if (const auto* i = arg.as<int64_t>()) return py::int_(*i);
  if (const auto* d = arg.as<double>()) return py::float_(*d);
  if (const auto* c = arg.as<std::complex<double>>()) return py::cast(*c);
  if (const auto* b = arg.as<bool>()) return py::bool_(*b);
  if (const auto* text = arg.as<std::string>()) return py::str(*text);
  if (const auto* dtype = arg.as<DType>()) return py::cast(torch_bridge::to_torch(*dtype));
  if (const auto* device = arg.as<Device>()) return py::cast(torch_bridge::to_torch(*device));
  if (const auto* format = arg.as<MemoryFormatArg>()) return py::cast(static_cast<at::MemoryFormat>(format->torch_memory_format));
  if (const auto* list = arg.as<ArgList>()) {
    py::list items;
    for (const Arg& item : *list) items.append(to_python(item));
    return items;
  }
  if (!arg.is_none()) throw_internal("an argument of a fragment: {}", to_string(arg));
  return py::none();
}

py::object fragment(const CallGraphBuilder& builder, Fragments table) {
  const auto found = model::fragment_of(builder.graph(), torch_bridge::DispatcherSchemas(), table);
  if (!found) return py::none();
  py::list calls, outputs;
  for (const model::Call& call : found->calls) {
    py::list args;
    py::dict kwargs;
    for (const Arg& arg : call.args) args.append(to_python(arg));
    for (const auto& [name, arg] : call.kwargs) kwargs[py::str(name)] = to_python(arg);
    calls.append(py::make_tuple(call.callee, call.overload, args, kwargs));
  }
  for (const Arg& output : found->outputs) outputs.append(to_python(output));
  return py::make_tuple(calls, outputs);
}

}  // namespace

void bind_fragments(py::module_& module) {
  py::enum_<Fragments>(module, "Fragments", "Tables of csrc/model/decompose/decompose.h.")
      .value("Decompositions", Fragments::Decompositions)
      .value("RecomputeForms", Fragments::RecomputeForms);
  py::class_<SizeText>(module, "SizeText", "A size in terms of symbols.").def_readonly("text", &SizeText::text);
  module.def("fragment", fragment, py::arg("builder"), py::arg("table"),
             "What stands for the only call of a graph, or None: (callee, overload, arguments, keywords) of each call, "
             "and the results. A ValueRef "
             "counts the graph's inputs, then the results of the calls. A call without results gets those that "
             "model::infer states.");
  module.def(
      "wants_dense_mask",
      [](const at::Device& device, at::ScalarType query, bool has_dense_rows, bool requires_gradient) {
        if (!at::isFloatingType(query)) return false;
        return model::wants_dense_copy({device.is_cuda(), torch_bridge::from_torch(query), has_dense_rows, requires_gradient});
      },
      py::arg("device"), py::arg("query_dtype"), py::arg("has_dense_rows"), py::arg("requires_gradient"), "csrc/model/attention_mask.h");
  module.def("ops_with_fragments", &model::ops_with_fragments, py::arg("table"));
}

}  // namespace cxxinductor::bindings

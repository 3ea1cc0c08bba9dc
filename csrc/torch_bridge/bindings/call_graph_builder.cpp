#include "torch_bridge/bindings/call_graph_builder.h"

#include <pybind11/complex.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

#include "frontend/import.h"
#include "ir/device_types.h"
#include "ir/graph/text.h"
#include "model/conditions.h"
#include "model/passes/join_collectives.h"
#include "model/text.h"
#include "support/error.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/functions.h"
#include "torch_bridge/types.h"

namespace cxxinductor::bindings {

using model::CallValue;
using model::CallValueInfo;

namespace {

Device device_of(const std::string& type, int index) {
  for (const DeviceTypeInfo& row : device_types())
    if (row.text == type)
      return torch_bridge::from_torch(c10::Device(static_cast<c10::DeviceType>(row.torch_device_type), static_cast<c10::DeviceIndex>(index)));
  throw_unsupported("tensors on device {}", type);
}

DType dtype_of(int scalar_type) { return torch_bridge::from_torch(static_cast<c10::ScalarType>(scalar_type)); }

}  // namespace

sym::Expr CallGraphBuilder::expression(const py::handle& size) {
  if (py::isinstance<py::int_>(size)) return sym::Expr(size.cast<int64_t>());
  const std::string text = py::isinstance<SymText>(size) ? size.cast<const SymText&>().srepr : size.cast<std::string>();
  auto [found, fresh] = parsed_.try_emplace(text);
  if (fresh) found->second = sym::parse_srepr(text);
  return found->second;
}

std::vector<sym::Expr> CallGraphBuilder::expressions(const py::sequence& sizes) {
  std::vector<sym::Expr> out;
  out.reserve(sizes.size());
  for (const py::handle size : sizes) out.push_back(expression(size));
  return out;
}

Arg CallGraphBuilder::argument(const py::handle& object) {
  if (object.is_none()) return None{};
  if (py::isinstance<ValueRef>(object)) return OperandRef{object.cast<const ValueRef&>().value};
  if (py::isinstance<SymText>(object)) return expression(object);
  if (py::isinstance<ConditionValue>(object)) {
    const sym::Expr truth = object.cast<const ConditionValue&>().truth;
    return truth.is_constant() ? Arg(truth.constant()) : Arg(truth);
  }
  if (py::isinstance<FunctionRef>(object)) return Handle{object.cast<const FunctionRef&>().number};
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::int_>(object)) return object.cast<int64_t>();
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (PyComplex_Check(object.ptr())) return object.cast<std::complex<double>>();
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  if (THPDtype_Check(object.ptr())) return torch_bridge::from_torch(reinterpret_cast<THPDtype*>(object.ptr())->scalar_type);
  if (THPDevice_Check(object.ptr())) return torch_bridge::from_torch(reinterpret_cast<THPDevice*>(object.ptr())->device);
  if (THPLayout_Check(object.ptr())) return LayoutArg{static_cast<int>(reinterpret_cast<THPLayout*>(object.ptr())->layout)};
  if (THPMemoryFormat_Check(object.ptr())) return MemoryFormatArg{static_cast<int>(reinterpret_cast<THPMemoryFormat*>(object.ptr())->memory_format)};
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    ArgList list;
    for (const py::handle item : object) list.push_back(argument(item));
    return list;
  }
  throw_unsupported("arguments of Python type {}", py::str(py::type::of(object)).cast<std::string>());
}

CallValue CallGraphBuilder::add(CallValueInfo info) {
  graph_.values.push_back(std::move(info));
  return static_cast<CallValue>(graph_.values.size() - 1);
}

void CallGraphBuilder::symbol(const std::string& name, int64_t low, int64_t high, int64_t divisor) {
  graph_.assumptions.set_range(name, {low, high});
  if (divisor > 1) graph_.assumptions.set_divisor(name, divisor);
}

ValueRef CallGraphBuilder::tensor_input(const std::string& name, int dtype, const std::string& device_type, int device_index, const py::sequence& sizes,
                                        const py::sequence& strides, const py::object& storage_offset, uint32_t storage, const std::string& source,
                                        bool conjugate, bool negative) {
  CallValueInfo info;
  info.name = name;
  info.dtype = dtype_of(dtype);
  info.device = device_of(device_type, device_index);
  info.sizes = expressions(sizes);
  info.strides = expressions(strides);
  info.storage_offset = expression(storage_offset);
  info.storage = storage;
  info.conjugate = conjugate;
  info.negative = negative;
  graph_.inputs.push_back(add(std::move(info)));
  graph_.input_sources.push_back(source);
  return {graph_.inputs.back()};
}

ValueRef CallGraphBuilder::symint_input(const std::string& name, const std::string& srepr, const std::string& source) {
  CallValueInfo info;
  info.kind = CallValueInfo::Kind::SymInt;
  info.name = name;
  info.symbol = expression(py::str(srepr));
  graph_.inputs.push_back(add(std::move(info)));
  graph_.input_sources.push_back(source);
  return {graph_.inputs.back()};
}

ValueRef CallGraphBuilder::opaque_input(const std::string& name, const std::string& source) {
  CallValueInfo info;
  info.kind = CallValueInfo::Kind::Opaque;
  info.name = name;
  graph_.inputs.push_back(add(std::move(info)));
  graph_.input_sources.push_back(source);
  return {graph_.inputs.back()};
}

OriginId CallGraphBuilder::origin(const py::tuple& origin) {
  return graph_.origins.push_back({origin[0].cast<std::string>(), origin[1].cast<int>(), origin[2].cast<std::string>(), origin[3].cast<std::string>()});
}

std::vector<ValueRef> CallGraphBuilder::call(const std::string& callee, const std::string& overload, const py::sequence& args, const py::dict& kwargs,
                                             const py::sequence& results, bool result_is_list, const py::tuple& origin_of) {
  model::Call call;
  call.callee = callee;
  call.overload = overload;
  for (const py::handle arg : args) call.args.push_back(argument(arg));
  for (const auto& [name, value] : kwargs) call.kwargs.emplace_back(name.cast<std::string>(), argument(value));
  call.result_is_list = result_is_list;
  call.origin = origin(origin_of);
  std::vector<ValueRef> refs;
  for (const py::handle result : results) {
    CallValueInfo info;
    if (result.is_none()) {
      info.kind = CallValueInfo::Kind::None;
    } else if (py::isinstance<SymText>(result)) {
      info.kind = CallValueInfo::Kind::SymInt;
      info.symbol = expression(result);
    } else {
      const auto fields = result.cast<py::tuple>();
      info.name = fields[0].cast<std::string>();
      info.dtype = dtype_of(fields[1].cast<int>());
      info.device = device_of(fields[2].cast<std::string>(), fields[3].cast<int>());
      info.sizes = expressions(fields[4].cast<py::sequence>());
      info.strides = expressions(fields[5].cast<py::sequence>());
      info.storage_offset = expression(fields[6]);
      info.storage = fields[7].cast<uint32_t>();
      info.conjugate = fields[8].cast<bool>();
      info.negative = fields[9].cast<bool>();
    }
    call.results.push_back(add(std::move(info)));
    refs.push_back({call.results.back()});
  }
  graph_.calls.push_back(std::move(call));
  return refs;
}

namespace {

std::vector<at::Tensor> call_python(const py::function& function, const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& integers) {
  const py::gil_scoped_acquire gil;
  py::list given;
  for (const at::Tensor& tensor : tensors) given.append(tensor.defined() ? py::cast(tensor) : py::none());
  std::vector<at::Tensor> results;
  for (const py::handle result : py::list(function(given, integers))) results.push_back(result.is_none() ? at::Tensor() : result.cast<at::Tensor>());
  return results;
}

}  // namespace

FunctionRef CallGraphBuilder::function(py::function function) {
  // The last graph that owns it may go on any thread, and after the interpreter.
  const std::shared_ptr<py::function> held(new py::function(std::move(function)), [](py::function* object) {
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire gil;
    delete object;
  });
  auto registered =
      torch_bridge::register_function([held](std::vector<at::Tensor> tensors, std::vector<int64_t> integers) { return call_python(*held, tensors, integers); });
  graph_.objects.push_back(std::move(registered.owner));
  return {registered.number};
}

void CallGraphBuilder::output(const py::sequence& outputs) {
  for (const py::handle output : outputs) graph_.outputs.push_back(argument(output));
}

void CallGraphBuilder::join_collectives(int64_t limit, bool sizes_may_vary) {
  graph_ = model::join_collectives(std::move(graph_), torch_bridge::DispatcherSchemas(), limit, sizes_may_vary);
}

void CallGraphBuilder::restride_input(uint32_t position, const py::sequence& strides) { graph_.input_strides[position] = expressions(strides); }

std::string CallGraphBuilder::graph_text() const { return graph::print(frontend::import_graph(graph_, torch_bridge::DispatcherSchemas(), {})); }

void bind_call_graph_builder(py::module_& module) {
  py::class_<ValueRef>(module, "ValueRef", "A value of the graph being built.").def_readonly("number", &ValueRef::value);
  py::class_<SymText>(module, "Sym", "A symbolic integer as sympy.srepr text.").def(py::init<std::string>());
  py::class_<ConditionValue>(module, "Condition", "A condition on integers, from its sympy.srepr text (csrc/model/conditions.h): 1 or 0.")
      .def(py::init([](const std::string& srepr) { return ConditionValue{model::parse_condition(srepr)}; }));
  py::class_<FunctionRef>(module, "Function", "A Python function that a graph calls.");
  py::class_<CallGraphBuilder>(module, "CallGraphBuilder", "Receives a graph one call at a time; see fx_reader.py.")
      .def(py::init<std::string>(), py::arg("name"))
      .def("symbol", &CallGraphBuilder::symbol, py::arg("name"), py::arg("low"), py::arg("high"), py::arg("divisor"))
      .def("tensor_input", &CallGraphBuilder::tensor_input, py::arg("name"), py::arg("dtype"), py::arg("device_type"), py::arg("device_index"),
           py::arg("sizes"), py::arg("strides"), py::arg("storage_offset"), py::arg("storage"), py::arg("source"), py::arg("conjugate"), py::arg("negative"))
      .def("symint_input", &CallGraphBuilder::symint_input, py::arg("name"), py::arg("srepr"), py::arg("source"))
      .def("opaque_input", &CallGraphBuilder::opaque_input, py::arg("name"), py::arg("source"))
      .def("call", &CallGraphBuilder::call, py::arg("callee"), py::arg("overload"), py::arg("args"), py::arg("kwargs"), py::arg("results"),
           py::arg("result_is_list"), py::arg("origin"))
      .def("function", &CallGraphBuilder::function, py::arg("function"))
      .def("order_last_call", &CallGraphBuilder::order_last_call)
      .def("join_collectives", &CallGraphBuilder::join_collectives, py::arg("limit"), py::arg("sizes_may_vary"))
      .def("output", &CallGraphBuilder::output, py::arg("outputs"))
      .def("graph_text", &CallGraphBuilder::graph_text)
      .def("has_functions", &CallGraphBuilder::has_functions)
      .def("calls_text", [](const CallGraphBuilder& builder) { return model::print(builder.graph()); })
      .def_static(
          "from_text", [](const std::string& calls) { return CallGraphBuilder(model::parse(calls)); }, py::arg("calls"),
          "What calls_text printed. It must come from someone the caller trusts.")
      .def("restride_input", &CallGraphBuilder::restride_input, py::arg("position"), py::arg("strides"))
      .def("donate_inputs", &CallGraphBuilder::donate_inputs, py::arg("positions"))
      .def("freeze_inputs", &CallGraphBuilder::freeze_inputs, py::arg("positions"))
      .def("flexible_output_strides", &CallGraphBuilder::flexible_output_strides, py::arg("positions"));
}

}  // namespace cxxinductor::bindings

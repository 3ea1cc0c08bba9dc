#include "unit/frontend/calls.h"

#include <sstream>

namespace cxxinductor::frontend {

using model::SchemaArgument;
using model::SchemaReturn;

namespace {

SchemaArgument argument(std::string name, std::string alias = "", bool written = false) {
  SchemaArgument a;
  a.name = std::move(name);
  a.is_tensor = true;
  a.alias = std::move(alias);
  a.written = written;
  return a;
}

Schema schema(std::vector<SchemaArgument> arguments, size_t returns = 1) {
  Schema s;
  s.arguments = std::move(arguments);
  s.returns.resize(returns);
  for (SchemaReturn& r : s.returns) r.is_tensor = true;
  return s;
}

}  // namespace

TableSchemas::TableSchemas() {
  Schema mm = schema({argument("self"), argument("mat2")});
  mm.planned_form = model::PlannedForm::Structured;
  schemas_["aten::mm"] = mm;
  Schema addmm = schema({argument("self"), argument("mat1"), argument("mat2")});
  addmm.planned_form = model::PlannedForm::Structured;
  schemas_["aten::addmm"] = addmm;
  schemas_["aten::fill.Tensor"] = schema({argument("self"), argument("value")});
  schemas_["aten::copy"] = schema({argument("self"), argument("src")});
  schemas_["aten::cumsum"] = schema({argument("self"), argument("dim")});
  for (const char* name : {"aten::add.Tensor", "aten::mul.Tensor", "aten::index.Tensor", "aten::sub.Tensor"}) {
    schemas_[name] = schema({argument("self"), argument("other")});
  }
  for (const char* name : {"aten::div.Tensor_mode", "aten::gelu_backward"}) schemas_[name] = schema({argument("self"), argument("other")});
  schemas_["aten::gelu"] = schema({argument("self")});
  for (const char* name : {"aten::scatter.reduce", "aten::scatter_reduce.two"})
    schemas_[name] = schema({argument("self"), argument("dim"), argument("index"), argument("src"), argument("reduce")});
  Schema rand = schema({argument("self")});
  rand.nondeterministic_seeded = true;
  for (const char* name : {"rand", "rand_like", "uniform", "normal_functional", "bernoulli.p", "exponential", "randint", "randint.low"})
    schemas_["aten::" + std::string(name)] = rand;
  Schema put = schema({argument("self", "a", true), argument("indices"), argument("values")});
  put.returns[0].alias = "a";
  schemas_["aten::index_put_"] = put;
  Schema strided = schema({argument("self", "a"), argument("size"), argument("stride"), argument("storage_offset")});
  strided.returns[0].alias = "a";
  schemas_["aten::as_strided"] = strided;
  for (const char* name : {"aten::index_add", "aten::index_copy"})
    schemas_[name] = schema({argument("self"), argument("dim"), argument("index"), argument("source")});
  schemas_["aten::index_put"] = schema({argument("self"), argument("indices"), argument("values"), argument("accumulate")});
  schemas_["aten::embedding_dense_backward"] =
      schema({argument("grad_output"), argument("indices"), argument("num_weights"), argument("padding_idx"), argument("scale_grad_by_freq")});
  schemas_["aten::as_strided_scatter"] = schema({argument("self"), argument("src"), argument("size"), argument("stride"), argument("storage_offset")});
  Schema convolution = schema({argument("input"), argument("weight"), argument("bias"), argument("stride"), argument("padding"), argument("dilation"),
                               argument("transposed"), argument("output_padding"), argument("groups")});
  convolution.planned_form = model::PlannedForm::ByBackend;
  schemas_["aten::convolution"] = convolution;
  schemas_["aten::convolution_backward"] = schema({argument("grad"), argument("input"), argument("weight")}, 3);
}

std::optional<Schema> TableSchemas::find(std::string_view callee, std::string_view overload) const {
  std::string name(callee);
  if (!overload.empty()) name += "." + std::string(overload);
  const auto found = schemas_.find(name);
  return found == schemas_.end() ? std::nullopt : std::optional(found->second);
}

CallValueInfo Calls::info(const std::string& name, const TensorType& type, Device device) const {
  CallValueInfo value;
  value.name = name;
  value.dtype = type.dtype;
  value.device = device;
  value.sizes = type.sizes;
  value.strides = type.strides.empty() ? graph::contiguous_strides(type.sizes) : type.strides;
  return value;
}

Arg Calls::input_on(Device device, const std::string& name, TensorType type) {
  graph.values.push_back(info(name, type, device));
  graph.inputs.push_back(static_cast<CallValue>(graph.values.size() - 1));
  graph.input_sources.push_back(name);
  return OperandRef{graph.inputs.back()};
}

Arg Calls::input(const std::string& name, TensorType type) { return input_on(device_, name, std::move(type)); }

std::vector<Arg> Calls::call_many(const std::string& name, std::vector<Arg> args, std::vector<TensorType> results,
                                  std::vector<std::pair<std::string, Arg>> kwargs) {
  Call call;
  const size_t dot = name.find('.');
  call.callee = name.substr(0, dot);
  call.overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  call.args = std::move(args);
  call.kwargs = std::move(kwargs);
  call.origin = graph.origins.push_back({"model.py", static_cast<int>(graph.calls.size()) + 1, "", name});
  std::vector<Arg> refs;
  for (const TensorType& type : results) {
    graph.values.push_back(info("v" + std::to_string(graph.values.size()), type, device_));
    call.results.push_back(static_cast<CallValue>(graph.values.size() - 1));
    refs.emplace_back(OperandRef{call.results.back()});
  }
  graph.calls.push_back(std::move(call));
  return refs;
}

Arg Calls::call(const std::string& name, std::vector<Arg> args, TensorType result, std::vector<std::pair<std::string, Arg>> kwargs) {
  return call_many(name, std::move(args), {std::move(result)}, std::move(kwargs)).front();
}

Arg Calls::call_on(Device device, const std::string& name, std::vector<Arg> args, TensorType result) {
  const Arg value = call(name, std::move(args), std::move(result));
  graph.values.back().device = device;
  return value;
}

graph::Graph Calls::import() const { return import_graph(graph, TableSchemas(), environment); }

std::string Calls::text(const Arg& value) {
  output(value);
  return graph::print(import());
}

std::vector<std::string> body_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (const size_t origin = line.find(" from \""); origin != std::string::npos) line.resize(origin);
    for (size_t fixed; (fixed = line.find(" fixed")) != std::string::npos;) line.erase(fixed, 6);
    const size_t start = line.find_first_not_of(' ');
    if (start == std::string::npos || line[start] != '%') continue;
    lines.push_back(line.substr(start));
  }
  return lines;
}

size_t count_externs(const graph::Graph& graph) {
  size_t count = 0;
  for (const graph::Node& node : graph.nodes) count += node.as<graph::Extern>() != nullptr ? 1 : 0;
  return count;
}

}  // namespace cxxinductor::frontend

// Nodes of higher-order operators.
#include <algorithm>

#include "ir/device_types.h"
#include "ir/text_parts.h"
#include "model/control_flow.h"
#include "readers/pt2/graph_reader.h"
#include "readers/pt2/printable.h"
#include "readers/pt2/types.h"

namespace cxxinductor::readers {

using model::Call;
using model::CallValueInfo;

namespace {

constexpr size_t max_prefix = 256;  // characters before the names of a subgraph's values

Field subgraph_at(const Field& operands, size_t position) {
  operands.require(position < operands.size(), "a subgraph among the operands");
  return operands.item(position).at("arg").at("as_graph");
}

}  // namespace

void GraphReader::read_higher_order(const Field& node, std::string_view name) {
  const Field operands = node.at("inputs");
  // Autograd's mode is not part of a call graph. Operands follow behind the subgraph.
  if (name == "wrap_with_set_grad_enabled") return read_inside(node, subgraph_at(operands, 1), 2, autocast_);
  if (name == "invoke_subgraph") return read_inside(node, subgraph_at(operands, 0), 2, autocast_);
  if (name == "wrap_with_autocast") return read_inside(node, subgraph_at(operands, 4), 5, read_autocast(operands));
  if (name == "auto_functionalized") return read_functionalized(node, false);
  if (name == "auto_functionalized_v2") return read_functionalized(node, true);
  if (name == "with_effects") return read_with_effects(node);
  if (name == "cond" || name == "while_loop" || name == "scan" || name == "map_impl" || name == "associative_scan") return read_control_flow(node, name);
  node.unsupported("higher_order::{}", printable(name));
}

// The mode inside of wrap_with_autocast(device type, dtype, whether it is on, ...): that of the graph around it, but for one device.
model::Autocast GraphReader::read_autocast(const Field& operands) const {
  const auto [device_kind, device] = operands.item(0).at("arg").alternative();
  const std::optional<Device> found = device_kind == "as_string" ? find_device(device.text()) : std::nullopt;
  device.require(found && to_string(found->type) == device.text(), "cpu or cuda");
  const Device on_device = found.value_or(Device());
  model::Autocast autocast = autocast_;
  const Arg dtype = argument(operands.item(1).at("arg")), on = argument(operands.item(2).at("arg"));
  operands.item(2).require(on.as<bool>() != nullptr, "a truth value");
  if (!*on.as<bool>()) {
    autocast.dtypes.erase(on_device.type);
    return autocast;
  }
  operands.item(1).require(dtype.is_none() || dtype.as<DType>() != nullptr, "a scalar type or none");
  const DType narrow = dtype.is_none() ? eager(on_device).autocast : *dtype.as<DType>();
  operands.item(1).require(narrow == DType::F16 || narrow == DType::BF16, "a type of 16-bit floats");
  autocast.dtypes[on_device.type] = narrow;
  return autocast;
}

void GraphReader::read_inside(const Field& node, const Field& subgraph, size_t first_operand, const model::Autocast& autocast) {
  const Field name = subgraph.at("name"), graph = subgraph.at("graph");
  name.require(is_text_name(name.text()), "the name of a subgraph");
  std::string prefix = fmt::format("{}{}.", prefix_, name.text());
  if (const int before = reading_.subgraphs[prefix]++; before > 0) prefix += fmt::format("{}.", before);
  name.require(prefix.size() <= max_prefix, "shorter names of nested subgraphs");
  GraphReader inner(reading_, graph, std::move(prefix), autocast);

  const Field operands = node.at("inputs"), inputs = graph.at("inputs");
  operands.require(operands.size() == first_operand + inputs.size(), fmt::format("{} operands for the subgraph", inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Field operand = operands.item(first_operand + i).at("arg");
    inner.bind_outside(inputs.item(i), argument(operand), operand);
  }
  inner.read_nodes();

  const Field results = graph.at("outputs");
  std::vector<Field> outputs;  // of the node
  node.at("outputs").for_each_item([&](const Field& output) { outputs.push_back(output); });
  node.at("outputs").require(outputs.size() == results.size(), fmt::format("the subgraph's {} results", results.size()));
  for (size_t i = 0; i < outputs.size(); ++i) bind_outside(outputs[i], inner.argument(results.item(i)), results.item(i));
}

// Binds what an input of a subgraph, or a result of its node, names to a value of the other graph.
void GraphReader::bind_outside(const Field& argument, const Arg& value, const Field& user) {
  const auto [kind, field] = argument.alternative();
  const auto* ref = value.as<OperandRef>();
  const bool is_tensor = ref != nullptr && reading_.calls.values[ref->operand].kind == CallValueInfo::Kind::Tensor;
  if (kind == "as_tensor") {
    user.require(is_tensor, "a tensor");
    bind(field.at("name"), value);
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    user.require(!is_tensor, "a number");
    if (field.alternative().first == "as_name") bind(field.at("as_name"), value);
  } else if (kind == "as_tensors" || kind == "as_graph" || kind == "as_custom_obj") {
    argument.unsupported("operands and results of subgraphs of kind {}", printable(kind));
  }
}

// An operand of control flow: a list, or one value. torch writes lists of tensors and sizes as lists of tensors.
Arg GraphReader::operand(const Field& argument) const {
  const auto [kind, value] = argument.alternative();
  if (kind != "as_tensors") return this->argument(argument);
  ArgList list;
  value.for_each_item([&](const Field& item) { list.push_back(bound(item.at("name"))); });
  return list;
}

// Reads it as a graph of its own; returns the name that it has there.
std::string GraphReader::read_subgraph(const Field& subgraph) {
  const Field name = subgraph.at("name"), graph = subgraph.at("graph");
  name.require(is_text_name(name.text()), "the name of a subgraph");
  auto calls = std::make_shared<model::CallGraph>();
  calls->name = prefix_ + std::string(name.text());
  if (const int before = reading_.subgraphs[calls->name]++; before > 0) calls->name += fmt::format(".{}", before);
  name.require(calls->name.size() <= max_prefix, "shorter names of nested subgraphs");
  calls->assumptions = reading_.calls.assumptions;
  Reading reading{*calls, reading_.schemas};
  GraphReader inner(reading, graph, "", autocast_);
  graph.at("inputs").for_each_item([&](const Field& input) { inner.add_input(input, ""); });
  inner.read_nodes();
  graph.at("outputs").for_each_item([&](const Field& output) {
    Arg value = inner.argument(output);
    if (value.as<bool>() != nullptr) value = int64_t{*value.as<bool>()};
    output.require(value.as<OperandRef>() != nullptr || value.as<sym::Expr>() != nullptr || value.as<int64_t>() != nullptr,
                   "a tensor or an integer as the result of a subgraph");
    calls->outputs.push_back(std::move(value));
  });
  std::string found = calls->name;
  if (!reading_.calls.subgraphs.emplace(found, std::move(calls)).second) name.fail("a new name of a subgraph");
  return found;
}

void GraphReader::read_control_flow(const Field& node, std::string_view name) {
  Call call;
  call.callee = fmt::format("higher_order::{}", name);
  node.at("inputs").for_each_item([&](const Field& input) {
    const auto [kind, value] = input.at("arg").alternative();
    call.args.push_back(kind == "as_graph" ? Arg(read_subgraph(value)) : operand(input.at("arg")));
  });
  call.origin = read_origin(node);
  read_result_list(node.at("outputs"), call);
  node.guarded([&] { return model::read_control_flow(reading_.calls, call); });
  reading_.calls.calls.push_back(std::move(call));
}

// with_effects(token, op, arguments of the op ...) -> token, results of the op. Its call is ordered, which is all that tokens say.
void GraphReader::read_with_effects(const Field& node) {
  const Field operands = node.at("inputs"), outputs = node.at("outputs");
  constexpr size_t first_argument = 2;
  operands.require(operands.size() >= first_argument, "a token and an op");
  Call call;
  read_target(operands.item(1).at("arg").at("as_operator"), call);
  call.ordered = true;
  call.autocast = autocast_;
  call.origin = read_origin(node);
  const auto schema = reading_.schemas.find(call.callee, call.overload);
  if (!schema) operands.item(1).fail("an op that is registered with the dispatcher");
  for (size_t i = first_argument; i < operands.size(); ++i) {
    enum : int64_t { Positional = 1, Keyword = 2 };
    const Field operand = operands.item(i);
    Arg value = argument(operand.at("arg"));
    if (operand.at("kind").integer(Positional, Keyword) == Positional)
      call.args.push_back(std::move(value));
    else
      call.kwargs.emplace_back(operand.at("name").text(), std::move(value));
  }
  operands.require(call.args.size() + call.kwargs.size() <= schema->arguments.size(),
                   fmt::format("at most {} arguments of {}", schema->arguments.size(), model::full_name(call)));
  const size_t results = schema->returns.size();
  outputs.require(outputs.size() == 1 + std::max<size_t>(results, 1), "a token and the results of the op");
  for (size_t r = 0; r < results; ++r) {
    const Field output = outputs.item(1 + r);
    if (output.alternative().first == "as_tensors") output.unsupported("a list as the result of {}", model::full_name(call));
    read_result(output, call);
  }
  bind_token(outputs.item(0));
  reading_.calls.calls.push_back(std::move(call));
}

}  // namespace cxxinductor::readers

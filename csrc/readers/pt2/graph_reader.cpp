#include "readers/pt2/graph_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "ir/text_parts.h"
#include "readers/pt2/printable.h"
#include "readers/pt2/types.h"

namespace cxxinductor::readers {

using model::Call;
using model::CallValue;
using model::CallValueInfo;
using model::Schema;

namespace {

constexpr size_t max_arguments = 1024;  // of a call
constexpr std::string_view dispatcher_prefix = "torch.ops.";
constexpr std::string_view higher_order_prefix = "torch.ops.higher_order.";

// Ops of the dispatcher that compute on sizes alone.
bool reads_sizes(std::string_view callee) {
  static constexpr std::array<std::string_view, 4> ops{"aten::sym_size", "aten::sym_stride", "aten::sym_numel", "aten::sym_storage_offset"};
  return std::find(ops.begin(), ops.end(), callee) != ops.end();
}

// The innermost frame of a Python stack trace: the last `File "a/b.py", line 3`.
void read_frame(std::string_view trace, Origin& origin) {
  constexpr std::string_view start = "File \"", middle = "\", line ";
  const size_t begin = trace.rfind(start);
  if (begin == trace.npos) return;
  const size_t end = trace.find(middle, begin);
  if (end == trace.npos) return;
  const std::string_view path = trace.substr(begin + start.size(), end - begin - start.size());
  const std::string_view number = trace.substr(end + middle.size());
  if (std::from_chars(number.data(), number.data() + number.size(), origin.line).ec != std::errc()) return;
  origin.file = path.substr(path.find_last_of("/\\") + 1);  // npos + 1 == 0
}

// "key,path,type;key,path,type" -> the last path.
std::string_view innermost_module(std::string_view stack) {
  const std::string_view last = stack.substr(stack.rfind(';') + 1);
  const size_t begin = last.find(',');
  if (begin == last.npos) return {};
  const size_t end = last.find(',', begin + 1);
  const std::string_view path = last.substr(begin + 1, end == last.npos ? end : end - begin - 1);
  return path.starts_with('_') ? std::string_view() : path;  // "_empty_nn_module_stack...": none
}

}  // namespace

void read_target(const Field& field, Call& call) {
  const std::string_view target = field.text();
  if (target.starts_with(dispatcher_prefix)) {
    const std::string_view name = target.substr(dispatcher_prefix.size());
    const size_t first = name.find('.'), last = name.rfind('.');
    const bool has_parts = is_text_name(name) && first > 0 && last > first + 1 && last + 1 < name.size();
    field.require(first != name.npos && has_parts, "torch.ops.namespace.op.overload");
    call.callee = fmt::format("{}::{}", name.substr(0, first), name.substr(first + 1, last - first - 1));
    call.overload = name.substr(last + 1) == "default" ? "" : name.substr(last + 1);
    return;
  }
  static constexpr std::array<std::string_view, 3> modules{"_operator", "math", "torch"};
  const size_t dot = target.rfind('.');
  const std::string_view module = target.substr(0, dot == target.npos ? 0 : dot);
  if (std::find(modules.begin(), modules.end(), module) == modules.end()) field.unsupported("calls of {}", printable(target));
  field.require(is_text_name(target.substr(dot + 1)), "the name of a function");
  call.callee = fmt::format("{}::{}", module, target.substr(dot + 1));
}

GraphReader::GraphReader(Reading& reading, const Field& graph, std::string prefix, const model::Autocast& autocast)
    : reading_(reading), graph_(graph), prefix_(std::move(prefix)), autocast_(autocast) {}

std::string GraphReader::new_name(const Field& name) const {
  name.require(is_text_name(name.text()), "a name of letters, digits, _ and .");
  if (names_.contains(std::string(name.text()))) name.fail("a new name, which no value before has");
  return std::string(name.text());
}

void GraphReader::bind(const Field& name, Arg value) { names_.emplace(new_name(name), std::move(value)); }

CallValue GraphReader::add_value(CallValueInfo info, std::string name) {
  info.name = prefix_ + std::move(name);
  reading_.calls.values.push_back(std::move(info));
  return static_cast<CallValue>(reading_.calls.values.size() - 1);
}

CallValue GraphReader::define_tensor(const Field& name) {
  std::string text = new_name(name);
  const auto meta = graph_.at("tensor_values").find(name.text());
  if (!meta) name.fail("the name of a tensor in tensor_values");
  const CallValue id = add_value(read_tensor(*meta, reading_.symbols), std::move(text));
  bind(name, OperandRef{id});
  return id;
}

CallValue GraphReader::add_tensor_input(const Field& tensor, std::string source) {
  const CallValue id = define_tensor(tensor.at("name"));
  reading_.calls.inputs.push_back(id);
  reading_.calls.input_sources.push_back(std::move(source));
  return id;
}

CallValue GraphReader::add_input(const Field& argument, std::string source) {
  const auto [kind, value] = argument.alternative();
  if (kind == "as_tensor") return add_tensor_input(value, std::move(source));
  if (kind == "as_custom_obj") argument.unsupported("custom objects of class {}", printable(value.at("class_fqn").text()));
  if (kind != "as_sym_int") argument.unsupported("inputs of kind {}", printable(kind));
  const Field name = value.at("as_name");
  const auto expression = graph_.at("sym_int_values").find(name.text());
  if (!expression) name.fail("the name of an integer in sym_int_values");
  CallValueInfo info;
  info.kind = CallValueInfo::Kind::SymInt;
  info.symbol = reading_.symbols.integer(*expression);
  const sym::Expr symbol = info.symbol;
  const CallValue id = add_value(std::move(info), new_name(name));
  bind(name, symbol);
  reading_.calls.inputs.push_back(id);
  reading_.calls.input_sources.push_back(std::move(source));
  return id;
}

void GraphReader::read_nodes() {
  graph_.at("nodes").for_each_item([&](const Field& node) { read_node(node); });
}

void GraphReader::read_node(const Field& node) {
  const Field target = node.at("target");
  if (target.text().starts_with(higher_order_prefix)) return read_higher_order(node, target.text().substr(higher_order_prefix.size()));
  Call call;
  read_target(target, call);
  const bool on_sizes = !target.text().starts_with(dispatcher_prefix) || reads_sizes(call.callee);
  const std::optional<Schema> schema = on_sizes ? std::nullopt : reading_.schemas.find(call.callee, call.overload);
  read_arguments(node, schema ? &*schema : nullptr, call);
  if (on_sizes && read_arithmetic(node)) return;
  call.origin = read_origin(node);
  call.autocast = autocast_;
  read_results(node, schema ? &*schema : nullptr, call);
  reading_.calls.calls.push_back(std::move(call));
}

OriginId GraphReader::read_origin(const Field& node) {
  Origin origin;
  const Field metadata = node.at("metadata");
  if (const auto trace = metadata.find("stack_trace")) read_frame(trace->text(), origin);
  if (const auto stack = metadata.find("nn_module_stack")) origin.module = innermost_module(stack->text());
  const std::string_view target = node.at("target").text();
  origin.call = target.starts_with(dispatcher_prefix) ? target.substr(dispatcher_prefix.size()) : target;
  for (std::string* part : {&origin.file, &origin.module, &origin.call}) *part = printable(*part);
  return reading_.calls.origins.push_back(std::move(origin));
}

void GraphReader::read_arguments(const Field& node, const Schema* schema, Call& call) const {
  const Field inputs = node.at("inputs");
  inputs.require(inputs.size() <= max_arguments, fmt::format("at most {} arguments", max_arguments));
  inputs.for_each_item([&](const Field& input) { add_argument(input, schema, call); });
}

void GraphReader::add_argument(const Field& input, const Schema* schema, Call& call) const {
  enum : int64_t { Positional = 1, Keyword = 2 };
  const Field name = input.at("name");
  const int64_t kind = input.at("kind").integer(Positional, Keyword);
  if (schema != nullptr) {
    const auto& arguments = schema->arguments;
    const auto found = std::find_if(arguments.begin(), arguments.end(), [&](const auto& a) { return a.name == name.text(); });
    if (found == arguments.end()) name.fail(fmt::format("an argument of {}", model::full_name(call)));
    const auto position = static_cast<size_t>(found - arguments.begin());
    const bool in_place = kind == Positional ? position == call.args.size() && !found->kwarg_only : position >= call.args.size();
    name.require(in_place, "arguments in the order of the schema");
  }
  Arg value = argument(input.at("arg"));
  if (kind == Positional) {
    name.require(call.kwargs.empty(), "positional arguments before those by keyword");
    call.args.push_back(std::move(value));
    return;
  }
  for (const auto& [keyword, given] : call.kwargs) name.require(keyword != name.text(), "an argument that is not given twice");
  name.require(is_symbol_name(name.text()), "the name of an argument");
  call.kwargs.emplace_back(name.text(), std::move(value));
}

void GraphReader::read_results(const Field& node, const Schema* schema, Call& call) {
  const Field outputs = node.at("outputs");
  const auto is_list = [](const Field& output) { return output.alternative().first == "as_tensors"; };
  const size_t count = outputs.size();
  const bool list_schema = schema != nullptr && schema->returns.size() == 1 && schema->returns.front().is_list;
  if (schema != nullptr && count != schema->returns.size()) outputs.fail(fmt::format("the {} results of {}", schema->returns.size(), model::full_name(call)));
  call.result_is_list = count == 1 && is_list(outputs.item(0));
  if (schema != nullptr && list_schema != call.result_is_list) outputs.fail(list_schema ? "a list of tensors" : "results that are not a list");
  outputs.for_each_item([&](const Field& output) {
    if (!is_list(output)) return read_result(output, call);
    if (!call.result_is_list) output.unsupported("a list beside other results of {}", model::full_name(call));
    output.at("as_tensors").for_each_item([&](const Field& item) { call.results.push_back(define_tensor(item.at("name"))); });
  });
}

void GraphReader::read_result(const Field& output, Call& call) {
  const auto [kind, value] = output.alternative();
  if (kind == "as_tensor") {
    call.results.push_back(define_tensor(value.at("name")));
  } else if (kind == "as_none") {
    CallValueInfo none;
    none.kind = CallValueInfo::Kind::None;
    reading_.calls.values.push_back(std::move(none));
    call.results.push_back(static_cast<CallValue>(reading_.calls.values.size() - 1));
  } else if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    read_symbolic_result(kind, value.at("as_name"), call);
  } else {
    output.unsupported("results of kind {}", printable(kind));
  }
}

// A number that a call reads from a tensor or makes of floats. An integer, or a truth value that a symbol stands for,
// is defined by the call; others name it.
void GraphReader::read_symbolic_result(std::string_view kind, const Field& name, Call& call) {
  CallValueInfo info;
  info.kind = kind == "as_sym_float" ? CallValueInfo::Kind::SymFloat : CallValueInfo::Kind::SymBool;
  std::optional<sym::Expr> expression;
  if (kind == "as_sym_int") {
    const auto found = graph_.at("sym_int_values").find(name.text());
    if (!found) name.fail("the name of an integer in sym_int_values");
    expression = info.symbol = reading_.symbols.integer(*found);
  } else if (kind == "as_sym_bool") {
    const auto found = graph_.at("sym_bool_values").find(name.text());
    if (!found) name.fail("the name of a truth value in sym_bool_values");
    try {
      expression = reading_.symbols.truth(*found);
      if (expression->free_symbols().size() == 1) info.symbol = expression->free_symbols().front();
    } catch (const Unsupported&) {  // of floats: the call makes it
    }
    if (expression && expression->free_symbols().size() != 1) expression.reset();
  }
  if (expression) info.kind = CallValueInfo::Kind::SymInt;
  call.results.push_back(add_value(std::move(info), new_name(name)));
  bind(name, expression ? Arg(*expression) : Arg(OperandRef{call.results.back()}));
}

void GraphReader::read_result_list(const Field& outputs, Call& call) {
  outputs.for_each_item([&](const Field& output) { read_result(output, call); });
}

// The expression or number that a result is, false if it has none: a float that is made of sizes, or a comparison of
// one.
std::pair<bool, Arg> GraphReader::expression_of(const Field& output) {
  const auto [kind, value] = output.alternative();
  const Field name = value.at("as_name");
  const auto look_up = [&](std::string_view table) {
    const auto found = graph_.at(table).find(name.text());
    if (!found) name.fail(fmt::format("a name in {}", table));
    return *found;
  };
  if (kind == "as_sym_int") return {true, reading_.symbols.integer(look_up("sym_int_values"))};
  if (kind == "as_sym_float") {
    const auto [form, number] = look_up("sym_float_values").alternative();
    return form == "as_float" ? std::pair(true, Arg(number.real())) : std::pair(false, Arg());
  }
  output.require(kind == "as_sym_bool", "a number");
  const Field truth = look_up("sym_bool_values");
  try {
    return {true, reading_.symbols.truth(truth)};
  } catch (const Unsupported&) {
    return {false, Arg()};
  }
}

bool GraphReader::read_arithmetic(const Field& node) {
  const Field outputs = node.at("outputs");
  outputs.require(outputs.size() == 1, "one result");
  const Field output = outputs.item(0);
  auto [known, value] = expression_of(output);
  if (known) bind(output.alternative().second.at("as_name"), std::move(value));
  return known;
}

}  // namespace cxxinductor::readers

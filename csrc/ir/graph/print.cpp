#include "ir/call_text.h"
#include "ir/graph/attribute_text.h"
#include "ir/graph/infer.h"
#include "ir/graph/text.h"
#include "ir/program_text.h"
#include "ir/text_parts.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::graph {
namespace {

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), device_(header_device(graph)) {}

  std::string print() {
    std::vector<std::string> inputs;
    for (const Input& input : graph_.inputs) inputs.push_back(input_text(input));
    std::string device = device_ == Device() ? "" : fmt::format(" on {} ", to_string(device_));
    writer_.line("graph @{}{}({}){} {{", graph_.name, device, fmt::join(inputs, ", "), print_where(graph_.assumptions));
    writer_.indent();
    print_eager_peaks(writer_, graph_.eager_peaks, device_);
    for (const Node& node : graph_.nodes) print_node(node);
    for (const Mutation& mutation : graph_.mutations) {
      CXXI_CHECK(mutation.input < graph_.inputs.size(), "mutation of input {}", mutation.input);
      const Input& input = graph_.inputs[mutation.input];
      const std::string_view word = is_last_version(graph_, mutation) ? "final" : "version";
      writer_.line("{} {} = {}", word, name(input.value), name(mutation.value));
    }
    std::vector<std::string> outputs;
    for (const Output& output : graph_.outputs) outputs.push_back(output_text(output));
    writer_.line("return{}{}", outputs.empty() ? "" : " ", fmt::join(outputs, ", "));
    writer_.dedent();
    writer_.line("}}");
    return std::move(writer_).take();
  }

 private:
  // The first tensor input's, or else the first result's.
  static Device header_device(const Graph& graph) {
    for (const Input& input : graph.inputs)
      if (input.kind == Input::Kind::Tensor && graph.values.contains(input.value)) return graph.values[input.value].device;
    for (const Node& node : graph.nodes)
      if (!node.results.empty() && graph.values.contains(node.results[0])) return graph.values[node.results[0]].device;
    return {};
  }
  std::string name(ValueId id) const { return graph_.values.contains(id) ? "%" + graph_.values[id].name : "%?"; }

  static std::string type_text(const Value& value) {
    std::string text = ": ";
    text += to_string(value.dtype);
    text += print_expr_list(value.sizes);
    return text;
  }
  // What a value has beyond what the reader assumes.
  static std::string layout_text(const Value& value, const Value& assumed) {
    std::string text;
    if (value.layout.strides != assumed.layout.strides) text += " strides " + print_expr_list(value.layout.strides);
    if (value.layout.kind != assumed.layout.kind) text += value.layout.kind == Layout::Kind::Fixed ? " fixed" : " flexible";
    if (value.device != assumed.device) text += " on " + to_string(value.device);
    return text;
  }
  Value declared(const Value& value, Layout::Kind kind) const {
    Value assumed = value;
    assumed.device = device_;
    assumed.layout = {kind, contiguous_strides(value.sizes)};
    return assumed;
  }

  std::string input_text(const Input& input) const {
    std::string text, expected_source;
    switch (input.kind) {
      case Input::Kind::Tensor: {
        CXXI_CHECK(graph_.values.contains(input.value), "an input names no value");
        const Value& value = graph_.values[input.value];
        text = "%" + value.name + type_text(value) + layout_text(value, declared(value, Layout::Kind::Fixed));
        if (input.donated) text += " donated";
        if (input.frozen) text += " frozen";
        expected_source = value.name;
        break;
      }
      case Input::Kind::Symbol:
        text = "sym " + input.symbol;
        expected_source = input.symbol;
        break;
      case Input::Kind::Opaque:
        text = "opaque";
        break;
    }
    return input.source == expected_source ? text : text + " from " + quote(input.source);
  }

  std::string output_text(const Output& output) const {
    switch (output.kind) {
      case Output::Kind::Tensor:
        return name(output.value) + (output.flexible_strides ? " flexible_strides" : "");
      case Output::Kind::Symbol:
        return fmt::format("expr({})", sym::to_string(output.symbol));
      case Output::Kind::None:
        return "none";
    }
    return "";
  }

  std::string operand_text(const Operand& operand, std::optional<DType> immediate) const {
    if (const auto* id = std::get_if<ValueId>(&operand)) return name(*id);
    if (const auto* e = std::get_if<sym::Expr>(&operand)) return fmt::format("expr({})", sym::to_string(*e));
    const auto& scalar = std::get<Scalar>(operand);
    return immediate == scalar.dtype() ? to_string(scalar) : print_typed_scalar(scalar);
  }

  void print_node(const Node& node) {
    // Appended, not formatted: the text of a graph is the key of its plan, which every compile prints.
    const std::vector<Value> assumed = assumed_results(node);
    const bool typed = declares_sizes(node.kind) || node.as<Extern>();
    std::string line;
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Value& value = graph_.values[node.results[i]];
      line += i > 0 ? ", %" : "%";
      line += value.name;
      if (typed) line += type_text(value);
      line += layout_text(value, i < assumed.size() ? assumed[i] : value);
    }
    if (!node.results.empty()) line += " = ";
    line += right_side(node);
    line += print_origin(graph_.origins, node.origin);
    writer_.raw_line(line);
  }

  // The results that the reader will make of this node's text without layouts.
  std::vector<Value> assumed_results(const Node& node) const {
    if (node.as<Extern>()) {
      std::vector<Value> results;
      for (ValueId id : node.results) results.push_back(declared(graph_.values[id], Layout::Kind::Fixed));
      return results;
    }
    Value declaration;
    if (!node.results.empty()) declaration = graph_.values[node.results[0]];
    if (node.as<Full>() || node.as<Iota>()) declaration.device = device_;
    if (node.as<Elementwise>()) declaration.device = {};
    try {
      return infer_results(graph_, node.kind, node.operands, declaration);
    } catch (const UserError&) {
      return {};  // an invalid graph still prints: the verifier's report contains its text
    }
  }

  std::string right_side(const Node& node) const {
    if (const auto* e = node.as<Extern>()) return extern_text(*e, node);
    std::optional<DType> immediate;
    size_t bool_operand = node.operands.size();
    if (const auto* e = node.as<Elementwise>()) {
      immediate = immediate_dtype(graph_, e->op, node.operands);
      if (info(e->op).rule == TypeRule::Select) bool_operand = 0;
    } else if (node.as<Full>() && !node.results.empty()) {
      immediate = compute_type(graph_.values[node.results[0]].dtype);
    }
    std::string text = head(node);
    text += '(';
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (i > 0) text += ", ";
      text += operand_text(node.operands[i], i == bool_operand ? DType::Bool : immediate);
    }
    text += ')';
    return text;
  }

  std::string head(const Node& node) const {
    const auto* elementwise = node.as<Elementwise>();
    if (!elementwise || info(elementwise->op).rule != TypeRule::Cast || node.results.empty()) return print_kind(node.kind);
    return fmt::format("{}<{}>", print_kind(node.kind), to_string(graph_.values[node.results[0]].dtype));
  }

  std::string extern_text(const Extern& e, const Node& node) const {
    std::vector<std::string> operands;
    for (const Operand& operand : node.operands) operands.push_back(operand_text(operand, std::nullopt));
    std::string text = print_call(e, operands);
    if (e.ordered) text += " ordered";
    if (!e.exact_strides) text += " flexible_strides";
    return text;
  }

  const Graph& graph_;
  Device device_;
  TextWriter writer_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).print(); }

}  // namespace cxxinductor::graph

#include <unordered_map>

#include "ir/call_text.h"
#include "ir/graph/attribute_text.h"
#include "ir/graph/infer.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/program_text.h"
#include "ir/text_parts.h"
#include "support/error.h"

namespace cxxinductor::graph {
namespace {

// "%name: dtype[sizes] strides [..] fixed on device", of which a node may leave out all but the name.
struct Declaration {
  TextCursor start;
  std::string name;
  std::optional<DType> dtype;
  std::vector<sym::Expr> sizes;
  std::optional<std::vector<sym::Expr>> strides;
  std::optional<Layout::Kind> kind;
  std::optional<Device> device;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text), builder_(graph_), origins_(graph_.origins) {}

  Graph parse() {
    parse_guarded(cursor_, [&] { parse_graph(); });
    require_valid("graph", verify(graph_));
    return std::move(graph_);
  }

 private:
  void parse_graph() {
    cursor_.expect("graph");
    graph_.name = cursor_.sigil_name('@', "the graph's name");
    if (cursor_.accept("on")) device_ = parse_device(cursor_);
    cursor_.expect("(");
    if (!cursor_.accept(")")) {
      do parse_input();
      while (cursor_.accept(","));
      cursor_.expect(")");
    }
    parse_where(cursor_, graph_.assumptions);
    cursor_.expect("{");
    graph_.eager_peaks = parse_eager_peaks(cursor_, device_);
    while (!cursor_.looking_at("version") && !cursor_.looking_at("final") && !cursor_.looking_at("return")) {
      if (graph_.nodes.size() >= max_text_items) cursor_.fail("fewer nodes");
      parse_node();
    }
    while (cursor_.accept("version") || cursor_.accept("final")) parse_mutation();
    cursor_.expect("return");
    if (!cursor_.looking_at("}")) {
      do parse_output();
      while (cursor_.accept(","));
    }
    cursor_.expect("}");
    if (!cursor_.at_end()) cursor_.fail("the end of the text");
  }

  void parse_input() {
    Input input;
    if (cursor_.accept("sym")) {
      input.kind = Input::Kind::Symbol;
      input.symbol = input.source = parse_symbol_name(cursor_, "a symbol");
    } else if (cursor_.accept("opaque")) {
      input.kind = Input::Kind::Opaque;
    } else {
      Declaration declaration = parse_declaration();
      if (!declaration.dtype) cursor_.fail("':' and the input's type");
      input.value = add_value(typed_value(declaration), declaration);
      input.source = declaration.name;
      input.donated = cursor_.accept("donated");
      input.frozen = cursor_.accept("frozen");
    }
    if (cursor_.accept("from")) input.source = cursor_.quoted("the input's source");
    graph_.inputs.push_back(std::move(input));
  }

  Declaration parse_declaration() {
    Declaration declaration{.start = cursor_};
    declaration.name = cursor_.sigil_name('%', "a value's name");
    if (cursor_.accept(":")) {
      declaration.dtype = parse_dtype(cursor_);
      declaration.sizes = parse_expr_list(cursor_);
    }
    if (cursor_.accept("strides")) declaration.strides = parse_expr_list(cursor_);
    if (cursor_.accept("fixed"))
      declaration.kind = Layout::Kind::Fixed;
    else if (cursor_.accept("flexible"))
      declaration.kind = Layout::Kind::Flexible;
    if (cursor_.accept("on")) declaration.device = parse_device(cursor_);
    return declaration;
  }

  // A value of an input or extern result: the type is all there.
  Value typed_value(const Declaration& declaration) {
    Value value;
    value.dtype = *declaration.dtype;
    value.device = declaration.device.value_or(device_);
    value.sizes = declaration.sizes;
    value.layout.kind = declaration.kind.value_or(Layout::Kind::Fixed);
    value.layout.strides = declaration.strides ? *declaration.strides : contiguous_strides(value.sizes);
    if (value.layout.strides.size() != value.sizes.size()) cursor_.fail(fmt::format("{} strides for %{}", value.sizes.size(), declaration.name));
    return value;
  }

  ValueId add_value(Value value, Declaration declaration) {
    value.name = declaration.name;
    ValueId id(graph_.values.size());
    if (!known_.emplace(value.name, id).second) declaration.start.fail(fmt::format("a new name: %{} is defined above", value.name));
    return graph_.values.push_back(std::move(value));
  }

  ValueId parse_value() {
    TextCursor start = cursor_;
    std::string name = cursor_.sigil_name('%', "a value");
    auto found = known_.find(name);
    if (found == known_.end()) start.fail(fmt::format("a value defined above (there is no %{})", name));
    return found->second;
  }

  void parse_node() {
    std::vector<Declaration> declarations;
    if (!cursor_.looking_at("extern")) {
      do declarations.push_back(parse_declaration());
      while (cursor_.accept(","));
      cursor_.expect("=");
    }
    if (cursor_.accept("extern")) return parse_extern(declarations);
    if (declarations.empty()) cursor_.fail("a node");
    Node node;
    Value declared;
    if (declarations[0].dtype) {
      declared.dtype = *declarations[0].dtype;
      declared.sizes = declarations[0].sizes;
    }
    declared.device = declarations[0].device.value_or(device_);
    TextCursor start = cursor_;
    node.kind = parse_kind(declared);
    if (std::holds_alternative<Elementwise>(node.kind)) declared.device = declarations[0].device.value_or(Device());
    if ((declares_sizes(node.kind)) && !declarations[0].dtype)
      start.fail("a node whose result type follows from its operands (write %name: dtype[sizes] = ...)");
    node.operands = parse_operands(node.kind, declared);
    if (node.kind.index() == NodeKind(Elementwise{}).index()) broadcast_operands(node.operands);
    std::vector<Value> results = infer_results(graph_, node.kind, node.operands, declared);
    if (results.size() != declarations.size()) start.fail(fmt::format("a node with {} results (this one has {})", declarations.size(), results.size()));
    NodeId id(graph_.nodes.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const Declaration& declaration = declarations[i];
      Value& value = results[i];
      if (declaration.dtype && (*declaration.dtype != value.dtype || !same_sizes(graph_.assumptions, declaration.sizes, value.sizes)))
        start.fail(
            fmt::format("a node that gives the type declared for %{} (it gives {}{})", declaration.name, to_string(value.dtype), print_expr_list(value.sizes)));
      if (declaration.dtype) value.sizes = declaration.sizes;
      if (declaration.strides) value.layout.strides = *declaration.strides;
      if (value.layout.strides.size() != value.sizes.size()) start.fail(fmt::format("{} strides for %{}", value.sizes.size(), declaration.name));
      value.layout.kind = declaration.kind.value_or(Layout::Kind::Flexible);
      value.device = declaration.device.value_or(value.device);
      value.producer = id;
      value.result_index = static_cast<uint32_t>(i);
      node.results.push_back(add_value(std::move(value), declaration));
    }
    node.origin = origins_.parse(cursor_);
    graph_.nodes.push_back(std::move(node));
  }

  // Convenience of hand-written text: an operand of a smaller shape is expanded by a node of its own, named after it.
  void broadcast_operands(std::vector<Operand>& operands) {
    std::vector<sym::Expr> sizes;
    for (const Operand& operand : operands)
      if (const auto* id = std::get_if<ValueId>(&operand)) sizes = broadcast_sizes(graph_.assumptions, sizes, graph_.values[*id].sizes);
    for (Operand& operand : operands) {
      auto* id = std::get_if<ValueId>(&operand);
      if (!id || graph_.values[*id].sizes.empty() || same_sizes(graph_.assumptions, graph_.values[*id].sizes, sizes)) continue;
      std::string stem = graph_.values[*id].name, name;
      for (size_t k = 0; name.empty() || known_.contains(name); ++k) name = fmt::format("{}.expanded{}", stem, k);
      *id = builder_.expand(*id, sizes);
      graph_.values[*id].name = name;
      known_.emplace(name, *id);
    }
  }

  NodeKind parse_kind(Value& declared) {
    TextCursor start = cursor_;
    std::string word = cursor_.identifier("a node kind or scalar op");
    if (std::optional<ScalarOp> op = find_scalar_op(word)) {
      if (info(*op).rule == TypeRule::Cast) {
        cursor_.expect("<");
        declared.dtype = parse_dtype(cursor_);
        cursor_.expect(">");
      }
      return Elementwise{*op};
    }
    return graph::parse_kind(cursor_, word, start);
  }

  // Immediates take the dtype that the tensors among the operands give, so tensors are read first.
  std::vector<Operand> parse_operands(const NodeKind& kind, const Value& declared) {
    std::vector<Operand> operands;
    std::vector<std::pair<size_t, TextCursor>> pending;
    cursor_.expect("(");
    if (!cursor_.accept(")")) {
      do {
        cursor_.skip_blanks();
        if (operands.size() >= max_text_items) cursor_.fail("fewer operands");
        if (cursor_.looking_at("%")) {
          operands.emplace_back(parse_value());
        } else if (cursor_.accept("expr")) {
          cursor_.expect("(");
          operands.emplace_back(parse_expr(cursor_, ")"));
          cursor_.expect(")");
        } else if (looking_at_dtype(cursor_)) {
          operands.emplace_back(parse_typed_scalar(cursor_));
        } else {
          pending.emplace_back(operands.size(), cursor_);
          operands.emplace_back(Scalar());
          cursor_.balanced_until(",)");
        }
      } while (cursor_.accept(","));
      cursor_.expect(")");
    }
    for (auto& [index, start] : pending) {
      std::optional<DType> dtype;
      if (const auto* e = std::get_if<Elementwise>(&kind)) {
        bool condition = info(e->op).rule == TypeRule::Select && index == 0;
        dtype = condition ? DType::Bool : immediate_dtype(graph_, e->op, operands);
      } else if (std::holds_alternative<Full>(kind)) {
        dtype = compute_type(declared.dtype);
      }
      if (!dtype || is_opaque(*dtype)) start.fail("a value, or an immediate with its dtype such as f32(0.5)");
      operands[index] = parse_scalar(start, *dtype);
      if (!start.looking_at(",") && !start.looking_at(")")) start.fail("',' or ')' after the immediate");
    }
    return operands;
  }

  void parse_extern(const std::vector<Declaration>& declarations) {
    Extern callee;
    Node node;
    static_cast<Call&>(callee) = parse_call(cursor_, declarations.size(), [&] { node.operands = parse_operands(Extern{}, {}); });
    callee.ordered = cursor_.accept("ordered");
    callee.exact_strides = !cursor_.accept("flexible_strides");
    node.kind = std::move(callee);
    for (size_t i = 0; i < declarations.size(); ++i) {
      if (!declarations[i].dtype) cursor_.fail(fmt::format("a type for extern result %{}", declarations[i].name));
      Value value = typed_value(declarations[i]);
      value.producer = NodeId(graph_.nodes.size());
      value.result_index = static_cast<uint32_t>(i);
      node.results.push_back(add_value(std::move(value), declarations[i]));
    }
    node.origin = origins_.parse(cursor_);
    graph_.nodes.push_back(std::move(node));
  }

  void parse_mutation() {
    TextCursor start = cursor_;
    ValueId target = parse_value();
    cursor_.expect("=");
    ValueId last = parse_value();
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (graph_.inputs[i].kind == Input::Kind::Tensor && graph_.inputs[i].value == target) {
        graph_.mutations.push_back({static_cast<uint32_t>(i), last});
        return;
      }
    start.fail("an input");
  }

  void parse_output() {
    if (cursor_.accept("none")) return builder_.output_none();
    if (!cursor_.accept("expr")) {
      const ValueId value = parse_value();
      return builder_.output(value, cursor_.accept("flexible_strides"));
    }
    cursor_.expect("(");
    builder_.output_symbol(parse_expr(cursor_, ")"));
    cursor_.expect(")");
  }

  TextCursor cursor_;
  Graph graph_;
  Builder builder_;
  OriginReader origins_;
  Device device_;
  std::unordered_map<std::string, ValueId> known_;
};

}  // namespace

Graph parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace cxxinductor::graph

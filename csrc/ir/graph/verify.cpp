// Invariants of the graph IR.
//
//  G1  Ids are in range: inputs, operands, results, outputs and mutations name values of the graph.
//  G2  Each value is one tensor input, or result r of the node that it calls its producer.
//  G3  Values are defined before they are read.
//  G4  Names print: values' are unique; graph, values and symbols are spelled with the characters of their text form.
//  G5  A value has one stride per dimension.
//  G6  Results are what kind and operands give (infer.h): count, dtype, device, sizes; attributes are in range.
//  G7  An extern names its callee; its operands are tensors and symbols; operand references, aliases and mutated
//      operands are in range.
//  G8  A mutation ends in a tensor input of the same dtype, device and sizes. Of several that end in one input the last counts.
//  G9  Every symbol is declared: a symbol input, a range, a size or stride of an input, or defined by an extern.
//  G11 After a scatter in place, no node, output or mutation reads what the storage held before; of the scatter's own
//      operands only the base lies in that storage.
//  G12 The base of a scatter in place is all of a storage, seen through permute, reshape and flip at most. A node of
//      the graph made that storage, or it belongs to an input that the graph mutates.
//  G13 A donated input is a tensor. A frozen input is a tensor that is not donated.
//  G14 A symbol that an extern defines is not a symbol of an input. It is defined once and used only after that, by
//      later nodes and in the extern's results. The size or stride that defines it is the symbol itself; a value is the
//      integer or bool in the extern's one operand, a tensor.
#include "ir/graph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "ir/graph/attribute_text.h"
#include "ir/graph/infer.h"
#include "ir/graph/symbols.h"
#include "ir/graph/text.h"
#include "ir/text_parts.h"
#include "ir/verify_call.h"
#include "support/error.h"

namespace cxxinductor::graph {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  std::vector<std::string> run() {
    check_ids();
    can_be_printed_ = messages_.empty();
    if (!can_be_printed_) return std::move(messages_);  // nothing below may index with a bad id
    check_definitions();
    check_names();
    for (const Value& value : graph_.values)
      if (value.layout.strides.size() != value.sizes.size()) {
        can_be_printed_ = false;
        report("G5", where(value), "has {} sizes and {} strides", value.sizes.size(), value.layout.strides.size());
      }
    if (!messages_.empty()) return std::move(messages_);
    check_nodes();
    check_mutations();
    check_symbols();
    if (messages_.empty()) check_inplace_scatters();
    return std::move(messages_);
  }
  // After run: false where an id is out of range or a stride is missing.
  bool can_be_printed() const { return can_be_printed_; }

 private:
  template <class... Args>
  void report(std::string_view invariant, const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("{}: {} {}", invariant, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string where(const Value& value) const {
    std::string text = "%" + value.name;
    if (value.producer.valid() && graph_.nodes.contains(value.producer)) {
      OriginId origin = graph_.nodes[value.producer].origin;
      if (origin.valid() && graph_.origins.contains(origin)) text += fmt::format(" ({}:{})", graph_.origins[origin].file, graph_.origins[origin].line);
    }
    return text;
  }
  std::string where(const Node& node) const {
    if (!node.results.empty() && graph_.values.contains(node.results[0])) return where(graph_.values[node.results[0]]);
    const auto place = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), [&](const Node& n) { return &n == &node; });
    return fmt::format("node {}", place - graph_.nodes.begin());
  }

  void check_ids() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (graph_.inputs[i].kind == Input::Kind::Tensor && !graph_.values.contains(graph_.inputs[i].value))
        report("G1", fmt::format("input {}", i), "names no value");
    for (const Node& node : graph_.nodes) {
      for (const Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand); id && !graph_.values.contains(*id)) report("G1", where(node), "reads a value that does not exist");
      for (ValueId id : node.results)
        if (!graph_.values.contains(id)) report("G1", where(node), "has a result that does not exist");
    }
    for (const Output& output : graph_.outputs)
      if (output.kind == Output::Kind::Tensor && !graph_.values.contains(output.value)) report("G1", "an output", "names no value");
    for (const Mutation& mutation : graph_.mutations)
      if (mutation.input >= graph_.inputs.size() || !graph_.values.contains(mutation.value)) report("G1", "a mutation", "names no input or no value");
  }

  void check_definitions() {
    std::vector<bool> defined(graph_.values.size(), false);
    auto define = [&](ValueId id, NodeId producer, size_t index) {
      const Value& value = graph_.values[id];
      if (defined[id.index()]) report("G2", where(value), "is defined twice");
      defined[id.index()] = true;
      if (value.producer != producer || (producer.valid() && value.result_index != index)) report("G2", where(value), "does not point to its definition");
    };
    for (const Input& input : graph_.inputs)
      if (input.kind == Input::Kind::Tensor) define(input.value, NodeId(), 0);
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[NodeId(n)];
      for (const Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand); id && !defined[id->index()])
          report("G3", where(node), "reads %{} before its definition", graph_.values[*id].name);
      for (size_t r = 0; r < node.results.size(); ++r) define(node.results[r], NodeId(n), r);
    }
    for (size_t v = 0; v < graph_.values.size(); ++v)
      if (!defined[v]) report("G2", where(graph_.values[ValueId(v)]), "is never defined");
  }

  void check_names() {
    if (!is_text_name(graph_.name)) report("G4", "the graph", "has the name '{}'", graph_.name);
    std::unordered_set<std::string> names;
    for (const Value& value : graph_.values) {
      if (!is_text_name(value.name)) report("G4", where(value), "has a name that does not print");
      if (!names.insert(value.name).second) report("G4", where(value), "is the name of two values");
    }
    for (const Input& input : graph_.inputs) {
      if (input.kind == Input::Kind::Symbol && !is_symbol_name(input.symbol)) report("G4", "an input", "has the symbol '{}'", input.symbol);
      if (input.kind != Input::Kind::Tensor && input.donated) report("G13", "an input", "is donated and not a tensor");
      if (input.frozen && (input.kind != Input::Kind::Tensor || input.donated))
        report("G13", input.kind == Input::Kind::Tensor ? where(graph_.values[input.value]) : "an input",
               "is frozen: expected a tensor that is not donated, found {}", input.donated ? "a donated one" : "no tensor");
    }
  }

  void check_nodes() {
    for (const Node& node : graph_.nodes) {
      if (const auto* callee = node.as<Extern>()) {
        check_extern(*callee, node);
        continue;
      }
      if (node.results.empty()) {
        report("G6", where(node), "has no results");
        continue;
      }
      try {
        std::vector<Value> results = infer_results(graph_, node.kind, node.operands, graph_.values[node.results[0]]);
        if (results.size() != node.results.size()) report("G6", where(node), "has {} results, its kind gives {}", node.results.size(), results.size());
        for (size_t i = 0; i < std::min(results.size(), node.results.size()); ++i) check_result(results[i], graph_.values[node.results[i]]);
      } catch (const UserError& error) {
        report("G6", where(node), "is ill-formed: {}", error.what());
      }
    }
  }

  void check_result(const Value& expected, const Value& found) {
    if (expected.dtype != found.dtype) report("G6", where(found), "is {}, its operands give {}", to_string(found.dtype), to_string(expected.dtype));
    if (expected.device != found.device) report("G6", where(found), "is on {}, its operands give {}", to_string(found.device), to_string(expected.device));
    if (!same_sizes(graph_.assumptions, expected.sizes, found.sizes))
      report("G6", where(found), "has sizes {}, its operands give {}", print_expr_list(found.sizes), print_expr_list(expected.sizes));
  }

  void check_extern(const Extern& callee, const Node& node) {
    for (const Operand& operand : node.operands)
      if (std::holds_alternative<Scalar>(operand)) report("G7", where(node), "has an immediate among an extern's operands");
    const auto tensor = [&](size_t operand) { return is_tensor(node, operand); };
    const auto wrong = [&](const std::string& text) { report("G7", where(node), "{}", text); };
    const auto wrong_name = [&](const std::string& text) { report("G4", where(node), "{}", text); };
    verify_call(callee, node.operands.size(), node.results.size(), tensor, wrong, wrong_name);
  }
  static bool is_tensor(const Node& node, size_t operand) { return operand < node.operands.size() && std::holds_alternative<ValueId>(node.operands[operand]); }

  void check_mutations() {
    for (const Mutation& mutation : graph_.mutations) {
      const Input& input = graph_.inputs[mutation.input];
      const Value& last = graph_.values[mutation.value];
      if (input.kind != Input::Kind::Tensor) {
        report("G8", where(last), "ends in input {}, which is no tensor", mutation.input);
        continue;
      }
      const Value& first = graph_.values[input.value];
      if (first.dtype != last.dtype || first.device != last.device || !same_sizes(graph_.assumptions, first.sizes, last.sizes))
        report("G8", where(last), "ends in %{} and differs from it in dtype, device or sizes", first.name);
    }
  }

  // Scatters in place make versions of a storage; each reader must read the latest one before it.
  void check_inplace_scatters() {
    const auto is_in_place = [](const Node& node) {
      const auto* scatter = node.as<Scatter>();
      return scatter && scatter->inplace;
    };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), is_in_place)) return;
    IdVector<ValueId, NodeId> version(graph_.values.size()), latest(graph_.values.size());
    IdVector<ValueId, ValueId> storage;
    for (size_t v = 0; v < graph_.values.size(); ++v) storage.push_back(ValueId(v));
    const auto read = [&](ValueId id, const std::string& place) {
      if (version[id] != latest[storage[id]])
        report("G11", place, "reads %{} after %{} overwrote it in place: expected %{}, or a read before it", graph_.values[id].name,
               name_of(latest[storage[id]]), name_of(latest[storage[id]]));
    };
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[NodeId(n)];
      for (size_t i = 0; i < node.operands.size(); ++i)
        if (const auto* id = std::get_if<ValueId>(&node.operands[i]); id && !is_view(node.kind)) read(*id, where(node));
      for (ValueId result : node.results)
        if (const auto below = shares_storage_with(graph_, result)) {
          storage[result] = storage[*below];
          version[result] = version[*below];
        }
      if (!is_in_place(node)) continue;
      const ValueId base = std::get<ValueId>(node.operands[0]), root = storage[base];
      for (size_t i = 1; i < node.operands.size(); ++i)
        if (const ValueId operand = std::get<ValueId>(node.operands[i]); storage[operand] == root)
          report("G11", where(node), "updates %{} in place and reads %{}, which lies in the same storage: expected a copy of it as operand {}",
                 graph_.values[base].name, graph_.values[operand].name, i);
      check_inplace_base(node, base, root);
      version[node.results[0]] = latest[root] = NodeId(n);
    }
    for (const Output& output : graph_.outputs)
      if (output.kind == Output::Kind::Tensor) read(output.value, "an output");
    for (const Mutation& mutation : graph_.mutations)
      if (is_last_version(graph_, mutation)) read(mutation.value, fmt::format("the mutation of input {}", mutation.input));
  }
  std::string name_of(NodeId writer) const { return graph_.values[graph_.nodes[writer].results[0]].name; }
  void check_inplace_base(const Node& node, ValueId base, ValueId root) {
    ValueId at = base;
    while (at != root) {
      const Node& step = graph_.nodes[graph_.values[at].producer];
      if (!step.as<Permute>() && !step.as<Reshape>() && !step.as<Flip>() && !step.as<Scatter>()) {
        report("G12", where(node),
               "updates %{} in place: expected all of a storage, seen through permute, reshape and flip, found %{}, a result of {}; copy it first",
               graph_.values[base].name, graph_.values[at].name, print_kind(step.kind));
        return;
      }
      at = std::get<ValueId>(step.operands[0]);
    }
    if (graph_.values[root].producer.valid()) return;
    const bool mutated =
        std::any_of(graph_.mutations.begin(), graph_.mutations.end(), [&](const Mutation& mutation) { return graph_.inputs[mutation.input].value == root; });
    if (!mutated)
      report("G12", where(node), "updates the input %{} in place: expected one that the graph mutates ('final %{} = ...'), or a copy of it",
             graph_.values[root].name, graph_.values[root].name);
  }

  void declare(const Value& value) {
    for (const auto* list : {&value.sizes, &value.layout.strides})
      for (sym::Expr e : *list)
        for (sym::Expr symbol : e.free_symbols())
          if (is_symbol_name(symbol.name())) symbols_.insert(std::string(symbol.name()));
  }
  template <class Place>  // () -> std::string, called for a report only: graphs have thousands of expressions
  void check_expr(sym::Expr e, Place&& place) {
    for (sym::Expr symbol : e.free_symbols())
      if (!symbols_.contains(std::string(symbol.name()))) report("G9", place(), "uses the unknown symbol {}", symbol.name());
  }

  void check_symbols() {
    for (const auto& [symbol, range] : graph_.assumptions.ranges()) symbols_.insert(symbol);
    for (const auto& [symbol, divisor] : graph_.assumptions.divisors()) symbols_.insert(symbol);
    for (const Input& input : graph_.inputs) {
      if (input.kind == Input::Kind::Symbol) symbols_.insert(input.symbol);
      if (input.kind == Input::Kind::Tensor) declare(graph_.values[input.value]);
    }
    const Definers definers = find_definers(graph_);
    for (const Input& input : graph_.inputs) check_input_symbols(input, definers);
    for (const auto& [symbol, node] : definers) symbols_.erase(symbol);  // until that node
    for (const Node& node : graph_.nodes) {
      if (const auto* callee = node.as<Extern>())
        for (const Definition& definition : callee->defines) check_definition(definition, *callee, node);
      for_each_expression(graph_, node, [&](sym::Expr e) { check_expr(e, [&] { return where(node); }); });
    }
    for (const Output& output : graph_.outputs)
      if (output.kind == Output::Kind::Symbol) check_expr(output.symbol, [] { return std::string("an output"); });
  }

  void check_input_symbols(const Input& input, const Definers& definers) {
    const auto check = [&](std::string_view symbol) {
      if (const auto definer = definers.find(symbol); definer != definers.end())
        report("G14", input.kind == Input::Kind::Symbol ? "sym " + input.symbol : where(graph_.values[input.value]),
               "is an input with the symbol {}, which {} defines: expected a new symbol there", symbol, where(graph_.nodes[definer->second]));
    };
    if (input.kind == Input::Kind::Symbol) check(input.symbol);
    if (input.kind != Input::Kind::Tensor) return;
    const Value& value = graph_.values[input.value];
    for (const auto* list : {&value.sizes, &value.layout.strides})
      for (sym::Expr e : *list)
        for (sym::Expr symbol : e.free_symbols()) check(symbol.name());
  }
  void check_definition(const Definition& definition, const Extern& callee, const Node& node) {
    if (!is_symbol_name(definition.symbol)) report("G4", where(node), "defines the symbol '{}'", definition.symbol);
    if (!symbols_.insert(definition.symbol).second)
      report("G14", where(node), "defines {}: expected a new symbol, found one that is defined before", definition.symbol);
    if (definition.result < 0) {
      const bool integer = node.operands.size() == 1 && is_tensor(node, 0) && is_integer_or_bool(graph_.values[std::get<ValueId>(node.operands[0])].dtype);
      if (!integer || !node.results.empty() || callee.defines.size() != 1)
        report("G14", where(node),
               "defines {} as a value: expected one tensor of integers or bools, no result and one definition, found ({}), {} results and {} definitions",
               definition.symbol, operand_types(node), node.results.size(), callee.defines.size());
      return;
    }
    const auto result = static_cast<size_t>(definition.result), dim = static_cast<size_t>(definition.dim);
    const Value* value = result < node.results.size() ? &graph_.values[node.results[result]] : nullptr;
    const size_t rank = value ? value->sizes.size() : 0;
    if (dim >= 2 * rank) {
      report("G14", where(node), "defines {} by dimension {} of result {}: expected a result and one of its sizes and strides, found {} results{}",
             definition.symbol, dim, result, node.results.size(), value ? fmt::format(", this one of rank {}", rank) : "");
      return;
    }
    const sym::Expr found = dim < rank ? value->sizes[dim] : value->layout.strides[dim - rank];
    if (found != sym::Expr::symbol(definition.symbol))
      report("G14", where(node), "defines {} by {} {} of %{}: expected {} there, found {}", definition.symbol, dim < rank ? "size" : "stride",
             dim < rank ? dim : dim - rank, value->name, definition.symbol, to_string(found));
  }
  std::string operand_types(const Node& node) const {
    std::vector<std::string> types;
    for (const Operand& operand : node.operands) {
      const auto* id = std::get_if<ValueId>(&operand);
      types.push_back(id ? fmt::format("%{}: {}{}", graph_.values[*id].name, to_string(graph_.values[*id].dtype), print_expr_list(graph_.values[*id].sizes))
                         : "a number");
    }
    return fmt::format("{}", fmt::join(types, ", "));
  }
  static bool is_integer_or_bool(DType dtype) { return dtype == DType::Bool || is_integer(dtype); }

  const Graph& graph_;
  std::unordered_set<std::string> symbols_;
  std::vector<std::string> messages_;
  bool can_be_printed_ = true;
};

}  // namespace

std::vector<std::string> verify(const Graph& graph) { return Verifier(graph).run(); }

void verify_or_throw(const Graph& graph, std::string_view after) {
  Verifier verifier(graph);
  const std::vector<std::string> messages = verifier.run();
  if (messages.empty()) return;
  throw_internal("graph verification failed after {}:\n  {}\n{}", after, fmt::join(messages, "\n  "), verifier.can_be_printed() ? print(graph) : "");
}

}  // namespace cxxinductor::graph

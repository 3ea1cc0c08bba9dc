// Invariants of call graphs.
//
//  C1  Ids are in range: inputs, results, operands, outputs and final versions name values; positions of inputs and outputs
//      exist.
//  C2  Each value is one input, or one result of one call.
//  C3  Values are defined before they are read.
//  C4  Names print: values' are unique, or empty; graph, values and symbols are spelled with the characters of their text form.
//  C5  A tensor has one stride, and where it is given others one of those, per dimension. Only tensors have conjugate or
//      negative bits.
//  C6  A call names its callee, "namespace::op", and its arguments by keyword at most once.
//  C7  A final version is a tensor of its input's device and dtype; each input has at most one.
//  C8  An output is a value, an expression, an integer or none. Only values may have flexible strides.
//  C9  Every symbol is one of an input's, has a range, is one of the graph around a subgraph, or is a result's size, stride, offset or value before it is read.
//  C10 A donated or frozen input is a tensor, and not both.
//  C11 Subgraphs are valid, go by their own names, and write no input. Those that a higher-order operator names are there.
#include "model/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "ir/text_parts.h"

namespace cxxinductor::model {
namespace {

class Verifier {
 public:
  // known: symbols of the graph around it.
  explicit Verifier(const CallGraph& calls, std::set<std::string> known = {}) : calls_(calls), defined_(calls.values.size(), 0), known_(std::move(known)) {}

  std::vector<std::string> run() {
    check_ids();
    if (!messages_.empty()) return std::move(messages_);  // nothing below may index with a bad id
    check_names();
    for (const CallValueInfo& info : calls_.values) check_value(info);
    if (!messages_.empty()) return std::move(messages_);
    check_inputs();
    for (const Call& call : calls_.calls) check_call(call);
    for (CallValue id = 0; id < defined_.size(); ++id)
      if (!defined_[id]) report("C2", name(id), "is no input and no call's result");
    check_mutations();
    check_outputs();
    for (const auto& [name, subgraph] : calls_.subgraphs) check_subgraph(name, *subgraph);
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(std::string_view invariant, const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("{}: {} {}", invariant, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string name(CallValue id) const { return calls_.values[id].name.empty() ? fmt::format("%{}", id) : "%" + calls_.values[id].name; }
  bool is_value(CallValue id) const { return id < calls_.values.size(); }
  bool is_tensor(CallValue id) const { return calls_.values[id].kind == CallValueInfo::Kind::Tensor; }

  void check_ids() {
    const auto require = [&](bool holds, const std::string& place, std::string_view what) {
      if (!holds) report("C1", place, "names {} that does not exist", what);
    };
    for (CallValue id : calls_.inputs) require(is_value(id), "an input", "a value");
    for (const Call& call : calls_.calls) {
      for (CallValue id : call.results) require(is_value(id), full_name(call), "a result");
      for_each_operand_ref(call, [&](OperandRef ref) { require(is_value(ref.operand), full_name(call), "an operand"); });
    }
    for (const Arg& output : calls_.outputs) for_each_operand_ref(output, [&](OperandRef ref) { require(is_value(ref.operand), "an output", "a value"); });
    const auto is_input = [&](uint32_t position) { return position < calls_.inputs.size(); };
    for (const auto& [input, value] : calls_.mutations) {
      require(is_input(input), "a final version", "an input");
      require(is_value(value), "a final version", "a value");
    }
    for (const auto& [input, strides] : calls_.input_strides) require(is_input(input), "given strides", "an input");
    for (uint32_t input : calls_.donated) require(is_input(input), "a donation", "an input");
    for (uint32_t input : calls_.frozen) require(is_input(input), "a frozen input", "an input");
    for (uint32_t output : calls_.flexible_outputs) require(output < calls_.outputs.size(), "a flexible output", "an output");
  }

  void check_names() {
    if (!is_text_name(calls_.name)) report("C4", "the graph", "has the name '{}'", calls_.name);
    std::set<std::string> seen;
    for (CallValue id = 0; id < calls_.values.size(); ++id) {
      if (!is_text_name(name(id).substr(1))) report("C4", name(id), "is no name of a value");
      if (!seen.insert(name(id)).second) report("C4", name(id), "is the name of two values");
    }
  }

  void check_value(const CallValueInfo& info) {
    const std::string place = "%" + info.name;
    const bool tensor = info.kind == CallValueInfo::Kind::Tensor;
    if (tensor && info.strides.size() != info.sizes.size()) report("C5", place, "has {} sizes and {} strides", info.sizes.size(), info.strides.size());
    if (!tensor && (info.conjugate || info.negative)) report("C5", place, "is no tensor and has a conjugate or negative bit");
    const auto check = [&](sym::Expr e) {
      for (sym::Expr symbol : e.free_symbols())
        if (!is_symbol_name(symbol.name())) report("C4", place, "has the symbol '{}'", symbol.name());
    };
    for_each_expr(info, check);
  }

  template <class Visit>
  static void for_each_expr(const CallValueInfo& info, const Visit& visit) {
    if (info.kind == CallValueInfo::Kind::SymInt) visit(info.symbol);
    if (info.kind != CallValueInfo::Kind::Tensor) return;
    for (sym::Expr e : info.sizes) visit(e);
    for (sym::Expr e : info.strides) visit(e);
    visit(info.storage_offset);
  }

  void define(CallValue id) {
    if (defined_[id]) report("C2", name(id), "is defined twice");
    defined_[id] = 1;
    for_each_expr(calls_.values[id], [&](sym::Expr e) { know(e); });
  }
  void know(sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols()) known_.insert(std::string(symbol.name()));
  }
  void check_known(sym::Expr e, const std::string& place) {
    for (sym::Expr symbol : e.free_symbols())
      if (!known_.contains(std::string(symbol.name())) && !calls_.assumptions.ranges().contains(symbol.name()))
        report("C9", place, "reads the symbol {}, which nothing before it defines", symbol.name());
  }

  void check_inputs() {
    for (uint32_t i = 0; i < calls_.inputs.size(); ++i) {
      const CallValue id = calls_.inputs[i];
      define(id);
      const auto given = calls_.input_strides.find(i);
      if (given != calls_.input_strides.end() && given->second.size() != calls_.values[id].sizes.size())
        report("C5", name(id), "has {} sizes and is given {} strides", calls_.values[id].sizes.size(), given->second.size());
      const bool donated = calls_.donated.contains(i), frozen = calls_.frozen.contains(i);
      if ((donated || frozen) && !is_tensor(id)) report("C10", name(id), "is donated or frozen and no tensor");
      if (donated && frozen) report("C10", name(id), "is donated and frozen");
    }
  }

  void check_argument(const Arg& arg, const std::string& place) {
    if (const auto* e = arg.as<sym::Expr>()) check_known(*e, place);
    if (const auto* ref = arg.as<OperandRef>(); ref && !defined_[ref->operand]) report("C3", place, "reads {} before it is defined", name(ref->operand));
    if (const auto* list = arg.as<ArgList>())
      for (const Arg& item : *list) check_argument(item, place);
  }

  void check_call(const Call& call) {
    const std::string place = describe(calls_, call);
    const size_t colons = call.callee.find("::");
    if (colons == 0 || colons == call.callee.npos || colons + 2 == call.callee.size()) report("C6", place, "is no name of an op");
    for (const Arg& arg : call.args) check_argument(arg, place);
    std::set<std::string_view> keywords;
    for (const auto& [keyword, arg] : call.kwargs) {
      if (!keywords.insert(keyword).second) report("C6", place, "has the argument '{}' twice", keyword);
      check_argument(arg, place);
    }
    for_each_subgraph(call, [&](const std::string& name) {
      if (!calls_.subgraphs.contains(name)) report("C11", place, "runs the subgraph '{}', which is not there", name);
    });
    for (CallValue id : call.results) define(id);
  }

  void check_subgraph(const std::string& name, const CallGraph& subgraph) {
    if (subgraph.name != name) report("C11", "@" + name, "is a subgraph with the name '{}'", subgraph.name);
    if (!subgraph.mutations.empty()) report("C11", "@" + name, "writes an input");
    for (const std::string& message : Verifier(subgraph, known_).run()) messages_.push_back(fmt::format("@{}: {}", name, message));
  }

  void check_mutations() {
    std::set<uint32_t> written;
    for (const auto& [position, value] : calls_.mutations) {
      const CallValue input = calls_.inputs[position];
      if (!written.insert(position).second) report("C7", name(input), "has two final versions");
      const bool fits = is_tensor(input) && is_tensor(value) && calls_.values[input].device == calls_.values[value].device &&
                        calls_.values[input].dtype == calls_.values[value].dtype;
      if (!fits) report("C7", name(input), "has the final version {}, of another type", name(value));
      if (!defined_[value]) report("C3", name(input), "has a final version that is not defined");
    }
  }

  void check_outputs() {
    for (uint32_t i = 0; i < calls_.outputs.size(); ++i) {
      const Arg& output = calls_.outputs[i];
      const std::string place = fmt::format("output {}", i);
      const bool value = output.as<OperandRef>() != nullptr;
      if (!value && !output.is_none() && !output.as<sym::Expr>() && !output.as<int64_t>()) report("C8", place, "is {}", to_string(output));
      if (!value && calls_.flexible_outputs.contains(i)) report("C8", place, "has flexible strides and is no value");
      check_argument(output, place);
    }
  }

  const CallGraph& calls_;
  std::vector<char> defined_;
  std::set<std::string> known_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> verify(const CallGraph& calls) { return Verifier(calls).run(); }

}  // namespace cxxinductor::model

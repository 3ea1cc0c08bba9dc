#include "torch_bridge/device/general_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "support/error.h"
#include "sym/algebra.h"
#include "torch_bridge/dispatcher_schemas.h"

namespace cxxinductor::torch_bridge {
namespace {

using model::CallValueInfo;

// Answers questions by hints as HintedSizes does. Where two sizes have to be equal, a symbol of theirs is the expression that
// makes them so: most integers of a recording follow from sizes of its inputs, as B * T does in a view.
class SolvingSizes final : public model::SizeQuestions {
 public:
  explicit SolvingSizes(const CallPattern& pattern) : pattern_(pattern), sizes_(assumptions_of(pattern), hints_of(pattern)) {}

  bool are_equal(sym::Expr a, sym::Expr b) override {
    a = substitute(a, solved_), b = substitute(b, solved_);
    if (sym::prove_equal(a, b, sizes_.assumptions())) return true;
    if (sizes_.hint(a) == sizes_.hint(b) && solve(a, b)) return true;
    return sizes_.are_equal(a, b);
  }
  bool is_less(sym::Expr a, sym::Expr b) override { return sizes_.is_less(substitute(a, solved_), substitute(b, solved_)); }
  int64_t hint(sym::Expr e) { return sizes_.hint(e); }

  const sym::Substitution& solved() const { return solved_; }
  std::vector<model::SizeGuard> guards() const {
    std::vector<model::SizeGuard> guards = sizes_.guards();
    for (const auto& [symbol, value] : solved_) guards.push_back({model::equal_condition(sym::Expr::symbol(symbol), value), 1});
    return guards;
  }
  const sym::Assumptions& assumptions() const { return sizes_.assumptions(); }

 private:
  // The last symbol, which is an integer rather than a size of an input.
  bool solve(sym::Expr a, sym::Expr b) {
    for (size_t number = pattern_.symbol_count(); number-- > 0;) {
      const sym::Expr symbol = sym::Expr::symbol(symbol_name(number));
      if (!(a - b).depends_on(symbol)) continue;
      const auto value = sym::solve_linear(a, b, symbol);
      if (!value || sizes_.hint(*value) != pattern_.hint(number)) continue;
      for (auto& [name, expression] : solved_) expression = substitute(expression, {{std::string(symbol.name()), *value}});
      solved_.emplace(symbol.name(), *value);
      return true;
    }
    return false;
  }

  const CallPattern& pattern_;
  model::HintedSizes sizes_;
  sym::Substitution solved_;
};

class Generalizing {
 public:
  Generalizing(RecordedCalls calls, const CallPattern& pattern)
      : calls_(std::move(calls)), pattern_(pattern), sizes_(pattern), inputs_(calls_.graph.inputs.size()) {}

  GeneralCalls run() {
    GeneralCalls general;
    // An equality that a later call asks for may be known to earlier ones.
    for (size_t solved = 0;; solved = sizes_.solved().size()) {
      general.graph = calls_.graph;
      add_number_inputs(general.graph);
      set_numbers(general.graph);
      if (pattern_.symbol_count() == 0) return general;
      infer(general.graph);
      if (sizes_.solved().size() == solved) break;
    }
    general.graph.assumptions = sizes_.assumptions();
    general.guards = sizes_.guards();
    return general;
  }

 private:
  void add_number_inputs(model::CallGraph& graph) {
    reals_.assign(pattern_.real_count(), 0);
    const auto& arguments = pattern_.arguments();
    for (size_t i = inputs_; i < arguments.size(); ++i) {
      if (!arguments[i].is_input) continue;
      const auto value = static_cast<model::CallValue>(graph.values.size());
      if (arguments[i].real) {
        reals_[*arguments[i].real] = value;
        graph.values.emplace_back().kind = CallValueInfo::Kind::SymFloat;
      } else {
        graph.values.push_back(info_of(arguments[i]));
      }
      graph.inputs.push_back(value);
      graph.input_sources.emplace_back();
    }
  }

  void set_numbers(model::CallGraph& graph) {
    size_t next = inputs_;
    const size_t first_real = pattern_.arguments().size() - calls_.code.reals.size();
    for_each_number(
        calls_.code, graph.calls,
        [&](size_t, const NumberSlot& slot) {
          const ArgumentPattern& pattern = pattern_.arguments().at(next++);
          if (pattern.is_symbol()) slot.set(Arg(substitute(info_of(pattern).symbol, sizes_.solved())));
        },
        [&](size_t position, const NumberSlot& slot) {
          const ArgumentPattern& pattern = pattern_.arguments().at(first_real + position);
          if (pattern.real)
            slot.set(Arg(OperandRef{reals_[*pattern.real]}));
          else
            slot.set(pattern.constant.toDouble());  // the calls may have been recorded with another one
        });
  }

  void infer(model::CallGraph& graph) {
    for (size_t i = 0; i < inputs_; ++i) {
      CallValueInfo info = info_of(pattern_.arguments()[i]);
      const model::CallValue value = graph.inputs[i];
      info.storage = graph.values[value].storage;
      set(graph, value, std::move(info));
    }
    for (const model::Call& call : graph.calls) {
      auto results = rule_of(call).infer(graph, call, sizes_);
      if (!results || results->size() != call.results.size()) throw_unsupported("{}: nothing states its results for symbolic sizes", full_name(call));
      for (size_t i = 0; i < results->size(); ++i) {
        CallValueInfo& info = (*results)[i];
        // As recorded: what an unsafe view shows is memory of its own.
        const bool is_own = calls_.values[call.results[i]].memory == call.results[i];
        if (info.kind == CallValueInfo::Kind::Tensor && (info.storage == 0 || is_own)) info.storage = call.results[i] + 1;
        set(graph, call.results[i], std::move(info));
      }
    }
  }

  // With sizes that are, at the hints, those that were recorded.
  void set(model::CallGraph& graph, model::CallValue value, CallValueInfo info) {
    const RecordedCalls::Value& recorded = calls_.values[value];
    const auto is_at_hints = [&](std::vector<sym::Expr>& sizes, const auto& numbers) {
      for (sym::Expr& size : sizes) size = sym::simplify(substitute(size, sizes_.solved()), sizes_.assumptions());
      return std::equal(sizes.begin(), sizes.end(), numbers.begin(), numbers.end(),
                        [&](sym::Expr size, int64_t number) { return sizes_.hint(size) == number; });
    };
    const bool is_none = info.kind == CallValueInfo::Kind::None;
    if (is_none != recorded.is_none || (!is_none && (info.storage != recorded.memory + 1 || !is_at_hints(info.sizes, recorded.form.sizes) ||
                                                     !is_at_hints(info.strides, recorded.form.strides))))
      throw_unsupported("a result that is not what it was for numbers");
    info.storage_offset = substitute(info.storage_offset, sizes_.solved());
    info.name = graph.values[value].name;
    graph.values[value] = std::move(info);
  }

  const model::OpRule& rule_of(const model::Call& call) {
    const std::string name = full_name(call);
    auto found = rules_.find(name);
    if (found == rules_.end()) {
      auto rule = model::OpRule::find(call.callee, call.overload, DispatcherSchemas());
      if (!rule) throw_unsupported("{}: it has no rule", name);
      found = rules_.emplace(name, std::move(*rule)).first;
    }
    return found->second;
  }

  const RecordedCalls calls_;
  const CallPattern& pattern_;
  SolvingSizes sizes_;
  const size_t inputs_;  // tensors
  std::vector<model::CallValue> reals_;
  std::map<std::string, model::OpRule> rules_;
};

}  // namespace

GeneralCalls general_calls(RecordedCalls calls, const CallPattern& pattern) { return Generalizing(std::move(calls), pattern).run(); }

}  // namespace cxxinductor::torch_bridge

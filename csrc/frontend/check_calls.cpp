#include "frontend/check_calls.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "frontend/aten_table.h"
#include "frontend/externs.h"
#include "ir/callees.h"
#include "model/effects.h"
#include "model/passes/functionalize.h"
#include "support/error.h"

namespace cxxinductor::frontend {

using model::SchemaArgument;
using model::SchemaReturn;

bool holds_handle(const Arg& arg) {
  if (arg.as<Handle>()) return true;
  const auto* list = arg.as<ArgList>();
  return list && std::any_of(list->begin(), list->end(), holds_handle);
}

namespace {

// We know how to compute it ourselves.
template <class Call>
bool is_imported(const Call& call) {
  const bool named = !call.overload.empty() && call.overload != "default";
  return !is_opaque_callee(call.callee) && find_row(named ? call.callee + "." + call.overload : call.callee) != nullptr;
}

bool is_listed(std::string_view callee, const std::vector<std::string>& allowed) {
  const std::string_view library = callee.substr(0, std::min(callee.find("::"), callee.size()));
  return std::any_of(allowed.begin(), allowed.end(), [&](const std::string& a) { return a == callee || a == library; });
}

// Arithmetic on numbers, which the dispatcher does not see.
bool is_arithmetic(std::string_view callee) { return callee.starts_with("_operator::") || callee.starts_with("math::") || callee.starts_with("torch::sym_"); }

// Ops of models that read a number off a tensor, state what holds of it, or set a bit of a view: graphs and plans have other forms of
// them.
bool is_of_models(std::string_view callee) {
  static constexpr std::array<std::string_view, 9> ops{"aten::item",          "aten::_local_scalar_dense", "aten::_assert_scalar",
                                                       "aten::_assert_async", "aten::sym_constrain_range", "aten::sym_constrain_range_for_size",
                                                       "aten::_conj",         "aten::_neg_view",           "aten::conj"};
  return std::find(ops.begin(), ops.end(), callee) != ops.end();
}

constexpr const char* how_to_allow = "expected an op of PyTorch that reads its arguments and does nothing else; option allow_ops adds ops by name";

// What a call of any IR states.
class CallCheck {
 public:
  CallCheck(const cxxinductor::Call& call, size_t results, const SchemaSource& schemas, const std::vector<Handle>& functions = {})
      : call_(call), results_(results), functions_(functions) {
    name_ = call.callee;
    if (!call.overload.empty() && call.overload != "default") name_ += "." + call.overload;
    found_ = schemas.find(call.callee, call.overload);
  }

  // Returns the schema, for what one of the IRs states alone.
  const Schema& run(const std::vector<std::string>& allowed) {
    const bool listed = calls_function() || is_listed(call_.callee, allowed);
    if (!listed && !is_reachable_from_text(call_.callee) && !is_imported(call_)) refuse("{}", how_to_allow);
    if (!found_) refuse("expected an op that is registered with the dispatcher");
    check_arguments();
    check_results();
    const model::CallEffects effects = model::effects_of_call(call_.args, call_.kwargs, *found_, results_);
    if (!listed && (!effects.mutated_operands.empty() || writes())) refuse("expected an op that changes nothing; allow_ops adds ops by name");
    if (call_.mutated_operands != effects.mutated_operands)
      refuse("expected mutated operands [{}] as in its schema, found [{}]", fmt::join(effects.mutated_operands, ", "), fmt::join(call_.mutated_operands, ", "));
    std::vector<int> aliases = call_.alias_of;
    aliases.resize(results_, -1);
    if (aliases != effects.alias_of) refuse("expected aliases [{}] as in its schema, found [{}]", fmt::join(effects.alias_of, ", "), fmt::join(aliases, ", "));
    if (call_.planned_out && (found_->planned_form == model::PlannedForm::None || results_ != 1))
      refuse("expected one that allocates its results, found planned ones");
    return *found_;
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("extern {}: {}", name_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  bool calls_function() const { return call_.callee == function_callee && !call_.args.empty() && is_known_function(call_.args.front()); }
  bool is_known_function(const Arg& arg) const {
    const auto* handle = arg.as<Handle>();
    return handle && std::find(functions_.begin(), functions_.end(), *handle) != functions_.end();
  }

  bool writes() const {
    return std::any_of(found_->arguments.begin(), found_->arguments.end(), [](const SchemaArgument& argument) { return argument.written; });
  }

  void check_arguments() const {
    const std::vector<SchemaArgument>& formals = found_->arguments;
    if (call_.args.size() > formals.size()) refuse("expected at most {} arguments, found {}", formals.size(), call_.args.size());
    std::set<std::string> given;
    for (size_t i = 0; i < call_.args.size(); ++i) check_argument(formals[i], call_.args[i], given);
    for (const auto& [keyword, value] : call_.kwargs) {
      const auto formal = std::find_if(formals.begin(), formals.end(), [&](const SchemaArgument& argument) { return argument.name == keyword; });
      if (formal == formals.end()) refuse("expected arguments of its schema, found '{}'", keyword);
      check_argument(*formal, value, given);
    }
  }

  void check_argument(const SchemaArgument& formal, const Arg& actual, std::set<std::string>& given) const {
    if (!given.insert(formal.name).second) refuse("found argument '{}' twice", formal.name);
    if (formal.out) refuse("expected no destination, found '{}'", formal.name);
    const bool is_function = call_.callee == function_callee && formal.name == "function";
    if (is_function ? !is_known_function(actual) : holds_handle(actual)) refuse("expected no object of this process, found one for '{}'", formal.name);
  }

  void check_results() const {
    const std::vector<SchemaReturn>& returns = found_->returns;
    const bool list = returns.size() == 1 && returns.front().is_list;
    if (!list && results_ > returns.size()) refuse("expected at most {} results, found {}", returns.size(), results_);
  }

  const cxxinductor::Call& call_;
  size_t results_;
  const std::vector<Handle>& functions_;
  std::string name_;
  std::optional<Schema> found_;
};

}  // namespace

void check_calls(const graph::Graph& graph, const SchemaSource& schemas, const std::vector<std::string>& allowed) {
  for (const graph::Node& node : graph.nodes) {
    const auto* call = node.as<graph::Extern>();
    if (!call) continue;
    CallCheck check(*call, node.results.size(), schemas);
    const Schema& schema = check.run(allowed);
    if (!call->ordered && model::must_be_ordered(call->callee, schema)) check.refuse("expected an ordered call");
  }
}

void check_calls(const model::CallGraph& calls, const SchemaSource& schemas, const std::vector<std::string>& allowed) {
  for (const model::Call& call : calls.calls) {
    if (is_arithmetic(call.callee) || is_listed(call.callee, allowed)) continue;
    if (call.callee == function_callee && !call.args.empty() && call.args.front().as<Handle>()) continue;
    model::Call functional = call;
    std::tie(functional.callee, functional.overload) = model::functional_name(call, schemas);
    if (!is_reachable_from_text(functional.callee) && !is_imported(functional) && !is_of_models(functional.callee))
      throw_user_error("{}: {}", model::describe(calls, call), how_to_allow);
    if (!schemas.find(call.callee, call.overload)) throw_user_error("{}: expected an op that is registered with the dispatcher", model::describe(calls, call));
  }
}

void check_calls(const plan::Plan& plan, const SchemaSource& schemas, const std::vector<std::string>& allowed, const std::vector<Handle>& functions) {
  for (const plan::Step& step : plan.steps)
    if (const auto* call = std::get_if<plan::CallExtern>(&step)) CallCheck(*call, call->results.size(), schemas, functions).run(allowed);
}

}  // namespace cxxinductor::frontend

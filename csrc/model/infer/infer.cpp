#include "model/infer/infer.h"

#include <algorithm>

#include "model/effects.h"
#include "model/foreach.h"
#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {
namespace {

bool is_in_place(std::string_view callee, const Schema& schema) {
  if (!callee.ends_with('_') || callee.ends_with("__") || schema.arguments.empty()) return false;
  const SchemaArgument& self = schema.arguments.front();
  return schema.returns.size() == 1 && schema.returns.front().alias == self.alias && self.written && self.is_tensor && !self.is_list &&
         !changes_metadata(callee);
}

void check_sizes(const InferContext& context, const std::vector<CallValueInfo>& results) {
  for (const CallValueInfo& result : results)
    for (sym::Expr size : result.sizes)
      if (context.sizes.is_less(size, 0)) context.reject("expected sizes of at least 0, found {}", print_expr_list(result.sizes));
}

}  // namespace

std::optional<OpRule> OpRule::find(std::string_view callee, std::string_view overload, const SchemaSource& schemas) {
  auto schema = schemas.find(callee, overload);
  if (!schema) return std::nullopt;
  Call named;
  named.callee = callee;
  named.overload = overload;
  const std::string name = full_name(named);
  const auto with_other = [&](Form form, std::string_view other_callee, std::string_view other_overload) {
    OpRule rule(std::move(*schema), form);
    if (auto other = find(other_callee, other_overload, schemas)) rule.other_ = std::make_shared<const OpRule>(std::move(*other));
    return rule;
  };
  if (const auto row = rule_table().find(name); row != rule_table().end()) {
    OpRule rule(std::move(*schema), Form::Plain);
    rule.rule_ = &row->second;
    return rule;
  }
  if (const Rule* registered = registered_rule(name)) {
    OpRule rule(std::move(*schema), Form::Plain);
    rule.rule_ = registered;
    return rule;
  }
  if (schema->returns.empty()) return OpRule(std::move(*schema), Form::WithoutResults);
  if (const ForeachRow* row = find_foreach(name)) return with_other(Form::OfItems, row->callee, row->each_overload);
  if (!is_in_place(callee, *schema)) return std::nullopt;
  return with_other(Form::InPlace, callee.substr(0, callee.size() - 1), overload);
}

InferredResults OpRule::infer(const CallGraph& graph, const Call& call, SizeQuestions& sizes) const {
  switch (form_) {
    case Form::Plain: {
      InferContext context(graph, call, schema_, sizes);
      InferredResults results = (*rule_)(context);
      if (results) check_sizes(context, *results);
      return results;
    }
    case Form::WithoutResults:
      return std::vector<CallValueInfo>();
    case Form::OfItems:
      return infer_items(graph, call, sizes);
    case Form::InPlace:
      return infer_in_place(graph, call, sizes);
  }
  return std::nullopt;
}

// A call on each item of the lists.
InferredResults OpRule::infer_items(const CallGraph& graph, const Call& call, SizeQuestions& sizes) const {
  Call counted = call;
  if (counted.results.empty()) {
    const auto is_list = [](const Arg& arg) { return arg.as<ArgList>() != nullptr; };
    const auto list = std::find_if(call.args.begin(), call.args.end(), is_list);
    if (list == call.args.end()) return std::nullopt;
    counted.results.resize(list->as<ArgList>()->size());
    counted.result_is_list = true;
  }
  const auto calls = calls_of_foreach(counted);
  if (!calls || !other_) return std::nullopt;
  std::vector<CallValueInfo> results;
  for (const Call& each : *calls) {
    const auto result = other_->infer(graph, each, sizes);
    if (!result) return std::nullopt;
    results.insert(results.end(), result->begin(), result->end());
  }
  return results;
}

// The result is the argument. It has to take what the op computes, where that has a rule.
InferredResults OpRule::infer_in_place(const CallGraph& graph, const Call& call, SizeQuestions& sizes) const {
  const InferContext context(graph, call, schema_, sizes);
  const CallValueInfo& self = context.tensor(schema_.arguments.front().name);
  const auto computed = other_ ? other_->infer(graph, call, sizes) : std::nullopt;
  if (computed && computed->size() == 1) {
    const CallValueInfo& result = computed->front();
    if (result.sizes.size() != self.sizes.size())
      context.reject("expected a result of sizes {}, found {}", print_expr_list(self.sizes), print_expr_list(result.sizes));
    for (size_t d = 0; d < self.sizes.size(); ++d) context.require_equal(self.sizes[d], result.sizes[d], "size of the result");
    if (!can_cast(result.dtype, self.dtype)) context.reject("expected a result that {} holds, found {}", to_string(self.dtype), to_string(result.dtype));
  }
  CallValueInfo info = self;
  info.name.clear();
  return std::vector{info};
}

InferredResults infer(const CallGraph& graph, const Call& call, const SchemaSource& schemas, SizeQuestions& sizes) {
  const auto rule = OpRule::find(call.callee, call.overload, schemas);
  return rule ? rule->infer(graph, call, sizes) : std::nullopt;
}

std::vector<std::string> inferred_ops() {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rule_table()) names.push_back(name);
  return names;
}

}  // namespace cxxinductor::model

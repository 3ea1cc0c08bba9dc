#include "model/effects.h"

#include <algorithm>
#include <array>

#include "ir/callees.h"

namespace cxxinductor::model {
namespace {

// Operands that belong to an argument of the schema.
std::vector<uint32_t> operands_of(const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs, const Schema& schema, size_t position) {
  std::vector<uint32_t> refs;
  const auto collect = [&](OperandRef ref) { refs.push_back(ref.operand); };
  if (position < args.size()) {
    for_each_operand_ref(args[position], collect);
  } else {
    for (const auto& [name, arg] : kwargs) {
      if (name == schema.arguments[position].name) for_each_operand_ref(arg, collect);
    }
  }
  return refs;
}

}  // namespace

CallEffects effects_of_call(const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs, const Schema& schema, size_t results) {
  CallEffects effects;
  std::vector<uint32_t>& mutated = effects.mutated_operands;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    if (!schema.arguments[i].written) continue;
    for (uint32_t operand : operands_of(args, kwargs, schema, i)) mutated.push_back(operand);
  }
  std::sort(mutated.begin(), mutated.end());
  mutated.erase(std::unique(mutated.begin(), mutated.end()), mutated.end());

  effects.alias_of.assign(results, -1);
  const bool is_list = schema.returns.size() == 1 && schema.returns.front().is_list;
  for (size_t r = 0; r < results; ++r) {
    const size_t position = is_list ? 0 : r;
    if (position >= schema.returns.size() || schema.returns[position].alias.empty()) continue;
    for (size_t i = 0; i < schema.arguments.size() && effects.alias_of[r] < 0; ++i) {
      if (schema.arguments[i].alias != schema.returns[position].alias) continue;
      const auto operands = operands_of(args, kwargs, schema, i);
      if (!operands.empty()) effects.alias_of[r] = static_cast<int>(operands.front());
    }
  }
  return effects;
}

std::string_view functional_callee(std::string_view callee) {
  return callee.ends_with('_') && !callee.ends_with("__") ? callee.substr(0, callee.size() - 1) : callee;
}

std::set<uint32_t> written_inputs(const CallGraph& calls, const SchemaSource& schemas) {
  std::set<uint32_t> inputs, storages;
  for (const auto& [input, value] : calls.mutations) inputs.insert(input);
  for (const Call& call : calls.calls) {
    const auto schema = schemas.find(call.callee, call.overload);
    if (!schema) continue;
    const CallEffects effects = effects_of_call(call.args, call.kwargs, *schema, call.results.size());
    for (uint32_t operand : effects.mutated_operands) storages.insert(calls.values[operand].storage);
  }
  for (uint32_t i = 0; i < calls.inputs.size(); ++i)
    if (storages.contains(calls.values[calls.inputs[i]].storage)) inputs.insert(i);
  return inputs;
}

bool changes_metadata(std::string_view callee) {
  static constexpr std::array<std::string_view, 12> names{"aten::as_strided_", "aten::resize_",    "aten::resize_as_", "aten::set_",
                                                          "aten::set_data",    "aten::squeeze_",   "aten::swapaxes_",  "aten::swapdims_",
                                                          "aten::t_",          "aten::transpose_", "aten::unsqueeze_", "aten::rename_"};
  return std::find(names.begin(), names.end(), callee) != names.end();
}

bool show_the_same(const CallValueInfo& a, const CallValueInfo& b) {
  return a.sizes == b.sizes && a.strides == b.strides && a.storage_offset == b.storage_offset && a.dtype == b.dtype;
}

bool must_be_ordered(std::string_view callee, const Schema& schema) {
  return schema.nondeterministic_seeded || is_opaque_callee(callee) ||
         std::any_of(schema.arguments.begin(), schema.arguments.end(), [](const SchemaArgument& argument) { return argument.written; });
}

}  // namespace cxxinductor::model

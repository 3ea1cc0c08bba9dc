// Importers of what users register (ir/registered_ops.h). Which row a call is of follows from its name.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "frontend/accumulate.h"
#include "frontend/aten_table.h"
#include "ir/graph/infer.h"
#include "ir/registered_ops.h"

namespace cxxinductor::frontend {
namespace {

// Whether the tensors among the terms broadcast to the sizes, as is provable, and not to smaller ones.
bool broadcast_to(const CallContext& context, const std::vector<Term>& terms, const Sizes& sizes) {
  std::vector<bool> reached(sizes.size());
  for (const Term& operand : terms) {
    const auto* id = std::get_if<ValueId>(&operand);
    if (!id) continue;
    const Sizes& own = context.value(*id).sizes;
    if (own.size() > sizes.size()) return false;
    const size_t first = sizes.size() - own.size();
    for (size_t d = 0; d < own.size(); ++d) {
      const bool same = graph::same_sizes(context.assumptions(), {own[d]}, {sizes[first + d]});
      if (!same && !own[d].is_constant(1)) return false;
      if (same) reached[first + d] = true;
    }
  }
  return std::ranges::all_of(reached, std::identity());
}

Results import_scalar_op(CallContext& context) {
  const ScalarOp op = *find_registered_scalar_op(model::full_name(context.call()));
  const ScalarOpInfo& row = info(op);
  if ((context.simt() ? row.cuda_real : row.cpu_real).empty()) return context.decline("it is registered without an expression for the device");
  std::vector<Term> terms;
  for (size_t i = 0; i < context.call().args.size(); ++i) {
    auto operand = term(context, i, "");
    if (!operand) return context.decline("an argument of it is neither a tensor nor a number");
    terms.push_back(std::move(*operand));
  }
  if (terms.size() != static_cast<size_t>(row.arity)) return context.decline("it has fewer arguments than it is registered with");
  const auto dtype = operation_dtype(context, op, terms);
  if (!broadcast_to(context, terms, context.result().sizes)) return context.decline("its result is not of its operands' broadcast size");
  if (dtype != context.result().dtype) return context.decline("its result has another dtype than its operands together");
  return apply(context, op, terms, *dtype, ScalarRounding::Never);
}

Results import_reduction(CallContext& context) {
  const Reduction reduction = *find_registered_reduction(model::full_name(context.call()));
  const std::vector<TypedName>& results = form(reduction).results;
  if (results.size() != context.result_count()) return context.decline("it has another number of results than it is registered with");
  const ValueId x = context.tensor(0, "self");
  std::vector<int> dims = context.dims(1, "dim", context.rank(x));
  std::ranges::sort(dims);
  if (context.rank(x) == 0) dims.clear();
  const DType compute = compute_type(context.dtype(x));
  if (const auto op = form(reduction).refuses(compute))
    return context.decline(fmt::format("its statements apply {}, which takes no {}", info(*op).name, to_string(compute)));
  std::vector<ValueId> made = context.build.reduce(reduction, context.build.cast(x, compute), dims, context.boolean(2, "keepdim", false));
  for (size_t i = 0; i < made.size(); ++i) made[i] = context.build.cast(made[i], context.result(i).dtype);
  return made;
}

}  // namespace

ImportRow registered_scalar_op_row() { return {.importer = import_scalar_op, .host_scalars = true, .given_reals = true, .registered = true}; }
ImportRow registered_reduction_row() { return {.importer = import_reduction, .registered = true}; }

std::optional<Call> with_positional_arguments(const Call& call, const Schema& schema) {
  Call positional = call;
  positional.kwargs.clear();
  for (size_t i = call.args.size(); i < schema.arguments.size(); ++i) {
    const model::SchemaArgument& argument = schema.arguments[i];
    const auto named = std::ranges::find(call.kwargs, argument.name, [](const auto& keyword) { return keyword.first; });
    if (named == call.kwargs.end() && !argument.default_value) return std::nullopt;
    positional.args.push_back(named == call.kwargs.end() ? *argument.default_value : named->second);
  }
  return positional;
}

}  // namespace cxxinductor::frontend

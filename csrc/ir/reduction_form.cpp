#include "ir/reduction_form.h"

#include "support/error_context.h"

namespace cxxinductor {
namespace {

// T of the operand that a state is of. Where no component has it, no statement reads it.
DType operand_of(const ReductionForm& form, const std::vector<Scalar>& state) {
  for (size_t c = 0; c < form.state.size(); ++c)
    if (!form.state[c].fixed) return state[c].dtype();
  return state.front().dtype();
}

}  // namespace

std::optional<ScalarOp> ReductionForm::refuses(DType operand) const {
  for (const ScalarStatements* statements : {&start, &lift, &merge, &finish})
    if (const auto op = statements->refuses(operand)) return op;
  return std::nullopt;
}

std::vector<Scalar> ReductionForm::initial_state(DType operand) const { return start.run({}, operand); }

void ReductionForm::update(std::vector<Scalar>& into, const Scalar& value, int64_t position) const {
  merge_into(into, lift.run({value, Scalar::from_integer(DType::I64, position)}, value.dtype()));
}

void ReductionForm::merge_into(std::vector<Scalar>& left, const std::vector<Scalar>& right) const {
  std::vector<Scalar> both;
  both.reserve(2 * left.size());
  both.insert(both.end(), left.begin(), left.end());
  both.insert(both.end(), right.begin(), right.end());
  left = merge.run(std::move(both), operand_of(*this, left));
}

std::vector<Scalar> ReductionForm::finished(const std::vector<Scalar>& from) const { return finish.run(from, operand_of(*this, from)); }

ReductionForm parse_reduction_form(std::string_view state, std::string_view results, std::string_view start, std::string_view lift, std::string_view merge,
                                   std::string_view finish) {
  ReductionForm form;
  form.state = naming("state", [&] { return parse_typed_names(state); });
  form.results = naming("results", [&] { return parse_typed_names(results); });
  const TypedName element[] = {{"x", std::nullopt}, {"at", DType::I64}};
  std::vector<TypedName> both;
  for (const std::string_view side : {"a.", "b."})
    for (const TypedName& component : form.state) both.push_back({std::string(side) + component.name, component.fixed});
  const auto parse = [](std::string_view what, std::string_view text, std::span<const TypedName> inputs, std::span<const TypedName> assigned) {
    return naming(what, [&] { return ScalarStatements::parse(text, inputs, assigned); });
  };
  form.start = parse("start", start, {}, form.state);
  form.lift = parse("lift", lift, element, form.state);
  form.merge = parse("merge", merge, both, form.state);
  form.finish = parse("finish", finish, form.state, form.results);
  return form;
}

}  // namespace cxxinductor

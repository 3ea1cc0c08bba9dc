#include "ir/reduction_form.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "support/error.h"
#include "support/text_cursor.h"

namespace cxxinductor {
namespace {

std::optional<DType> parse_type(TextCursor& cursor, std::string_view name) {
  if (name == "T") return std::nullopt;
  const std::optional<DType> dtype = find_dtype(name);
  if (!dtype) cursor.fail("T or a dtype");
  return dtype;
}

std::string text_of(std::optional<DType> type) { return type ? std::string(to_string(*type)) : "T"; }

// T of the operand that a state is of. Where no component has it, no statement reads it.
DType operand_of(const ReductionForm& form, const std::vector<Scalar>& state) {
  for (size_t c = 0; c < form.state.size(); ++c)
    if (!form.state[c].fixed) return state[c].dtype();
  return state.front().dtype();
}

}  // namespace

Scalar lowest_value(DType dtype) {
  if (is_float(dtype)) return Scalar::from_real(dtype, -std::numeric_limits<double>::infinity());
  if (dtype == DType::Bool || info(dtype).dtype_class == DTypeClass::Unsigned) return Scalar::from_integer(dtype, 0);
  return Scalar::from_integer(dtype, static_cast<int64_t>(~0ULL << (8 * byte_size(dtype) - 1)));
}

Scalar highest_value(DType dtype) {
  if (is_float(dtype)) return Scalar::from_real(dtype, std::numeric_limits<double>::infinity());
  if (dtype == DType::Bool) return Scalar::from_integer(dtype, 1);
  if (info(dtype).dtype_class == DTypeClass::Unsigned) return Scalar::from_integer(dtype, -1);
  return Scalar::from_integer(dtype, static_cast<int64_t>(~(~0ULL << (8 * byte_size(dtype) - 1))));
}

class StatementParser {
  using Literal = ReductionStatements::Literal;
  using Step = ReductionStatements::Step;

 public:
  StatementParser(std::string_view text, std::span<const ReductionComponent> inputs) : cursor_(text) {
    statements_.inputs_ = inputs.size();
    for (const ReductionComponent& input : inputs) {
      names_[input.name] = types_.size();
      types_.push_back(input.fixed);
    }
  }

  ReductionStatements parse(std::span<const ReductionComponent> results) {
    if (!cursor_.at_end()) {
      do assign(results);
      while (cursor_.accept(","));
    }
    if (!cursor_.at_end()) cursor_.fail("',' or the end");
    for (const ReductionComponent& result : results) {
      const auto found = names_.find(result.name);
      if (found == names_.end()) throw_user_error("no statement assigns {}", result.name);
      expect_type(found->second, result.fixed, result.name);
      statements_.results_.push_back(found->second);
    }
    return std::move(statements_);
  }

 private:
  // A value whose type is not known: a literal that nothing has given one.
  struct Value {
    std::optional<size_t> at;
    Step literal;
  };

  void assign(std::span<const ReductionComponent> results) {
    const std::string name = cursor_.identifier("a name");
    if (!assigned_.insert(name).second) throw_user_error("{} is assigned twice", name);
    cursor_.expect("=");
    Value value = parse_value();
    const auto result = std::ranges::find(results, name, &ReductionComponent::name);
    if (!value.at && result == results.end()) throw_user_error("{} is a literal without a type", name);
    const size_t at = value.at ? *value.at : settle(value, result->fixed);
    names_[name] = at;
  }

  Value parse_value() {
    const TextCursor::Nested nested(cursor_);
    if (cursor_.looking_at_number()) return {std::nullopt, {.literal = Literal::Number, .number = cursor_.real("a number")}};
    const std::string name = cursor_.identifier("an op, a name or a literal");
    if (name == "lowest") return {std::nullopt, {.literal = Literal::Lowest}};
    if (name == "highest") return {std::nullopt, {.literal = Literal::Highest}};
    if (name == "nan") return {std::nullopt, {.literal = Literal::Number, .number = std::numeric_limits<double>::quiet_NaN()}};
    if (cursor_.looking_at("(") || cursor_.looking_at("<")) return {parse_apply(name), {}};
    const auto found = names_.find(name);
    if (found == names_.end()) throw_user_error("{} is neither an input nor assigned before", name);
    return {found->second, {}};
  }

  size_t parse_apply(const std::string& name) {
    const std::optional<ScalarOp> op = find_scalar_op(name);
    if (!op) throw_user_error("no op is called {}", name);
    const ScalarOpInfo& row = info(*op);
    std::optional<DType> target;
    if (row.rule == TypeRule::Cast) {
      cursor_.expect("<");
      target = parse_type(cursor_, cursor_.identifier("a type"));
      cursor_.expect(">");
    }
    cursor_.expect("(");
    std::vector<Value> values;
    do values.push_back(parse_value());
    while (cursor_.accept(","));
    cursor_.expect(")");
    if (values.size() != static_cast<size_t>(row.arity))
      throw_user_error("{} takes {} operands, found {}", name, row.arity, values.size());
    return apply(*op, values, target);
  }

  // Literals have the type of the other operands.
  size_t apply(ScalarOp op, std::vector<Value>& values, std::optional<DType> target) {
    const ScalarOpInfo& row = info(op);
    const size_t first = row.rule == TypeRule::Select ? 1 : 0;
    const auto typed = std::find_if(values.begin() + static_cast<ptrdiff_t>(first), values.end(), [](const Value& v) { return v.at.has_value(); });
    if (typed == values.end()) throw_user_error("{} of literals alone has no type", row.name);
    const std::optional<DType> type = types_[*typed->at];
    Step step{.op = op};
    for (size_t i = 0; i < values.size(); ++i) {
      const std::optional<DType> expected = i < first ? std::optional(DType::Bool) : type;
      if (values[i].at) expect_type(*values[i].at, expected, row.name);
      step.operands.push_back(values[i].at ? *values[i].at : settle(values[i], expected));
    }
    step.type.fixed = row.rule == TypeRule::Predicate ? std::optional(DType::Bool) : row.rule == TypeRule::Cast ? target : type;
    return add(std::move(step));
  }

  void expect_type(size_t value, std::optional<DType> type, std::string_view where) const {
    if (types_[value] != type) throw_user_error("{} expects {}, found {}", where, text_of(type), text_of(types_[value]));
  }

  size_t settle(Value& literal, std::optional<DType> type) {
    literal.literal.type.fixed = type;
    return add(literal.literal);
  }

  size_t add(Step step) {
    types_.push_back(step.type.fixed);
    statements_.steps_.push_back(std::move(step));
    return types_.size() - 1;
  }

  TextCursor cursor_;
  ReductionStatements statements_;
  std::map<std::string, size_t, std::less<>> names_;
  std::set<std::string> assigned_;
  std::vector<std::optional<DType>> types_;  // of inputs and steps
};

ReductionStatements ReductionStatements::parse(std::string_view text, std::span<const ReductionComponent> inputs,
                                               std::span<const ReductionComponent> results) {
  return StatementParser(text, inputs).parse(results);
}

std::vector<Scalar> ReductionStatements::run(std::vector<Scalar> inputs, DType operand) const {
  CXXI_CHECK(inputs.size() == inputs_, "statements of {} inputs, found {}", inputs_, inputs.size());
  std::vector<Scalar> values = std::move(inputs);
  values.reserve(inputs_ + steps_.size());
  std::vector<Scalar> operands;
  for (const Step& step : steps_) {
    const DType type = step.type.dtype(operand);
    switch (step.literal) {
      case Literal::None: {
        operands.clear();
        for (size_t value : step.operands) operands.push_back(values[value]);
        values.push_back(evaluate(step.op, operands, type));
        break;
      }
      case Literal::Number:
        values.push_back(is_float(type) ? Scalar::from_real(type, step.number)
                                        : Scalar::from_integer(type, static_cast<int64_t>(step.number)));
        break;
      case Literal::Lowest:
        values.push_back(lowest_value(type));
        break;
      case Literal::Highest:
        values.push_back(highest_value(type));
        break;
    }
  }
  std::vector<Scalar> results;
  results.reserve(results_.size());
  for (size_t value : results_) results.push_back(values[value]);
  return results;
}

bool ReductionStatements::reads(size_t input) const {
  return std::ranges::find(results_, input) != results_.end() ||
         std::ranges::any_of(steps_, [&](const Step& step) { return std::ranges::find(step.operands, input) != step.operands.end(); });
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

std::vector<Scalar> ReductionForm::finished(const std::vector<Scalar>& from) const {
  return finish.run(from, operand_of(*this, from));
}

std::vector<ReductionComponent> parse_reduction_components(std::string_view text) {
  std::vector<ReductionComponent> components;
  TextCursor cursor(text);
  while (!cursor.at_end()) {
    std::string name = cursor.identifier("a component");
    cursor.expect(":");
    components.push_back({std::move(name), parse_type(cursor, cursor.identifier("a type"))});
  }
  if (components.empty()) throw_user_error("a reduction has a state and results, found no component");
  return components;
}

ReductionForm parse_reduction_form(std::string_view state, std::string_view results, std::string_view start, std::string_view lift,
                                   std::string_view merge, std::string_view finish) {
  ReductionForm form{.state = parse_reduction_components(state), .results = parse_reduction_components(results),
                     .start = {}, .lift = {}, .merge = {}, .finish = {}};
  const ReductionComponent element[] = {{"x", std::nullopt}, {"at", DType::I64}};
  std::vector<ReductionComponent> both;
  for (const std::string_view side : {"a.", "b."})
    for (const ReductionComponent& component : form.state) both.push_back({std::string(side) + component.name, component.fixed});
  form.start = ReductionStatements::parse(start, {}, form.state);
  form.lift = ReductionStatements::parse(lift, element, form.state);
  form.merge = ReductionStatements::parse(merge, both, form.state);
  form.finish = ReductionStatements::parse(finish, form.state, form.results);
  return form;
}

}  // namespace cxxinductor

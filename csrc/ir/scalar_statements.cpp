#include "ir/scalar_statements.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "support/error.h"
#include "support/nearest_name.h"
#include "support/text_cursor.h"

namespace cxxinductor {
namespace {

std::optional<DType> parse_type(TextCursor& cursor) {
  TextCursor start = cursor;
  const std::string name = cursor.identifier("T or a dtype");
  if (name == "T") return std::nullopt;
  const std::optional<DType> dtype = find_dtype(name);
  if (!dtype) start.fail("T or a dtype");
  return dtype;
}

// A literal that no integer is.
bool needs_float(const ScalarStatements::Step& step) { return step.literal == ScalarStatements::Literal::Number && step.number != std::floor(step.number); }

std::string text_of(std::optional<DType> type) { return type ? std::string(to_string(*type)) : "T"; }

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
  using Literal = ScalarStatements::Literal;
  using Step = ScalarStatements::Step;

 public:
  StatementParser(std::string_view text, std::span<const TypedName> inputs) : cursor_(text) {
    statements_.inputs_ = inputs.size();
    for (const TypedName& input : inputs) {
      names_[input.name] = types_.size();
      types_.push_back(input.fixed);
    }
  }

  ScalarStatements parse(std::span<const TypedName> results) {
    if (!cursor_.at_end()) {
      do assign(results);
      while (cursor_.accept(","));
    }
    if (!cursor_.at_end()) cursor_.fail("',' or the end");
    for (const TypedName& result : results) {
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

  void assign(std::span<const TypedName> results) {
    const std::string name = cursor_.identifier("a name");
    if (!assigned_.insert(name).second) throw_user_error("{} is assigned twice", name);
    cursor_.expect("=");
    Value value = parse_value();
    const auto result = std::ranges::find(results, name, &TypedName::name);
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
    if (found == names_.end()) throw_user_error("{} is neither an input nor assigned before; known: {}", name, fmt::join(std::views::keys(names_), ", "));
    return {found->second, {}};
  }

  size_t parse_apply(const std::string& name) {
    const std::optional<ScalarOp> op = find_scalar_op(name);
    if (!op) {
      std::vector<std::string> known;
      for (const ScalarOpInfo& row : scalar_ops()) known.emplace_back(row.name);
      throw_user_error("no op is called {}; did you mean {}? docs/ops.md lists them", name, nearest_name(name, known));
    }
    const ScalarOpInfo& row = info(*op);
    std::optional<DType> target;
    if (row.rule == TypeRule::Cast) {
      cursor_.expect("<");
      target = parse_type(cursor_);
      cursor_.expect(">");
    }
    cursor_.expect("(");
    std::vector<Value> values;
    do values.push_back(parse_value());
    while (cursor_.accept(","));
    cursor_.expect(")");
    if (values.size() != static_cast<size_t>(row.arity)) throw_user_error("{} takes {} operands, found {}", name, row.arity, values.size());
    return apply(*op, values, target);
  }

  // Literals have the type of the other operands.
  size_t apply(ScalarOp op, std::vector<Value>& values, std::optional<DType> target) {
    const ScalarOpInfo& row = info(op);
    const size_t first = row.rule == TypeRule::Select ? 1 : 0;
    const auto typed = std::find_if(values.begin() + static_cast<ptrdiff_t>(first), values.end(), [](const Value& v) { return v.at.has_value(); });
    if (typed == values.end()) throw_user_error("{} of literals alone has no type", row.name);
    const std::optional<DType> type = types_[*typed->at];
    if (!type)
      statements_.applied_to_operand_.push_back(op);
    else if (!accepts(row.types, *type))
      throw_user_error("{} takes no {}", row.name, text_of(type));
    Step step{.op = op};
    for (size_t i = 0; i < values.size(); ++i) {
      const std::optional<DType> expected = i < first ? std::optional(DType::Bool) : type;
      if (values[i].at) expect_type(*values[i].at, expected, row.name);
      step.operands.push_back(values[i].at ? *values[i].at : settle(values[i], expected));
    }
    step.type = row.rule == TypeRule::Predicate ? std::optional(DType::Bool) : row.rule == TypeRule::Cast ? target : type;
    return add(std::move(step));
  }

  void expect_type(size_t value, std::optional<DType> type, std::string_view where) const {
    if (types_[value] != type) throw_user_error("{} expects {}, found {}", where, text_of(type), text_of(types_[value]));
  }

  size_t settle(Value& literal, std::optional<DType> type) {
    literal.literal.type = type;
    if (type && !is_float(*type) && needs_float(literal.literal)) throw_user_error("{} is no {}", literal.literal.number, text_of(type));
    return add(literal.literal);
  }

  size_t add(Step step) {
    types_.push_back(step.type);
    statements_.steps_.push_back(std::move(step));
    return types_.size() - 1;
  }

  TextCursor cursor_;
  ScalarStatements statements_;
  std::map<std::string, size_t, std::less<>> names_;
  std::set<std::string> assigned_;
  std::vector<std::optional<DType>> types_;  // of inputs and steps
};

ScalarStatements ScalarStatements::parse(std::string_view text, std::span<const TypedName> inputs, std::span<const TypedName> results) {
  return StatementParser(text, inputs).parse(results);
}

std::vector<Scalar> ScalarStatements::run(std::vector<Scalar> inputs, DType operand) const {
  CXXI_CHECK(inputs.size() == inputs_, "statements of {} inputs, found {}", inputs_, inputs.size());
  std::vector<Scalar> values = std::move(inputs);
  values.reserve(inputs_ + steps_.size());
  std::array<Scalar, 5> operands;  // of any op; without an allocation per step, since elements of a reduction run this one by one
  for (const Step& step : steps_) {
    if (step.literal != Literal::None) {
      values.push_back(literal(step, operand));
      continue;
    }
    CXXI_CHECK(step.operands.size() <= operands.size(), "{} operands", step.operands.size());
    for (size_t i = 0; i < step.operands.size(); ++i) operands[i] = values[step.operands[i]];
    values.push_back(evaluate(step.op, std::span(operands).first(step.operands.size()), step.type.value_or(operand)));
  }
  std::vector<Scalar> results;
  results.reserve(results_.size());
  for (size_t value : results_) results.push_back(values[value]);
  return results;
}

Scalar ScalarStatements::literal(const Step& step, DType operand) {
  const DType type = step.type.value_or(operand);
  switch (step.literal) {
    case Literal::None:
      break;
    case Literal::Number:
      return is_float(type) ? Scalar::from_real(type, step.number) : Scalar::from_integer(type, static_cast<int64_t>(step.number));
    case Literal::Lowest:
      return lowest_value(type);
    case Literal::Highest:
      return highest_value(type);
  }
  throw_internal("the step is not a literal");
}

std::optional<ScalarOp> ScalarStatements::refuses(DType operand) const {
  const auto found = std::ranges::find_if(applied_to_operand_, [&](ScalarOp op) { return !accepts(info(op).types, operand); });
  if (found != applied_to_operand_.end()) return *found;
  if (is_float(operand)) return std::nullopt;
  const auto is_fraction = [&](size_t value) { return value >= inputs_ && !steps_[value - inputs_].type && needs_float(steps_[value - inputs_]); };
  for (const Step& step : steps_)
    if (std::ranges::any_of(step.operands, is_fraction)) return step.op;
  return std::ranges::any_of(results_, is_fraction) ? std::optional(ScalarOp::Identity) : std::nullopt;
}

bool ScalarStatements::reads(size_t input) const {
  return std::ranges::find(results_, input) != results_.end() ||
         std::ranges::any_of(steps_, [&](const Step& step) { return std::ranges::find(step.operands, input) != step.operands.end(); });
}

std::vector<TypedName> parse_typed_names(std::string_view text) {
  std::vector<TypedName> components;
  TextCursor cursor(text);
  while (!cursor.at_end()) {
    std::string name = cursor.identifier("a component");
    if (std::ranges::find(components, name, &TypedName::name) != components.end()) throw_user_error("the component {} is declared twice", name);
    cursor.expect(":");
    components.push_back({std::move(name), parse_type(cursor)});
  }
  if (components.empty()) throw_user_error("expected names with types, found none");
  return components;
}

}  // namespace cxxinductor

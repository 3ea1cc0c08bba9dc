// Straight-line programs over scalar ops, as text in tables: what a reduction does with its states, what a registered op computes. Parsing checks
// names and types.
//
//   statements:  name = value, name = value ...     in order; a name is assigned once and may be read afterwards
//   value:       op(value, ...)                     an op of ops.def
//                cast<type>(value)                  type: T, the dtype of the operands, or a dtype
//                name | 1.5 | nan | lowest | highest   a literal has the type that it stands for; lowest and highest are those of its dtype
//
// A result that no statement assigns has the value of the input of that name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/scalar_op.h"

namespace cxxinductor {

struct TypedName {
  std::string name;
  std::optional<DType> fixed;  // none: T
  DType dtype(DType operand) const { return fixed.value_or(operand); }
};

class ScalarStatements {
 public:
  enum class Literal : uint8_t { None, Number, Lowest, Highest };
  struct Step {
    ScalarOp op = ScalarOp::Identity;
    std::vector<size_t> operands;     // values: the inputs, then the steps
    std::optional<DType> type;        // none: T
    Literal literal = Literal::None;  // else the step is this literal, and has neither op nor operands
    double number = 0;
  };

  // UserError where the text is not valid.
  static ScalarStatements parse(std::string_view text, std::span<const TypedName> inputs, std::span<const TypedName> results);
  // The results, for inputs of an operand of dtype T.
  std::vector<Scalar> run(std::vector<Scalar> inputs, DType operand) const;

  size_t input_count() const { return inputs_; }
  std::span<const Step> steps() const { return steps_; }
  std::span<const size_t> results() const { return results_; }  // values
  bool reads(size_t input) const;
  // The first op that is applied to T and does not take this dtype.
  std::optional<ScalarOp> refuses(DType operand) const;
  // Of a step that is one.
  static Scalar literal(const Step& step, DType operand);

 private:
  friend class StatementParser;
  size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<size_t> results_;
  std::vector<ScalarOp> applied_to_operand_;  // to T
};

// "mean:T count:u32"; UserError where a name comes twice.
std::vector<TypedName> parse_typed_names(std::string_view text);
// The least and the largest value of a dtype, infinities included.
Scalar lowest_value(DType dtype);
Scalar highest_value(DType dtype);

}  // namespace cxxinductor

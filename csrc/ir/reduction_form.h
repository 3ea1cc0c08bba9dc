// What a reduction computes, as data: a state of named components, and statements over scalar ops for its start, the state of one element,
// the state of two sets of elements, and the results. Rows of reductions.def state it as text; parsing checks names and types.
//
//   statements:  name = value, name = value ...     in order; a name is assigned once and may be read afterwards
//   value:       op(value, ...)                     an op of ops.def
//                cast<type>(value)                  type: T, the dtype of the operand, or a dtype
//                name | 1.5 | lowest | highest      a literal has the type that it stands for; lowest and highest are those of its dtype
//
// A component or result that no statement assigns has the value of the input of that name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/scalar_op.h"

namespace cxxinductor {

struct ReductionComponent {
  std::string name;
  std::optional<DType> fixed;  // none: T
  DType dtype(DType operand) const { return fixed.value_or(operand); }
};

class ReductionStatements {
 public:
  // UserError where the text is not valid.
  static ReductionStatements parse(std::string_view text, std::span<const ReductionComponent> inputs,
                                   std::span<const ReductionComponent> results);
  // The results, for inputs of an operand of dtype T.
  std::vector<Scalar> run(std::vector<Scalar> inputs, DType operand) const;
  bool reads(size_t input) const;

 private:
  friend class StatementParser;
  enum class Literal : uint8_t { None, Number, Lowest, Highest };
  struct Step {
    ScalarOp op = ScalarOp::Identity;
    std::vector<size_t> operands;  // inputs first, then earlier steps
    ReductionComponent type;
    Literal literal = Literal::None;  // else the step is this literal, and has neither op nor operands
    double number = 0;
  };
  size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<size_t> results_;
};

struct ReductionForm {
  std::vector<ReductionComponent> state, results;
  ReductionStatements start;   // of no element
  ReductionStatements lift;    // of x, the element, and at, its linear position within the reduced space
  ReductionStatements merge;   // of a and b, two states; the elements of a come first
  ReductionStatements finish;  // the results, of a state
  bool takes_index() const { return lift.reads(1); }

  std::vector<Scalar> initial_state(DType operand) const;
  void update(std::vector<Scalar>& state, const Scalar& value, int64_t position) const;
  void merge_into(std::vector<Scalar>& left, const std::vector<Scalar>& right) const;
  std::vector<Scalar> finished(const std::vector<Scalar>& state) const;
};

// "mean:T count:u32"
std::vector<ReductionComponent> parse_reduction_components(std::string_view text);
// Four texts of statements for a state and its results.
ReductionForm parse_reduction_form(std::string_view state, std::string_view results, std::string_view start, std::string_view lift,
                                   std::string_view merge, std::string_view finish);
// The least and the largest value of a dtype, infinities included.
Scalar lowest_value(DType dtype);
Scalar highest_value(DType dtype);

}  // namespace cxxinductor

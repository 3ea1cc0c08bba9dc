// What a reduction computes, as data: a state of named components, and statements (scalar_statements.h) for its start, the state of one element,
// the state of two sets of elements, and the results. A component that no statement assigns has the value of the input of that name.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/scalar_statements.h"

namespace cxxinductor {

struct ReductionForm {
  std::vector<TypedName> state, results;
  ScalarStatements start;   // of no element
  ScalarStatements lift;    // of x, the element, and at, its linear position within the reduced space
  ScalarStatements merge;   // of a and b, two states; the elements of a come first
  ScalarStatements finish;  // the results, of a state
  bool takes_index() const { return lift.reads(1); }

  // The first op in it that does not take an operand of this dtype.
  std::optional<ScalarOp> refuses(DType operand) const;

  std::vector<Scalar> initial_state(DType operand) const;
  void update(std::vector<Scalar>& state, const Scalar& value, int64_t position) const;
  void merge_into(std::vector<Scalar>& left, const std::vector<Scalar>& right) const;
  std::vector<Scalar> finished(const std::vector<Scalar>& state) const;
};

// Four texts of statements for a state and its results.
ReductionForm parse_reduction_form(std::string_view state, std::string_view results, std::string_view start, std::string_view lift, std::string_view merge,
                                   std::string_view finish);

}  // namespace cxxinductor

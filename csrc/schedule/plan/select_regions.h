// Analyses regions that select among sources, such as cat, pad and slice_scatter: which range of which variable holds which
// source.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

// One range: the elements of `operand`, each exactly once; or anything else (operand is invalid).
struct SelectRange {
  sym::Expr begin, extent;
  loops::BufferId operand;
  std::vector<sym::Expr> strides;  // of the operand in the result's memory, and the offset of its first element, in elements
  sym::Expr offset;
};

// How one region selects among sources for one of its results.
struct SelectRegion {
  size_t step;  // of the program
  loops::BufferId result;
  loops::Region region;  // the statements that compute the result
  bool alone;            // these are all statements of the step's region
  loops::VarId var;
  std::vector<SelectRange> ranges;  // they cover the variable's extent, ascending
};

// Nothing if the step's region is not of this form, or if no range is one of these operands.
std::optional<SelectRegion> find_select_region(const loops::Program& program, size_t step, loops::BufferId result,
                                               const std::function<bool(loops::BufferId)>& is_operand);

// Begin and extent of the ranges without an operand.
std::vector<std::pair<sym::Expr, sym::Expr>> uncovered_ranges(const SelectRegion& select);

// The one coordinate that depends on the symbol.
std::optional<size_t> only_coordinate(const std::vector<sym::Expr>& coords, sym::Expr symbol);

}  // namespace cxxinductor::schedule

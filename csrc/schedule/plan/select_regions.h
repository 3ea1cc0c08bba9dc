// Regions that choose among sources, as cat, pad and slice_scatter become: which interval of which variable holds which
// source.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

// What is found on one interval of the choice: elements of `operand`, exactly once each; or something else (invalid).
struct SelectRange {
  sym::Expr begin, extent;
  loops::BufferId operand;
  std::vector<sym::Expr>
      strides;  // of the operand in the result's memory, and the offset of its first element, in elements
  sym::Expr offset;
};

// The choice of one region among sources for one of its results.
struct SelectRegion {
  size_t step;  // of the program
  loops::BufferId result;
  loops::Region region;  // what of the region makes the result
  bool alone;            // that is all of it
  loops::VarId var;
  std::vector<SelectRange> ranges;  // of all of the variable's range, ascending
};

// Nothing where the step's region makes the result in another way, or where no interval is one of these operands.
std::optional<SelectRegion> find_select_region(const loops::Program& program, size_t step, loops::BufferId result,
                                  const std::function<bool(loops::BufferId)>& is_operand);

// Begin and extent of the intervals between pieces that have an operand.
std::vector<std::pair<sym::Expr, sym::Expr>> uncovered_ranges(const SelectRegion& select);

// The one of these that depends on the symbol.
std::optional<size_t> only_coordinate(const std::vector<sym::Expr>& coords, sym::Expr symbol);

}  // namespace cxxinductor::schedule

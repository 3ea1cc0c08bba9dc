// Strides of symbolic sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sym/expr.h"
#include "sym/simplify.h"

namespace cxxinductor {

// As eager computes them: an empty dimension counts as one element in the strides before it. Texts leave these out.
inline std::vector<sym::Expr> row_major_strides(const std::vector<sym::Expr>& sizes) {
  sym::Expr stride = 1;
  std::vector<sym::Expr> strides(sizes.size(), stride);
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    if (!sizes[d].is_constant(0)) stride = stride * sizes[d];
  }
  return strides;
}

// The assumptions, and that none of the dimensions is empty. Strides matter under these alone: with them max(1, u0),
// which counts an empty dimension as one element, is u0.
inline sym::Assumptions assume_nonempty(const std::vector<sym::Expr>& sizes, const sym::Assumptions& assumptions) {
  sym::Assumptions more = assumptions;
  const auto is_nonzero = [&](sym::Expr factor) {
    if (!factor.is_symbol()) return;
    sym::Interval range = more.range(factor.name());
    if (range.low != 0 || range.high < 1) return;
    range.low = 1;
    more.set_range(factor.name(), range);
  };
  for (sym::Expr size : sizes) {
    if (size.is_symbol()) is_nonzero(size);
    if (size.kind() == sym::Kind::Mul)
      for (sym::Expr factor : size.operands()) is_nonzero(factor);
  }
  return more;
}

// Whether they place elements one after the other, whatever the order of the dimensions.
inline bool are_dense(const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& strides, const sym::Assumptions& assumptions) {
  const sym::Assumptions elements = assume_nonempty(sizes, assumptions);
  std::vector<bool> placed(strides.size(), false);
  sym::Expr next = 1;
  for (size_t count = 0; count < strides.size(); ++count) {
    size_t found = strides.size();
    for (size_t d = strides.size(); d-- > 0 && found == strides.size();)
      if (!placed[d] && (sizes[d].is_constant(1) || strides[d] == next || sym::prove_equal(strides[d], next, elements))) found = d;
    if (found == strides.size()) return false;
    placed[found] = true;
    next = next * sizes[found];
  }
  return true;
}

// No two coordinates have one place: each stride is larger than what the smaller ones reach. Between elements may be
// gaps. False where that takes symbols of several dimensions.
inline bool are_distinct(const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& strides, const sym::Assumptions& assumptions) {
  std::vector<size_t> longer;  // than 1
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].is_constant() || sizes[d].constant() > 1) longer.push_back(d);
  if (longer.size() == 1) return sym::bounds(strides[longer[0]], assumptions).low > 0;
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, size
  for (size_t d : longer) {
    if (!sizes[d].is_constant() || !strides[d].is_constant()) return false;
    steps.emplace_back(strides[d].constant(), sizes[d].constant());
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

}  // namespace cxxinductor

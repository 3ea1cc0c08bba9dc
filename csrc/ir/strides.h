// Row-major strides of symbolic sizes, as eager computes them: an empty dimension counts as one element in the strides
// before it. Texts leave these strides out.
#pragma once

#include <vector>

#include "sym/expr.h"

namespace cxxinductor {

inline std::vector<sym::Expr> row_major_strides(const std::vector<sym::Expr>& sizes) {
  std::vector<sym::Expr> strides(sizes.size());
  sym::Expr stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    if (!sizes[d].is_constant(0)) stride = stride * sizes[d];
  }
  return strides;
}

}  // namespace cxxinductor

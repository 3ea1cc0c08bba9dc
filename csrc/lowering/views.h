// Views as index maps: coordinates of a view's element -> coordinates of the viewed value's element.
#pragma once

#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/index_algebra.h"

namespace cxxinductor::lowering {

std::vector<sym::Expr> coords_through_view(const graph::NodeKind& kind, const graph::Value& operand, const graph::Value& result,
                                           const std::vector<sym::Expr>& coords, const loops::Space& space);

}  // namespace cxxinductor::lowering

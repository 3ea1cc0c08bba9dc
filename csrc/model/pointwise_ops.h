// The ATen overloads that are one scalar op of ops.def each: their operands promote and broadcast, and they have no
// other arguments. The importer's rows and the rules for results are made from this list.
#pragma once

#include <string>
#include <vector>

#include "ir/scalar_op.h"

namespace cxxinductor::model {

struct PointwiseOp {
  std::string overload;  // "aten::eq.Tensor"
  ScalarOp op;
};
std::vector<PointwiseOp> pointwise_ops();

}  // namespace cxxinductor::model

// Operands that promote and broadcast, as TensorIterator takes them: for pointwise rules and the losses.
#pragma once

#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {

enum class ResultType : uint8_t {
  Common,  // what the operands promote to
  Float,   // likewise, and the default float dtype where that is an integer
  Real,    // likewise, and the dtype of the parts where that is complex
  Bool,
  Condition,  // common, where the first operand does not promote
};

struct PointwiseOperands {
  std::vector<const CallValueInfo*> tensors;
  std::vector<PromotedOperand> promoted;
  bool has_numbers = false;  // that become tensors

  void add(const CallValueInfo& info, bool promotes = true);
};

// The arguments that are tensors, and the numbers among those that are named as operands are.
PointwiseOperands operands_of(const InferContext& context, bool first_promotes = true);

InferredResults infer_pointwise(const InferContext& context, const PointwiseOperands& operands, ResultType type);

}  // namespace cxxinductor::model

#include "model/attention_mask.h"

namespace cxxinductor::model {

bool wants_dense_copy(const AttentionMask& mask) {
  const bool is_half = mask.query_dtype == DType::F16 || mask.query_dtype == DType::BF16;
  return mask.has_fused_kernels && is_half && !mask.has_dense_rows && !mask.requires_gradient;
}

}  // namespace cxxinductor::model

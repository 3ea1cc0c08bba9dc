// Which attention masks are copied before attention reads them: one rule for graphs of torch.compile and for what C++
// records.
#pragma once

#include "ir/dtype.h"

namespace cxxinductor::model {

struct AttentionMask {
  bool has_fused_kernels = false;  // for the query's device
  DType query_dtype = DType::F32;
  bool has_dense_rows = false;  // rank 0, or 1 as the last stride
  bool requires_gradient = false;
};

// Every fused kernel of CUDA wants a mask whose last stride is 1 (ATen/native/transformers/sdp_utils_cpp.h), but masks
// are often expanded or permuted. Attention is then three matrix products and a softmax, in f32. The values are the
// same with a copy, which is fused into what makes the mask. Of 16-bit queries alone: in f32 the fused kernels round
// otherwise than the products.
bool wants_dense_copy(const AttentionMask& mask);

}  // namespace cxxinductor::model

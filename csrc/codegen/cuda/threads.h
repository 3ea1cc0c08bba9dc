// The threads of each mapping around the bodies of its segments.
#pragma once

#include "codegen/cuda/cuda_text.h"

namespace cxxinductor::codegen {

void write_threads(CudaText& text, const plan::Pointwise& shape);
void write_threads(CudaText& text, const plan::Rows& shape);
void write_threads(CudaText& text, const plan::SerialRows& shape);
void write_threads(CudaText& text, const plan::Columns& shape);
void write_threads(CudaText& text, const plan::Tiles& shape);
// The whole kernel, from its template.
void write_matmul(CudaText& text, const plan::Matmul& shape);

}  // namespace cxxinductor::codegen

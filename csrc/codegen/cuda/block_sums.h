// Sums in blocks: the states of long sums, which loops over rows put aside now and then.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/cuda/cuda_text.h"

namespace cxxinductor::codegen {

// A total for each; lanes: one for each column of the fragment.
void declare_blocks(CudaText& text, const kernels::Slot& slot, const std::vector<StmtId>& reduces, bool lanes);
// At the end of a turn of the loop. states: "r", or "a" for accumulators.
void put_blocks_aside(CudaText& text, const std::vector<StmtId>& reduces, std::string_view states);

}  // namespace cxxinductor::codegen

// How the reductions of a region relate to memory.
#pragma once

#include "kernels/region/flat_region.h"

namespace cxxinductor::kernels {

enum class RowsLie : uint8_t { Nowhere, AlongMemory, AcrossMemory };
RowsLie rows_lie(const FlatRegion& flat);
// What families of columns accept, on every target.
bool have_rows_across_memory(const FlatRegion& flat, const Target&);

}  // namespace cxxinductor::kernels

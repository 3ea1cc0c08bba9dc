// Shared by index and index_put: the dimensions of a result that is indexed by a list of tensors.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

bool is_index(const CallContext& context, ValueId id);  // of a dtype that indices have

// x[i, :, j]: dimension d of x is result dimension source[d], or for -1 - k index k at result dimensions index_dims.
struct IndexedDims {
  std::vector<int> source, index_dims;
  std::vector<ValueId> indices;  // of one size
  Sizes sizes;                   // of the result
};
// For the argument "indices" at position 1; none when one is a mask, not known, or there is none. Builds expansions.
std::optional<IndexedDims> indexed_dims(CallContext& context, ValueId x);

}  // namespace cxxinductor::frontend

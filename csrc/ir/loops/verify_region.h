// Invariants of one region, shared by the loops IR (L) and the plan, whose kernels hold regions over parameters.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::loops {

struct RegionContext {
  struct Buffer {
    DType dtype;
    std::optional<size_t> rank;  // unknown for a kernel's parameter
    std::string name;
  };
  std::vector<Buffer> buffers;              // indexed by BufferId
  std::unordered_set<std::string> symbols;  // known outside the region
  const OriginTable* origins = nullptr;     // for messages; may be null
  bool named = true;                        // the region must have a name
  bool flat = false;                        // coordinates are offsets: strides of 0 hide variables from reductions
};
// L1 to L8, L12 and L13, see verify.cpp.
std::vector<std::string> verify_region(const Region& region, const RegionContext& context);

}  // namespace cxxinductor::loops

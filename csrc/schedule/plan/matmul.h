// Maps regions that are matrix products to tensor cores.
//
// A candidate is any region whose one reduction is a sum over k of products of two 16-bit floats (plan::find_matmul), whose
// factors vary over different variables, and whose stored factors consist of 16-byte chunks, which are aligned unless
// the product is a small one (matmul_cost.h). Its origin does not matter.
#pragma once

#include <optional>

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/region/flat_region.h"
#include "schedule/plan/mapping.h"
#include "schedule/plan/matmul_cost.h"

namespace cxxinductor::schedule {

// Brings a flat region (ordered, merged) into the form of plan::Matmul: space is the batch, then m, then n.
// Returns false and changes nothing if the template cannot compute the region, or if it is too small for the tiles.
bool arrange_matmul(kernels::FlatRegion& flat, const Target& target);
// Size of the product that a region of a program computes, and the expected time of its kernel without the epilogue.
struct MatmulEstimate {
  MatmulSize size;
  double seconds;
};
std::optional<MatmulEstimate> estimate_matmul(const loops::Program& program, const loops::Region& region, const Target& target);
// flat: arranged and named.
MappedRegion map_matmul(const kernels::FlatRegion& flat, const Target& target);
// Blocks of a product by warp groups that run at a time: each computes tile after tile.
int matmul_blocks_abreast(const plan::Matmul& matmul, const Target& target);
// Kinds of accesses of a kernel mapped so.
void describe_matmul_accesses(plan::Kernel& kernel, const kernels::FlatRegion& flat);

}  // namespace cxxinductor::schedule

// Products on tensor cores: which regions are some, and their mapping.
//
// Any region is taken whose one reduction is a sum over k of products of two 16-bit floats (plan::find_matmul), whose
// factors vary over different variables, and whose stored factors lie so that 16-byte chunks of them are aligned. It does
// not matter where the region came from.
#pragma once

#include <optional>

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "schedule/plan/flat_region.h"
#include "schedule/plan/mapping.h"
#include "schedule/plan/matmul_cost.h"

namespace cxxinductor::schedule {

// Brings a flat region (ordered, merged) into the form of plan::MappingKind::Matmul: space is the batch, then m, then n.
// False, and nothing changed, where the region is no product that the template can compute, or too small for its tiles.
bool arrange_matmul(FlatRegion& flat, const Target& target);
// What a region of a program that will be mapped so computes, and how long the kernel is expected to take without its
// epilogue.
struct MatmulEstimate {
  MatmulSize size;
  double seconds;
};
std::optional<MatmulEstimate> estimate_matmul(const loops::Program& program, const loops::Region& region, const Target& target);
// flat: arranged and named.
MappedRegion map_matmul(const FlatRegion& flat, const Target& target);
// Kinds of accesses of a kernel mapped so.
void describe_matmul_accesses(plan::Kernel& kernel, const FlatRegion& flat);

}  // namespace cxxinductor::schedule

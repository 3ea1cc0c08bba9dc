#include "ir/plan/matmul.h"

#include <fmt/format.h>

namespace cxxinductor::plan {

sym::Expr Matmul::units(const Mapping& mapping, const loops::Region& region) const {
  const VarId m = matmul_m(mapping), n = matmul_n(mapping);
  sym::Expr blocks = 1;
  for (VarId v : mapping.space) blocks = blocks * sym::ceil_div(region.vars[v].extent, v == m ? tile_m : v == n ? tile_n : 1);
  return blocks;
}

int64_t Matmul::dynamic_shared_bytes(const Kernel& kernel) const { return matmul_shared_bytes(kernel); }

void Matmul::verify(const Kernel& kernel, const Report& report) const {
  const Mapping& mapping = kernel.mapping;
  const auto parts = find_matmul(kernel.region);
  if (!parts || mapping.space.size() < 2 || mapping.row != std::vector<VarId>{parts->k})
    return report("P4", "a matmul is one sum of products of narrow floats, over the variable of its row");
  const VarId m = matmul_m(mapping), n = matmul_n(mapping);
  const loops::VarSet left = kernel.region.body[parts->left].vars, right = kernel.region.body[parts->right].vars;
  const bool straight = left.contains(m) && right.contains(n) && !left.contains(n) && !right.contains(m);
  const bool swapped = left.contains(n) && right.contains(m) && !left.contains(m) && !right.contains(n);
  if (!straight && !swapped) report("P4", "of a matmul's factors one varies over m, the other over n");
  // Whole fragments of 16 x 16 for each warp, and two steps of 16 to take turns in registers.
  if (tile_m % (16 * warps_m) != 0 || tile_n % (16 * warps_n) != 0 || tile_k % 32 != 0)
    report("P4", fmt::format("tiles of {} x {} x {} cannot be dealt to the warps", tile_m, tile_n, tile_k));
  // Each group of warps multiplies 64 rows at a time, out of blocks of 64 elements along m or n.
  if (warpgroups && (warps_n != 1 || warps_m % 4 != 0 || tile_n < 64 || tile_n > 256 || tile_k > 64 || stages < 3))
    report("P4", fmt::format("tiles of {} x {} x {} in {} stages cannot be dealt to groups of four warps", tile_m, tile_n, tile_k, stages));
  if (kernel.segments.size() != 2 || kernel.segments[0].kind != Segment::Kind::RowLoop || kernel.segments[1].kind != Segment::Kind::PerRow)
    report("P5", "a matmul has a row loop and a per-row segment");
}

}  // namespace cxxinductor::plan

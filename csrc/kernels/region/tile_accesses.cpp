#include "kernels/region/tile_accesses.h"

#include "ir/plan/tile_layout.h"
#include "kernels/region/access.h"

namespace cxxinductor::kernels {

void describe_tile_accesses(plan::Kernel& kernel, const FlatRegion& flat, const Target& target, int64_t most_bytes) {
  describe_plain_accesses(kernel, flat, target);
  const plan::Mapping& mapping = kernel.mapping;
  const loops::VarId v = vector_variable(mapping);
  int64_t bytes = 0;
  for (const loops::Access& access : accesses(kernel.region)) {
    const loops::Stmt& stmt = kernel.region.body[access.stmt];
    if (!is_tiled(flat, stmt, v, tile_variable(mapping))) continue;
    const int64_t more = plan::TileLayout{tile_size(mapping), mapping.vector_width, byte_size(stmt.dtype)}.bytes();
    if (bytes + more > most_bytes) continue;
    bytes += more;
    describe_access(kernel, access, plan::AccessKind::Staged, mapping.vector_width, target);
  }
}

}  // namespace cxxinductor::kernels

#include "ir/plan/shapes/cpu.h"

#include <fmt/format.h>

#include "ir/plan/cpu_rows.h"
#include "ir/plan/shapes/tiles.h"

namespace cxxinductor::plan {

sym::Expr CpuPointwise::units(const Mapping& mapping, const loops::Region& region) const { return sym::ceil_div(points_of(region, mapping.space), chunk); }

sym::Expr CpuRows::units(const Mapping& mapping, const loops::Region& region) const { return points_of(region, mapping.space); }

sym::Expr CpuRows::updates_of_state(const Mapping& mapping, const loops::Region& region) const {
  if (mapping.row.empty()) return 1;
  return points_of(region, {mapping.row.begin(), mapping.row.end() - 1}) * updates_of_pass(mapping, region);
}

void CpuRows::verify(const Kernel& kernel, const Report& report) const {
  if (!persistent) return;
  const sym::Expr length = points_of(kernel.region, kernel.mapping.row);
  if (!length.is_constant()) return report("P4", fmt::format("persistent rows of {} elements on the CPU", sym::to_string(length)));
  const int64_t bytes = persistent_bytes(kernel.region, kernel.memory_spaces, length.constant());
  if (bytes > most_persistent_bytes) report("P4", fmt::format("persistent values of {} bytes exceed a stack of {}", bytes, most_persistent_bytes));
}

sym::Expr CpuColumns::units(const Mapping& mapping, const loops::Region& region) const { return groups_of(region, mapping.space, columns_per_unit); }

sym::Expr CpuColumns::updates_of_state(const Mapping& mapping, const loops::Region& region) const { return points_of(region, mapping.row); }

void CpuColumns::verify(const Kernel& kernel, const Report& report) const {
  if (columns_per_unit % kernel.mapping.vector_width != 0)
    report("P4", fmt::format("a strip of {} columns is cut into vectors of {}", columns_per_unit, kernel.mapping.vector_width));
}

sym::Expr CpuTiles::units(const Mapping& mapping, const loops::Region& region) const { return tile_units(mapping, region, tile_var, tile); }

void CpuTiles::verify(const Kernel& kernel, const Report& report) const { verify_tile(kernel.mapping, tile_var, tile, report); }

}  // namespace cxxinductor::plan

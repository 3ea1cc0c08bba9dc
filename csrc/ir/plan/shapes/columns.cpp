#include "ir/plan/columns.h"

#include <fmt/format.h>

#include "ir/plan/tile_layout.h"

namespace cxxinductor::plan {

sym::Expr Columns::units(const Mapping& mapping, const loops::Region& region) const { return groups_of(region, mapping.space, columns_per_block); }

bool Columns::has_dead_rows(const Kernel& kernel) const {
  return !sym::prove_divides(columns_per_block, kernel.region.vars[vector_variable(kernel.mapping)].extent, kernel.assumptions);
}

sym::Expr Columns::updates_of_state(const Mapping& mapping, const loops::Region& region) const {
  return sym::ceil_div(points_of(region, mapping.row), threads_per_row);
}

void Columns::verify(const Kernel& kernel, const Report& report) const {
  if (columns_per_block % kernel.mapping.vector_width != 0)
    return report("P4", fmt::format("a strip of {} columns is cut into vectors of {}", columns_per_block, kernel.mapping.vector_width));
  if (const int64_t bytes = columns_shared_bytes(kernel.region, kernel.mapping); bytes > static_shared_bytes)
    report("P4", fmt::format("states of {} bytes exceed shared memory of {}", bytes, static_shared_bytes));
}

}  // namespace cxxinductor::plan

#include "ir/plan/serial_rows.h"

#include <fmt/format.h>

namespace cxxinductor::plan {

sym::Expr SerialRows::units(const Mapping& mapping, const loops::Region& region) const { return points_of(region, mapping.space); }

bool SerialRows::has_dead_rows(const Kernel& kernel) const {
  return !sym::prove_divides(rows_per_block, kernel.region.vars[serial].extent, kernel.assumptions);
}

int64_t SerialRows::dynamic_shared_bytes(const Kernel& kernel) const { return serial_shared_bytes(kernel); }

void SerialRows::verify(const Kernel& kernel, const Report& report) const {
  if (rows_per_block == 1) return;
  for (size_t s = 0; s < kernel.memory_spaces.size(); ++s)
    if (kernel.memory_spaces[StmtId(s)] == MemorySpace::Shared) report("P6", fmt::format("%{} is shared by {} rows at a time", s, rows_per_block));
}

}  // namespace cxxinductor::plan

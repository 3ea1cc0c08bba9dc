#include "ir/plan/mapping.h"
#include "ir/plan/plan.h"

namespace cxxinductor::plan {

sym::Expr Rows::units(const Mapping& mapping, const loops::Region& region) const { return sym::ceil_div(points_of(region, mapping.space), rows_per_block); }

bool Rows::has_dead_rows(const Kernel& kernel) const {
  return rows_per_block > 1 && !sym::prove_divides(rows_per_block, points_of(kernel.region, kernel.mapping.space), kernel.assumptions);
}

sym::Expr Rows::updates_of_state(const Mapping& mapping, const loops::Region& region) const {
  if (persistent || mapping.row.empty()) return 1;
  return sym::ceil_div(groups_of(region, mapping.row, mapping.vector_width), threads_per_row);
}

}  // namespace cxxinductor::plan

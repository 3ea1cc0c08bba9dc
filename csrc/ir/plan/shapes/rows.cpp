#include "ir/plan/mapping.h"

namespace cxxinductor::plan {

sym::Expr Rows::units(const Mapping& mapping, const loops::Region& region) const {
  return sym::ceil_div(points_of(region, mapping.space), rows_per_block);
}

sym::Expr Rows::updates_of_state(const Mapping& mapping, const loops::Region& region) const {
  if (persistent || mapping.row.empty()) return 1;
  return sym::ceil_div(groups_of(region, mapping.row, mapping.vector_width), threads_per_row);
}

}  // namespace cxxinductor::plan

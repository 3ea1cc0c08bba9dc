#include "ir/plan/mapping.h"

namespace cxxinductor::plan {

sym::Expr Pointwise::units(const Mapping& mapping, const loops::Region& region) const {
  return sym::ceil_div(groups_of(region, mapping.space, mapping.vector_width), int64_t{block_threads} * unroll);
}

}  // namespace cxxinductor::plan

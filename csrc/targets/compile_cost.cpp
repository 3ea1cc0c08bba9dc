#include "targets/compile_cost.h"

namespace cxxinductor::targets {

double compile_cost(const plan::Kernel& kernel) {
  double cost = 5;  // of what every kernel has
  for (const plan::Segment& segment : kernel.segments) cost += static_cast<double>(segment.stmts.size());
  return is_simt(kernel.mapping) ? cost * kernel.mapping.vector_width * plan::unrolled_groups(kernel.mapping) : cost;
}

}  // namespace cxxinductor::targets

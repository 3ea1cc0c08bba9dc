#include "ir/plan/launch_shape.h"

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

LaunchShape launch_shape(const Kernel& kernel) {
  LaunchShape shape;
  shape.block_x = block_threads(kernel.mapping);
  shape.dynamic_shared_bytes = dynamic_shared_bytes(kernel);
  return shape;
}

}  // namespace cxxinductor::plan

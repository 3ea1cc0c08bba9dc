// Shapes of kernels whose blocks take several rows one after the other. Sums across rows stay in registers or shared memory
// until the end, so the backward of a norm reads its operands once for the gradients of input and weights.
#pragma once

#include <optional>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/instance.h"

namespace cxxinductor::kernels {

// What a serial row needs from a block.
struct SerialRowNeeds {
  int64_t groups = 1;
  int vector_width = 1;
  int persistent_bytes = 0;   // per element, of values kept between row loops
  std::vector<DType> states;  // of the reductions over the serial variable, one per element
};

// How the threads of a block share a row. The first `shared_states` of the reductions lie in shared memory, the others in
// registers.
struct SerialRowShape {
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1, shared_states = 0;
};
// Nothing where neither registers nor shared memory suffice. Fusion asks before it makes such a region.
std::optional<SerialRowShape> serial_row_shape(const SerialRowNeeds& needs, const Target& target);

Instance instantiate_serial_rows(const plan::Kernel& kernel, plan::Variant variant);

}  // namespace cxxinductor::kernels

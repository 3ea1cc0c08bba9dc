// Rows that a block takes in turn, so that what is reduced across rows stays near until the end: backwards of norms
// read their operands once, for the gradient of the input and for those of the weights.
#pragma once

#include <optional>
#include <vector>

#include "schedule/plan/mapping.h"

namespace cxxinductor::schedule {

// What a row that is walked asks of a block.
struct SerialRowNeeds {
  int64_t groups = 1;
  int vector_width = 1;
  int persistent_bytes = 0;     // an element, of what row loops keep
  std::vector<DType> states;  // of the reductions over the serial variable, which each element has
};

// How threads of a block share a row. The first `shared_states` of the reductions lie in shared memory, the others in
// registers.
struct SerialRowShape {
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1, shared_states = 0;
};
// Nothing where neither registers nor shared memory suffice. Fusion asks before it makes such a region.
std::optional<SerialRowShape> serial_row_shape(const SerialRowNeeds& needs, const Target& target);

// flat has a walk. Unsupported where the row does not fit after all.
MappedRegion map_serial_rows(const FlatRegion& flat, const Target& target, plan::Mapping mapping);

}  // namespace cxxinductor::schedule

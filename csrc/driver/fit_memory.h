// The stage fit-memory: plans again where a plan holds more memory than eager.
#pragma once

#include "driver/stages.h"

namespace cxxinductor::driver {

// A plan that holds more than eager on some device is made again: first with fusions that stretch live ranges less and less, then, where
// graph passes spent memory that eager does not have, also without those passes, the last one first. The first plan that holds no more
// than eager is taken, else the one that exceeds it least; state.inputs.options then skips what was left out. At most 12 plans are made.
// A run that began after lowering has no graph to plan again from, and keeps its plan.
bool fit_memory(PipelineState& state);

}  // namespace cxxinductor::driver

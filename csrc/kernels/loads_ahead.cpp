#include "kernels/loads_ahead.h"

#include <algorithm>

#include "ir/plan/early_loads.h"

namespace cxxinductor::kernels {
namespace {

constexpr int registers_for_loads = 64;  // of 32 bits, of a thread

// Of one row loop: as many groups as fit, if several do; of tiles, beside whose squares they are under way, all or none.
int groups_ahead(const plan::Kernel& kernel, const plan::Segment& segment) {
  const int groups = groups_of_thread(kernel.mapping);
  const std::vector<plan::StmtId> early = plan::early_loads_of_row_loop(kernel, segment);
  if (early.empty() || groups == 0) return 0;
  const int fitting = std::min(registers_for_loads / plan::registers_of(kernel, early), groups);
  if (is_tiles(kernel.mapping)) return fitting == groups ? groups : 0;
  return fitting > 1 ? fitting : 0;
}

}  // namespace

void choose_loads_ahead(plan::Kernel& kernel) {
  for (plan::Segment& segment : kernel.segments)
    if (segment.kind == plan::Segment::Kind::RowLoop) segment.loads_ahead = groups_ahead(kernel, segment);
}

}  // namespace cxxinductor::kernels

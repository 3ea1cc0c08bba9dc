#include "schedule/plan/loads_ahead.h"

#include <algorithm>

#include "ir/plan/early_loads.h"

namespace cxxinductor::schedule {
namespace {

constexpr int registers_for_loads = 64;  // of 32 bits, of a thread

// As many items as fit, if several do.
int items_ahead(const plan::Kernel& kernel, const plan::Segment& segment) {
  const int items = unrolled_groups(kernel.mapping);
  const std::vector<plan::StmtId> early = plan::early_loads_of_row_loop(kernel, segment);
  if (early.empty() || items == 1) return 0;
  const int fitting = std::min(registers_for_loads / plan::registers_of(kernel, early), items);
  return fitting > 1 ? fitting : 0;
}

// All of a thread's groups of the tile, beside the squares that it loads, or none.
int groups_ahead(const plan::Kernel& kernel, const plan::Segment& segment, const plan::Tiles& tiles) {
  const std::vector<plan::StmtId> early = plan::early_loads(kernel, segment.stmts);
  const int turns = tile_turns(kernel.mapping, tiles);
  return early.empty() || plan::registers_of(kernel, early) * turns > registers_for_loads ? 0 : turns;
}

}  // namespace

void choose_loads_ahead(plan::Kernel& kernel) {
  const auto* tiles = kernel.mapping.as<plan::Tiles>();
  const bool rows = is_of_gpu(kernel.mapping) && is_persistent(kernel.mapping);
  for (plan::Segment& segment : kernel.segments) {
    if (segment.kind != plan::Segment::Kind::RowLoop) continue;
    if (tiles) segment.loads_ahead = groups_ahead(kernel, segment, *tiles);
    if (rows) segment.loads_ahead = items_ahead(kernel, segment);
  }
}

}  // namespace cxxinductor::schedule

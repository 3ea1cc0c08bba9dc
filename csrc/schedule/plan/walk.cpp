#include "schedule/plan/walk.h"

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

// One block a multiprocessor: half its threads, with 128 registers each. On an H200 that beat smaller and more blocks, as
// what a thread holds of a row and of its sums is what keeps memory busy.
constexpr int block_threads = 512;
constexpr int registers_of_thread = 128, registers_for_the_rest = 44;
// Elements of a row that a thread holds.
constexpr int64_t most_elements = 24;

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::optional<WalkShape> walk_shape(int64_t groups, int vector_width, int accumulators, int resident_bytes) {
  std::optional<WalkShape> best;
  for (int threads = 32; threads <= block_threads; threads *= 2) {
    const int64_t items = ceil_of(groups, threads), elements = items * vector_width;
    // Sums, the row, and the next row on its way.
    const int64_t registers = elements * accumulators + 2 * ceil_of(elements * resident_bytes, 4);
    if (elements > most_elements || registers + registers_for_the_rest > registers_of_thread) continue;
    const WalkShape shape{threads, block_threads / threads, static_cast<int>(items)};
    // More threads only where fewer of them would be idle.
    if (!best || items * threads < int64_t{best->items_per_thread} * best->threads_per_row) best = shape;
  }
  return best;
}

MappedRegion map_walk(const FlatRegion& flat, const Target& target, plan::Mapping mapping) {
  Schedule schedule = schedule_resident(flat, {.loads = true, .expensive = true});
  int accumulators = 0;
  for (size_t s = 0; s < flat.region.body.size(); ++s)
    if (flat.is_across(loops::StmtId(s))) accumulators += ceil_of(byte_size(flat.region.body[loops::StmtId(s)].dtype), 4);
  const sym::Expr groups = group_count(flat, flat.row, mapping.vector_width);
  CXXI_CHECK(groups.is_constant() && target.max_threads_per_block >= block_threads,
             "region {} walks rows of {} groups in blocks of {} threads", flat.region.name, sym::to_string(groups),
             target.max_threads_per_block);
  const auto shape = walk_shape(groups.constant(), mapping.vector_width, accumulators, schedule.resident_bytes);
  if (!shape) throw_unsupported("region {} walks rows that do not fit into registers", flat.region.name);
  mapping.threads_per_row = shape->threads_per_row;
  mapping.rows_per_block = shape->rows_per_block;
  mapping.items_per_thread = shape->items_per_thread;
  mapping.block_threads = block_threads;
  mapping.resident = true;
  return {std::move(mapping), std::move(schedule)};
}

}  // namespace cxxinductor::schedule

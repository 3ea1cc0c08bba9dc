// Rows along memory on GPUs: in registers where they fit, else read again by each row loop.
#include <algorithm>

#include "kernels/body/slots.h"
#include "kernels/region/work.h"
#include "kernels/registry.h"
#include "kernels/row_loops.h"
#include "kernels/rows/online_softmax.h"
#include "sym/integer.h"

namespace cxxinductor::kernels {
namespace {

using loops::VarId;
using plan::Mapping;
using plan::Segment;
using sym::Expr;

int count_row_loops(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.segments.begin(), schedule.segments.end(), [](const Segment& s) { return s.kind == Segment::Kind::RowLoop; }));
}

// Threads for a row of n elements that stays in registers; more of them when rows are too few to fill the device.
int64_t threads_for_row(int64_t n) {
  if (n <= 64) return 8;
  if (n <= 128) return 16;
  if (n <= 3072) return 32;
  if (n <= 6144) return 64;
  if (n <= 16384) return 128;
  return 256;
}

constexpr int64_t longest_persistent_row = int64_t{1} << 20, shortest_persistent_row = 16;
constexpr int64_t idle_items = 4;  // of as many, one may be used
constexpr int64_t registers_for_addresses = 28;

int64_t persistent_register_limit(const Target& target, int64_t block_threads) {
  return std::min<int64_t>(64, target.machine.registers_per_multiprocessor / block_threads - registers_for_addresses);
}

int64_t widen_for_few_rows(const FlatRegion& flat, const Target& target, int64_t threads, int64_t groups) {
  Expr rows = points(flat, flat.space);
  if (!rows.is_constant()) return threads;
  int64_t wanted = int64_t{512} * target.multiprocessors;
  while (threads * 2 <= std::min<int64_t>(groups, target.max_threads_per_block) && rows.constant() * threads < wanted) threads *= 2;
  return threads;
}

plan::Rows rows_of(int64_t threads) {
  return {.threads_per_row = static_cast<int>(threads), .rows_per_block = static_cast<int>(std::max<int64_t>(1, 128 / threads))};
}

// Rows that stay in registers, if they fit.
std::optional<plan::Rows> persistent_rows(const FlatRegion& flat, const Target& target, int vector_width, const Schedule& persistent) {
  // A symbolic length counts as the longest that the ranges allow, unless most rows would then leave most items idle.
  const sym::Interval lengths = bounds(points(flat, flat.row), flat.assumptions);
  const int64_t length = lengths.high;
  const int64_t groups = bounds(group_count(flat, flat.row, vector_width), flat.assumptions).high;
  const bool spread = lengths.low != length && length / idle_items > std::max(lengths.low, shortest_persistent_row);
  if (persistent.persistent_bytes == 0 || groups > longest_persistent_row || spread) return std::nullopt;
  int64_t threads = std::min(threads_for_row(length), power_of_two_up(groups));
  if (threads > target.warp && uses_random(flat)) threads = std::min(2 * threads, power_of_two_up(groups));
  threads = widen_for_few_rows(flat, target, threads, groups);
  for (; threads <= target.max_threads_per_block; threads *= 2) {
    int64_t items = sym::ceil_quotient(groups, threads);
    int64_t registers = sym::ceil_quotient(items * vector_width * persistent.persistent_bytes, 4);
    if (registers > persistent_register_limit(target, std::max<int64_t>(threads, 128))) continue;
    plan::Rows rows = rows_of(threads);
    rows.items_per_thread = static_cast<int>(std::max<int64_t>(items, 1));
    rows.persistent = true;
    return rows;
  }
  return std::nullopt;
}

plan::Rows looped_rows(const FlatRegion& flat, const Target& target, int vector_width) {
  Expr groups = group_count(flat, flat.row, vector_width);
  // Narrow loads (rows of odd length) need more of them to keep memory busy.
  const int64_t narrow = std::clamp<int64_t>(4 / vector_width, 1, 4);
  const int64_t most_in_flight = (count_loads(flat, flat.row.back()) <= 2 ? 4 : 2) * narrow;
  int64_t most = std::min<int64_t>(1024, target.max_threads_per_block);
  int64_t threads = 128, in_flight = most_in_flight;
  if (groups.is_constant()) {
    int64_t count = groups.constant();
    threads = std::clamp<int64_t>(power_of_two_down(sym::ceil_quotient(count, most_in_flight)), std::min<int64_t>(8, power_of_two_up(count)), most / 2);
    threads = widen_for_few_rows(flat, target, threads, count);
    in_flight = std::clamp<int64_t>(power_of_two_down(count / threads), 1, most_in_flight);
  } else if (sym::Interval range = bounds(groups, flat.assumptions); range.high <= 1024) {
    threads = 32;
  }
  // One long row runs on one block.
  if (flat.space.empty() && !groups.is_constant()) threads = most;
  plan::Rows rows = rows_of(threads);
  rows.in_flight = static_cast<int>(in_flight);
  return rows;
}

bool has_rows(const FlatRegion& flat, const Target&) { return !flat.row.empty(); }

MappedRegion map_rows(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.row, target);
  // Where registers are too few for expensive values, computing those again is still cheaper than reading the row
  // again.
  for (bool expensive : {true, false}) {
    Schedule persistent = schedule_persistent(flat, {.loads = true, .expensive = expensive});
    if (count_row_loops(persistent) <= 1) continue;
    if (const auto fitting = persistent_rows(flat, target, mapping.vector_width, persistent)) {
      mapping.shape = *fitting;
      return {std::move(mapping), std::move(persistent)};
    }
  }
  mapping.shape = looped_rows(flat, target, mapping.vector_width);
  return {std::move(mapping), schedule_looped(flat)};
}

std::optional<FlatRegion> join_sums_of_loops(const FlatRegion& flat, const Mapping& mapping) {
  return is_persistent(mapping) ? std::nullopt : join_softmax_sums(flat);
}

Instance instantiate_rows(const plan::Kernel& kernel, plan::Variant) {
  const auto& shape = kernel.mapping.get<plan::Rows>();
  const std::vector<VarId>& space = kernel.mapping.space;
  const int width = vector_variable(kernel.mapping).valid() ? kernel.mapping.vector_width : 1;
  const bool constant_length = plan::groups_of(kernel.region, kernel.mapping.row, width).is_constant();
  Values values = row_loops(kernel, {shape.threads_per_row, shape.items_per_thread});
  values.merge(Values{{"block", BlockNumber()},
                      {"uniform_loads", loads_made_once(kernel)},
                      {"several_threads", when(shape.threads_per_row > 1)},
                      {"several_rows", when(shape.rows_per_block > 1)},
                      {"rows_per_block", shape.rows_per_block},
                      {"numbered", when(!space.empty() || shape.rows_per_block > 1)},
                      {"place", has_dead_rows(kernel) ? "cxxi_place" : "cxxi_row"},
                      {"rows", count_groups(kernel, space, 1)},
                      {"row", Coordinates{"cxxi_row", space}},
                      {"counts_groups", when(shape.persistent && !constant_length)},
                      {"groups", count_groups(kernel, kernel.mapping.row, width)}});
  return {"rows_kernel", std::move(values)};
}

}  // namespace

const KernelFamily family::rows{
    .name = plan::Rows::keyword, .simt = true, .accepts = has_rows, .map = map_rows, .rewrite = join_sums_of_loops, .instantiate = instantiate_rows};

}  // namespace cxxinductor::kernels

#include "kernels/serial_rows/serial_rows.h"

#include <algorithm>
#include <set>

#include "ir/plan/serial_rows.h"
#include "kernels/registry.h"
#include "support/error.h"
#include "sym/integer.h"

namespace cxxinductor::kernels {
namespace {

// One block per multiprocessor, with half its threads and 128 registers each. On an H200 that was faster than smaller and
// more blocks, because registers that hold rows and sums keep loads in flight. (1024 threads have 64 registers each: a row of
// 16384 16-bit elements and the next one then spill.)
constexpr int block_threads = 512;
// For all but sums and operands: addresses, and a group in the arithmetic.
constexpr int registers_for_the_rest = 44;
// Elements of a row that a thread holds; where sums are in shared memory there is room for more.
constexpr int64_t most_elements = 24, most_elements_with_shared_states = 32;
// Of the block's shared memory, for joining the reductions along rows.
constexpr int64_t shared_bytes_for_the_rest = 2048;

int64_t registers_of_thread(const Target& target) { return target.machine.registers_per_multiprocessor / block_threads; }

// Registers of a thread that holds so many elements of a row: sums, the row, and the next row in flight.
int64_t registers_for(const SerialRowNeeds& needs, int64_t elements, size_t shared) {
  int64_t of_sums = 0;
  for (size_t i = shared; i < needs.states.size(); ++i) of_sums += sym::ceil_quotient(byte_size(needs.states[i]), 4);
  return elements * of_sums + 2 * sym::ceil_quotient(elements * needs.persistent_bytes, 4) + registers_for_the_rest;
}

// The shape with the first `shared` of the reductions in shared memory.
std::optional<SerialRowShape> shape_with(const SerialRowNeeds& needs, size_t shared, const Target& target) {
  int64_t shared_bytes = shared_bytes_for_the_rest;
  for (size_t i = 0; i < shared; ++i) shared_bytes += plan::shared_states_bytes(needs.groups, needs.vector_width, needs.states[i]);
  if (shared_bytes > target.machine.shared_bytes_per_block) return std::nullopt;
  std::optional<SerialRowShape> best;
  // Shared states belong to one thread each: the whole block takes one row.
  for (int threads = shared ? block_threads : 32; threads <= block_threads; threads *= 2) {
    const int64_t items = sym::ceil_quotient(needs.groups, threads), elements = items * needs.vector_width;
    if (elements > (shared ? most_elements_with_shared_states : most_elements)) continue;
    if (registers_for(needs, elements, shared) > registers_of_thread(target)) continue;
    const SerialRowShape shape{threads, block_threads / threads, static_cast<int>(items), static_cast<int>(shared)};
    // More threads only where fewer of them would be idle.
    if (!best || items * threads < int64_t{best->items_per_thread} * best->threads_per_row) best = shape;
  }
  return best;
}

// A load of elements of a row that waits for nothing, of what the region does not store.
bool can_be_ahead(const FlatRegion& flat, loops::StmtId id) {
  const loops::Stmt& stmt = flat.region.body[id];
  const auto* load = stmt.as<loops::Load>();
  if (!load || load->mask.valid() || (stmt.vars & flat.row_set()).empty()) return false;
  if (loops::depends_on_data(offset_of(stmt))) return false;
  return std::none_of(flat.region.body.begin(), flat.region.body.end(), [&](const loops::Stmt& other) {
    const auto* store = other.as<loops::Store>();
    return store && store->buffer == load->buffer;
  });
}

// Loads that only later row loops need move to the first one and stay in registers, so that they are prefetched too.
void load_in_first_row_loop(const FlatRegion& flat, Schedule& schedule) {
  plan::Segment* first = nullptr;
  for (plan::Segment& segment : schedule.segments) {
    if (segment.kind != plan::Segment::Kind::RowLoop) continue;
    if (!first) {
      first = &segment;
      continue;
    }
    std::erase_if(segment.stmts, [&](loops::StmtId id) {
      const bool serial = flat.region.body[id].vars.contains(flat.serial);
      if (schedule.memory_spaces[id] != plan::MemorySpace::Local || !serial || !can_be_ahead(flat, id)) return false;
      schedule.memory_spaces[id] = plan::MemorySpace::Persistent;
      schedule.persistent_bytes += byte_size(flat.region.body[id].dtype);
      first->stmts.insert(std::lower_bound(first->stmts.begin(), first->stmts.end(), id), id);
      return true;
    });
  }
}

// Operands that all rows share are read once if registers are left for them. Otherwise each row loop of each row reads
// them from the nearest cache: with weights of 16384 elements in registers, the backward of a layer norm took 5 % less time
// on an H200.
void keep_shared_operands(const FlatRegion& flat, const SerialRowNeeds& needs, const SerialRowShape& shape, const Target& target, Schedule& schedule) {
  const int64_t elements = int64_t{shape.items_per_thread} * needs.vector_width;
  int64_t registers = registers_for(needs, elements, static_cast<size_t>(shape.shared_states));
  std::set<loops::StmtId> kept;
  for (plan::Segment& segment : schedule.segments) {
    if (segment.kind != plan::Segment::Kind::RowLoop) continue;
    std::erase_if(segment.stmts, [&](loops::StmtId id) { return kept.contains(id); });
    for (loops::StmtId id : segment.stmts) {
      const loops::Stmt& stmt = flat.region.body[id];
      if (schedule.memory_spaces[id] != plan::MemorySpace::Local || stmt.vars.contains(flat.serial) || !can_be_ahead(flat, id)) continue;
      const int64_t more = sym::ceil_quotient(elements * byte_size(stmt.dtype), 4);
      if (registers + more > registers_of_thread(target)) continue;
      registers += more;
      schedule.memory_spaces[id] = plan::MemorySpace::Persistent;
      kept.insert(id);
    }
  }
}

bool is_serial(const FlatRegion& flat, const Target&) { return flat.serial.valid(); }

MappedRegion map_serial_rows(const FlatRegion& flat, const Target& target) {
  plan::Mapping mapping = start_mapping(flat, flat.row, target);
  const sym::Expr groups = group_count(flat, flat.row, mapping.vector_width);
  CXXI_CHECK(groups.is_constant() && target.max_threads_per_block >= block_threads, "region {} has serial rows of {} groups in blocks of {} threads",
             flat.region.name, sym::to_string(groups), target.max_threads_per_block);
  SerialRowNeeds needs{groups.constant(), mapping.vector_width, 0, {}};
  std::vector<loops::StmtId> across;
  for (size_t s = 0; s < flat.region.body.size(); ++s) {
    if (!flat.is_across(loops::StmtId(s))) continue;
    across.push_back(loops::StmtId(s));
    needs.states.push_back(plan::state_dtype(flat.region, *flat.region.body[across.back()].as<loops::Reduce>()));
  }
  // Loads rather than values computed from them: only loads can be prefetched for the next row. Where registers are
  // too few for expensive values, computing those again is cheaper than a second kernel.
  Schedule schedule;
  std::optional<SerialRowShape> shape;
  for (const auto& [expensive, all_ahead] : {std::pair(true, true), {true, false}, {false, true}, {false, false}}) {
    if (shape) break;
    schedule = schedule_persistent(flat, {.loads = true, .expensive = expensive, .early = true});
    if (all_ahead) load_in_first_row_loop(flat, schedule);
    needs.persistent_bytes = schedule.persistent_bytes;
    shape = serial_row_shape(needs, target);
  }
  if (!shape)
    throw_unsupported("region {} has serial rows of {} groups that do not fit: {} bytes an element, {} sums", flat.region.name, needs.groups,
                      needs.persistent_bytes, needs.states.size());
  keep_shared_operands(flat, needs, *shape, target, schedule);
  for (int i = 0; i < shape->shared_states; ++i) schedule.memory_spaces[across[static_cast<size_t>(i)]] = plan::MemorySpace::Shared;
  mapping.shape = plan::SerialRows{flat.serial, shape->threads_per_row, shape->rows_per_block, shape->items_per_thread};
  return {std::move(mapping), std::move(schedule)};
}

}  // namespace

std::optional<SerialRowShape> serial_row_shape(const SerialRowNeeds& needs, const Target& target) {
  for (size_t shared = 0; shared <= needs.states.size(); ++shared)
    if (const auto shape = shape_with(needs, shared, target)) return shape;
  return std::nullopt;
}

const KernelFamily family::serial_rows{
    .name = plan::SerialRows::keyword, .simt = true, .accepts = is_serial, .map = map_serial_rows, .instantiate = instantiate_serial_rows};

}  // namespace cxxinductor::kernels

// Reductions across memory on GPUs.
#include "ir/plan/columns.h"

#include <algorithm>

#include "ir/plan/tile_layout.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "kernels/region/rows_lie.h"
#include "kernels/region/work.h"
#include "kernels/registry.h"
#include "sym/integer.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::VarId;
using plan::Mapping;
using sym::Expr;

constexpr int least_strip = 8;  // columns
// Threads that hold more words of a column from row to row take fewer columns: registers would leave room for few threads. EfficientNet's
// gradients of batch norms and SiLU (7 or 8 words) take 0.6 to 0.85 of the time by fours of bf16 on an H100 (benchmarks/graphs.py --kernels 45).
constexpr int most_words = 4, columns_of_many_words = 4;

int words_of_column(const FlatRegion& flat) {
  int words = 0;
  for (const Stmt& stmt : flat.region.body) {
    const bool in_row = std::ranges::any_of(flat.row, [&](VarId v) { return stmt.vars.contains(v); });
    if (const auto* reduce = stmt.as<loops::Reduce>())
      words += static_cast<int>(form(reduce->reduction).state.size());
    else if (stmt.as<loops::Load>() && !in_row && stmt.vars.contains(flat.space.back()))
      ++words;
  }
  return words;
}

MappedRegion map_columns(const FlatRegion& flat, const Target& target) {
  Mapping mapping = start_mapping(flat, flat.space, target);
  plan::Columns shape;
  Expr columns = flat.extent(flat.space.back());
  std::vector<VarId> outer(flat.space.begin(), flat.space.end() - 1);
  auto strip_width = [](int width) { return std::max(8, 32 / width) * width; };
  Expr strips = points(flat, flat.space);
  auto few = [&](int width) {
    return strips.is_constant() && points(flat, outer).constant() * sym::ceil_quotient(columns.constant(), width) < target.multiprocessors;
  };
  while (mapping.vector_width > 2 && few(strip_width(mapping.vector_width))) mapping.vector_width /= 2;
  if (words_of_column(flat) > most_words) mapping.vector_width = std::min(mapping.vector_width, columns_of_many_words);
  shape.columns_per_block = strip_width(mapping.vector_width);
  // The last strip of a row leaves threads idle: 64 columns a strip would leave a quarter of 144 channels' threads without work, 32 a tenth.
  if (columns.is_constant()) {
    const int64_t count = columns.constant();
    const auto covered = [&](int64_t strip) { return sym::ceil_quotient(count, strip) * strip; };
    const int least = std::max(least_strip, 2 * mapping.vector_width);
    for (int strip = shape.columns_per_block / 2; strip >= least && covered(shape.columns_per_block) * 8 > count * 9; strip /= 2)
      if (covered(strip) < covered(shape.columns_per_block)) shape.columns_per_block = strip;
  }
  // A thread adds up a few rows before threads join; short rows leave threads for wider strips, whatever they were narrowed for.
  int64_t length = estimate(points(flat, flat.row), flat.assumptions);
  int64_t threads = length >= 4096 ? 512 : 256;
  // Strips on a few multiprocessors alone: narrow ones, down to a sector of memory, with all threads that a block may have.
  if (few(shape.columns_per_block)) {
    while (shape.columns_per_block > least_strip && few(shape.columns_per_block)) shape.columns_per_block /= 2;
    threads = std::min<int64_t>(1024, target.max_threads_per_block);
  }
  auto groups = [&] { return shape.columns_per_block / mapping.vector_width; };
  shape.threads_per_row = static_cast<int>(std::clamp<int64_t>(power_of_two_up(length / 4), 1, threads / groups()));
  int64_t width = estimate(columns, flat.assumptions);
  while (groups() * shape.threads_per_row < 128 && shape.columns_per_block < width) shape.columns_per_block *= 2;
  mapping.shape = shape;
  while (shape.threads_per_row > 1 && plan::columns_shared_bytes(flat.region, mapping) > plan::static_shared_bytes) {
    shape.threads_per_row /= 2;
    mapping.shape = shape;
  }
  shape.in_flight = static_cast<int>(std::clamp<int64_t>(power_of_two_down(length / shape.threads_per_row), 1, 4));
  mapping.shape = shape;
  return {std::move(mapping), schedule_looped(flat)};
}

// ---- Instance ---------------------------------------------------------------------------------------------------

Values per_column_of(const plan::Kernel& kernel, const Body& body) {
  std::vector<Values> kept;
  for (const Place& place : body.slot.out) kept.push_back({{"type", kernel.region.body[place.value].dtype}, {"w", Local{'w', place.value}}});
  return {{"kept", std::move(kept)}, {"width", body.slot.width}, {"steps", Steps{.slot = body.slot, .steps = body.steps}}};
}

Values row_loop_of(const plan::Kernel& kernel, const Body& body) {
  const auto& shape = kernel.mapping.get<plan::Columns>();
  std::vector<Values> reductions, in_blocks;
  for (const plan::StmtId id : reductions_of(kernel, body.slot.stmts)) {
    const Stmt& stmt = kernel.region.body[id];
    const bool put_aside = std::ranges::binary_search(kernel.in_blocks, id), lanes = has_lanes(kernel, body.slot, id);
    Values reduction{{"state", StateType{id}},
                     {"lanes_of_state", has_lanes(kernel, body.slot, stmt.as<loops::Reduce>()->operand) ? body.slot.width : 1},
                     {"a", Local{'a', id}},
                     {"b", Local{'b', id}}};
    if (put_aside) in_blocks.push_back(reduction);
    reduction.merge(Values{{"r", Local{'r', id}},
                           {"v", Local{'v', id}},
                           {"w", Local{'w', id}},
                           {"type", stmt.dtype},
                           {"put_aside", when(put_aside)},
                           {"of_lanes", when(lanes)},
                           {"of_group", when(!lanes)}});
    reductions.push_back(std::move(reduction));
  }
  return {{"reductions", std::move(reductions)},
          {"puts_aside", puts_aside(kernel, !in_blocks.empty())},
          {"in_blocks", std::move(in_blocks)},
          {"points", count_groups(kernel, kernel.mapping.row, 1)},
          {"stride", shape.threads_per_row * shape.in_flight},
          {"unrolled", when(shape.in_flight > 1)},
          {"unroll", shape.in_flight},
          {"ahead", groups_ahead(kernel, body)},
          {"passes", passes_of(body)},
          {"coordinates", Coordinates{"cxxi_linear", kernel.mapping.row}}};
}

Instance instantiate_columns(const plan::Kernel& kernel, plan::Variant) {
  const Mapping& mapping = kernel.mapping;
  const auto& shape = mapping.get<plan::Columns>();
  const VarId across = vector_variable(mapping);
  const std::vector<VarId> outer(mapping.space.begin(), mapping.space.end() - 1);
  const int groups = shape.columns_per_block / mapping.vector_width;
  const int64_t shared = plan::columns_shared_bytes(kernel.region, mapping);
  std::vector<Values> segments;
  for (size_t s = 0; s < kernel.segments.size(); ++s) {
    const Body body = lower_segment(kernel, s);
    const bool is_row_loop = kernel.segments[s].kind == plan::Segment::Kind::RowLoop;
    segments.push_back({{"row_loop", is_row_loop ? std::vector{row_loop_of(kernel, body)} : std::vector<Values>()},
                        {"per_column", is_row_loop ? std::vector<Values>() : std::vector{per_column_of(kernel, body)}}});
  }
  std::vector<Values> outer_point;
  if (!outer.empty()) outer_point.push_back({{"coordinates", Coordinates{"cxxi_outer", outer}}});
  return {"columns_kernel",
          {{"threads", block_threads(mapping)},
           {"threads_per_row", shape.threads_per_row},
           {"several_threads", when(shape.threads_per_row > 1)},
           {"columns", shape.columns_per_block},
           {"groups", groups},
           {"several_groups", when(groups > 1)},
           {"width", mapping.vector_width},
           {"block", BlockNumber()},
           {"uniform_loads", loads_made_once(kernel)},
           {"outer", std::move(outer_point)},
           {"strips", count_groups(kernel, {across}, shape.columns_per_block)},
           {"dead_rows", when(has_dead_rows(kernel))},
           {"x", across},
           {"extent", kernel.region.vars[across].extent},
           {"lanes", lanes_of(segment_slot(kernel, 0))},
           {"shared", when(shared > 0)},
           {"chunks", (shared + 15) / 16},
           {"segments", std::move(segments)}}};
}

}  // namespace

const KernelFamily family::columns{
    .name = plan::Columns::keyword, .simt = true, .accepts = have_rows_across_memory, .map = map_columns, .instantiate = instantiate_columns};

}  // namespace cxxinductor::kernels

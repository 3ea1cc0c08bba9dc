#include "kernels/cpu/instances.h"

#include <algorithm>
#include <set>

#include "ir/plan/cpu_rows.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

using loops::VarId;
using sym::Expr;

Expr extent(const plan::Kernel& kernel, VarId v) { return kernel.region.vars[v].extent; }
int vector_width(const plan::Kernel& kernel) { return vector_variable(kernel.mapping).valid() ? kernel.mapping.vector_width : 1; }
Steps steps_of(const Body& body) { return {.slot = body.slot, .steps = body.steps}; }

// {x, extent} of each.
std::vector<Values> variables(const plan::Kernel& kernel, std::span<const VarId> vars) {
  std::vector<Values> found;
  for (VarId v : vars) found.push_back({{"x", v}, {"extent", extent(kernel, v)}});
  return found;
}

std::vector<VarId> without(std::vector<VarId> vars, std::initializer_list<VarId> left_out) {
  std::erase_if(vars, [&](VarId v) { return std::ranges::find(left_out, v) != left_out.end(); });
  return vars;
}

std::vector<Values> arrays(const plan::Kernel& kernel, const std::vector<StmtId>& ids) {
  std::vector<Values> found;
  for (StmtId id : ids) found.push_back({{"dtype", kernel.region.body[id].dtype}, {"w", Local{'w', id}}});
  return found;
}

// Declarations of states: {state, r, alone, put_aside}.
std::vector<Values> states(const plan::Kernel& kernel, const std::vector<StmtId>& reduces) {
  std::vector<Values> found;
  for (StmtId id : reduces) {
    const bool put_aside = std::ranges::binary_search(kernel.in_blocks, id);
    found.push_back({{"state", StateType{id}}, {"r", Local{'r', id}}, {"alone", when(!put_aside)}, {"put_aside", when(put_aside)}});
  }
  return found;
}

std::vector<Values> in_blocks(const plan::Kernel& kernel, const std::vector<StmtId>& reduces) {
  std::vector<Values> found;
  for (StmtId id : summed_in_blocks(kernel, reduces)) found.push_back({{"r", Local{'r', id}}});
  return found;
}

// ---- Rows -------------------------------------------------------------------------------------------------------

Values row_loop_of(const plan::Kernel& kernel, const Body& body) {
  const std::vector<VarId>& row = kernel.mapping.row;
  const int width = vector_width(kernel);
  const std::vector<StmtId> reduces = reductions_of(kernel, body.slot.stmts);
  const int sets = reduces.empty() ? 1 : plan::sets_of_states(kernel.mapping);
  const std::vector<VarId> outer(row.begin(), row.empty() ? row.end() : row.end() - 1);
  std::vector<Values> calls, declared = states(kernel, reduces), in_block = in_blocks(kernel, reduces), offset, in_pass;
  if (!row.empty()) in_pass.push_back({{"last", row.back()}});
  for (int set = 0; set < sets; ++set) {
    calls.push_back({{"set", set}, {"shifted", offset}});
    offset = {{{"offset", (set + 1) * width}}};
  }
  for (size_t i = 0; i < reduces.size(); ++i) declared[i].merge(Values{{"t", Local{'t', reduces[i]}}, {"v", Local{'v', reduces[i]}}});
  const bool blocks = !in_block.empty();
  return {{"states", std::move(declared)},
          {"in_blocks", std::move(in_block)},
          {"puts_aside", when(blocks)},
          {"puts_elements_aside", when(blocks && width == 1)},
          {"counts_updates", when(blocks && row.size() > 1)},
          {"updates", plan::updates_of_pass(kernel.mapping, kernel.region)},
          {"stop", blocks ? "cxxi_stop" : "cxxi_length"},
          {"step", width * sets},
          {"block", width * sets * plan::updates_of_block},
          {"count", sets > 1 ? sets + 1 : 1},
          {"sets", std::move(calls)},
          {"several_sets", when(sets > 1)},
          {"sets_of_states", sets},
          {"outer", variables(kernel, outer)},
          {"in_pass", std::move(in_pass)},
          {"length_of_pass", row.empty() ? Expr(1) : extent(kernel, row.back())},
          {"steps", steps_of(body)}};
}

// ---- Columns ----------------------------------------------------------------------------------------------------

// declared: arrays that earlier segments have.
Values strip_segment(const plan::Kernel& kernel, const Body& body, bool is_row_loop, std::set<StmtId>& declared) {
  const std::vector<StmtId> reduces = reductions_of(kernel, body.slot.stmts);
  std::vector<StmtId> kept;
  for (const Place& place : body.slot.out)
    if (declared.insert(place.value).second) kept.push_back(place.value);
  std::vector<Values> in_block = in_blocks(kernel, reduces);
  return {{"states", states(kernel, reduces)},
          {"arrays", arrays(kernel, kept)},
          {"puts_aside", when(!in_block.empty())},
          {"in_blocks", std::move(in_block)},
          {"last", body.slot.vector_var},
          {"row", variables(kernel, is_row_loop ? std::span(kernel.mapping.row) : std::span<const VarId>())},
          {"steps", steps_of(body)}};
}

}  // namespace

Instance instantiate_cpu_pointwise(const plan::Kernel& kernel, plan::Variant) {
  const std::vector<VarId>& space = kernel.mapping.space;
  const Body body = lower_segment(kernel, 0);
  if (space.empty()) return {"point_kernel", {{"steps", steps_of(body)}}};
  std::vector<Values> cuts, further, inner, outermost;
  for (Expr cut : body.slot.uniform.cuts) cuts.push_back({{"cut", cut}});
  for (size_t d = 1; d < space.size(); ++d) further.push_back({{"extent", extent(kernel, space[d])}});
  if (space.size() > 1) {
    inner = variables(kernel, std::span(space).subspan(1, space.size() - 2));
    std::ranges::reverse(inner);
    outermost.push_back({{"x", space[0]}});
  }
  return {"pointwise_kernel",
          {{"extent", extent(kernel, space[0])},
           {"further", std::move(further)},
           {"chunk", kernel.mapping.get<plan::CpuPointwise>().chunk},
           {"coordinates", Coordinates{"cxxi_point", space}},
           {"last", space.back()},
           {"columns", extent(kernel, space.back())},
           {"is_cut", when(!cuts.empty())},
           {"cuts", std::move(cuts)},
           {"vectors", when(vector_width(kernel) > 1)},
           {"width", vector_width(kernel)},
           {"inner", std::move(inner)},
           {"outermost", std::move(outermost)},
           {"steps", steps_of(body)}}};
}

Instance instantiate_cpu_rows(const plan::Kernel& kernel, plan::Variant) {
  Expr length = 1;
  for (VarId v : kernel.mapping.row) length = length * extent(kernel, v);
  std::vector<StmtId> persistent;
  for (size_t s = 0; s < kernel.region.body.size(); ++s)
    if (kernel.memory_spaces[StmtId(s)] == plan::MemorySpace::Persistent) persistent.emplace_back(s);
  std::vector<Values> segments;
  for (size_t s = 0; s < kernel.segments.size(); ++s) {
    const Body body = lower_segment(kernel, s);
    std::vector<Values> per_row, row_loop;
    if (kernel.segments[s].kind == plan::Segment::Kind::RowLoop)
      row_loop.push_back(row_loop_of(kernel, body));
    else
      per_row.push_back({{"steps", Steps{.slot = body.slot, .steps = body.steps, .in_lambda = false}}});
    segments.push_back({{"per_row", std::move(per_row)}, {"row_loop", std::move(row_loop)}});
  }
  return {"rows_kernel",
          {{"length", persistent.empty() ? 1 : std::max<int64_t>(length.constant(), 1)},
           {"persistent_values", arrays(kernel, persistent)},
           {"coordinates", Coordinates{"cxxi_unit", kernel.mapping.space}},
           {"vectors", when(vector_width(kernel) > 1)},
           {"width", vector_width(kernel)},
           {"last_of_block", plan::updates_of_block - 1},
           {"updates_of_block", plan::updates_of_block},
           {"segments", std::move(segments)}}};
}

Instance instantiate_cpu_columns(const plan::Kernel& kernel, plan::Variant) {
  const int columns = kernel.mapping.get<plan::CpuColumns>().columns_per_unit;
  const std::vector<VarId>& space = kernel.mapping.space;
  std::vector<Values> segments;
  std::set<StmtId> declared;
  for (size_t s = 0; s < kernel.segments.size(); ++s)
    segments.push_back(strip_segment(kernel, lower_segment(kernel, s), kernel.segments[s].kind == plan::Segment::Kind::RowLoop, declared));
  return {"columns_kernel",
          {{"columns", extent(kernel, vector_variable(kernel.mapping))},
           {"columns_per_unit", columns},
           {"columns_less_one", columns - 1},
           {"coordinates", Coordinates{"cxxi_unit / cxxi_strips", {space.begin(), space.end() - 1}}},
           {"vectors", when(vector_width(kernel) > 1)},
           {"width", vector_width(kernel)},
           {"last_of_block", plan::updates_of_block - 1},
           {"segments", std::move(segments)}}};
}

Instance instantiate_cpu_tiles(const plan::Kernel& kernel, plan::Variant) {
  const auto& shape = kernel.mapping.get<plan::CpuTiles>();
  const VarId across = kernel.mapping.space.back(), along = shape.tile_var;
  const Body body = lower_segment(kernel, 0);
  std::vector<Values> staged;
  for (StmtId id : body.slot.stmts) {
    if (kernel.access[id] != plan::AccessKind::Staged) continue;
    Expr step, rest;
    const bool linear = sym::split_linear(kernel.offsets[id], kernel.region.symbol(across), &step, &rest);
    CXXI_CHECK(linear, "{}: %{} is staged, but not linear across the tile", kernel.name, id.index());
    staged.push_back({{"dtype", kernel.region.body[id].dtype},
                      {"w", Local{'w', id}},
                      {"p", Parameter{kernel.region.body[id].as<loops::Load>()->buffer}},
                      {"offset", kernel.offsets[id]},
                      {"step", step}});
  }
  return {"tiles_kernel",
          {{"staged", std::move(staged)},
           {"tile", shape.tile},
           {"tile_less_one", shape.tile - 1},
           {"elements", shape.tile * shape.tile},
           {"across", across},
           {"along", along},
           {"extent_across", extent(kernel, across)},
           {"extent_along", extent(kernel, along)},
           {"coordinates", Coordinates{"cxxi_strip / cxxi_tiles_across", without(kernel.mapping.space, {across, along})}},
           {"vectors", when(vector_width(kernel) > 1)},
           {"width", vector_width(kernel)},
           {"steps", steps_of(body)}}};
}

}  // namespace cxxinductor::kernels

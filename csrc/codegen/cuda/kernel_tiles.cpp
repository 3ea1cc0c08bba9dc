// Tiles: loads that are contiguous along another variable than the stores pass through shared memory. Both ways a thread moves
// groups of width_ elements: it reads width_ of them side by side, transposes the square in registers, and puts down groups
// along the other variable. ir/plan/tile_layout.h says where. A tile without edges needs no tests of its bounds, so that its
// accesses differ in constants alone and all of a thread's loads are under way at once.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "ir/plan/early_loads.h"
#include "support/error.h"

namespace cxxinductor::codegen {
std::string CudaKernelEmitter::tile_group(StmtId id) const {
  return fmt::format("cxxi_group<{}, {}>", cuda_type(stmt(id).dtype), width_);
}

plan::TileLayout CudaKernelEmitter::tile_layout(StmtId id) const {
  return {tile_size(kernel_.mapping), width_, byte_size(stmt(id).dtype)};
}

std::vector<plan::StmtId> CudaKernelEmitter::declare_tiles(const plan::Segment& segment) {
  std::vector<StmtId> staged;
  for (StmtId id : segment.stmts) {
    if (kernel_.access[id] != plan::AccessKind::Staged) continue;
    staged.push_back(id);
    staged_.insert(id.index());
    const plan::TileLayout layout = tile_layout(id);
    out_.line("__shared__ {} t{}[{}][{}];", tile_group(id), id.index(), layout.tile, layout.pitch());
  }
  return staged;
}

void CudaKernelEmitter::emit_tile_origin() {
  const plan::Mapping& mapping = kernel_.mapping;
  const int tile = tile_size(mapping), groups = tile / width_;
  const VarId across = mapping.space.back(), along = tile_variable(mapping);
  const auto tiles = [&](VarId v) {
    return expression(sym::simplify(sym::ceil_div(kernel_.region.vars[v].extent, tile), kernel_.assumptions), false);
  };
  out_.line("const int cxxi_x = threadIdx.x % {0}, cxxi_y = threadIdx.x / {0};", groups);
  out_.line("const cxxi_uint cxxi_strip = {} / cxxi_uint({});", block_, tiles(across));
  out_.line("const cxxi_index cxxi_across = cxxi_index({} % cxxi_uint({})) * {};", block_, tiles(across), tile);
  out_.line("const cxxi_index cxxi_along = cxxi_index(cxxi_strip % cxxi_uint({})) * {};", tiles(along), tile);
  std::vector<VarId> outer;
  for (VarId v : mapping.space)
    if (v != across && v != along) outer.push_back(v);
  if (outer.empty()) return;
  out_.line("const cxxi_uint cxxi_outer = cxxi_strip / cxxi_uint({});", tiles(along));
  decode("cxxi_outer", outer, 1);
}

// Squares of width_ x width_ elements, all of a thread's before it puts one down.
void CudaKernelEmitter::emit_tile_loads(const std::vector<StmtId>& staged, bool edges) {
  const plan::Mapping& mapping = kernel_.mapping;
  const int groups = tile_size(mapping) / width_, abreast = block_threads(mapping) / groups, squares = groups / abreast;
  const VarId across = mapping.space.back(), along = tile_variable(mapping);
  for (StmtId id : staged) out_.line("{} m{}[{}][{}] = {{}};", tile_group(id), id.index(), squares, width_);
  out_.line("#pragma unroll");
  open(fmt::format("for (int u = 0; u < {}; ++u) {{", squares));
  out_.line("const cxxi_index {} = cxxi_along + cxxi_x * {}, cxxi_first = cxxi_across + (cxxi_y + u * {}) * {};",
            variable(along), width_, abreast, width_);
  if (edges) open(fmt::format("if ({} < {} && cxxi_first < {}) {{", variable(along), extent(along), extent(across)));
  out_.line("#pragma unroll");
  open(fmt::format("for (int r = 0; r < {}; ++r) {{", width_));
  out_.line("const cxxi_index {} = cxxi_first + r;", variable(across));
  for (StmtId id : staged)
    out_.line("m{}[u][r] = cxxi_load_group<{}, {}>({});", id.index(), width_, variant_.vectorized, address(id, false));
  for (int depth = edges ? 3 : 2; depth > 0; --depth) close();
}

void CudaKernelEmitter::emit_tile_stores(const std::vector<StmtId>& staged) {
  const int groups = tile_size(kernel_.mapping) / width_, abreast = block_threads(kernel_.mapping) / groups;
  out_.line("#pragma unroll");
  open(fmt::format("for (int u = 0; u < {}; ++u) {{", groups / abreast));
  for (StmtId id : staged) out_.line("cxxi_transpose(m{}[u]);", id.index());
  out_.line("#pragma unroll");
  open(fmt::format("for (int r = 0; r < {}; ++r) {{", width_));
  for (StmtId id : staged)
    out_.line("t{0}[r * {1} + cxxi_x][cxxi_y + u * {2}] = m{0}[u][r];", id.index(), groups, abreast);
  close();
  close();
}

// Opens the loop over a thread's groups of the tile, which lie along the last variable of space.
void CudaKernelEmitter::open_tile_groups(bool edges) {
  const plan::Mapping& mapping = kernel_.mapping;
  const VarId across = mapping.space.back(), along = tile_variable(mapping);
  out_.line("#pragma unroll");
  open(fmt::format("for (int u = 0; u < {}; ++u) {{", tile_turns()));
  out_.line("const int cxxi_row = cxxi_y + u * {};", tile_size(mapping) / tile_turns());
  out_.line("const cxxi_index {} = cxxi_across + cxxi_x * {}, {} = cxxi_along + cxxi_row;", variable(across), width_,
            variable(along));
  open(!edges ? std::string("{")
              : fmt::format("if ({} < {} && {} < {}) {{", variable(across), extent(across), variable(along), extent(along)));
}

void CudaKernelEmitter::emit_tile(const std::vector<StmtId>& staged, const std::vector<StmtId>& early, bool edges) {
  Body body;
  body.lanes = width_ > 1;
  for (VarId v : kernel_.mapping.space) body.running |= loops::VarSet::of(v);
  emit_tile_loads(staged, edges);
  if (!early.empty()) {
    body.slot = "[u]";
    for (StmtId id : early) out_.line("{} g{}[{}] = {{}};", storage(id), id.index(), tile_turns());
    open_tile_groups(edges);
    emit_early_loads(early, body);
    close();
    close();
  }
  emit_tile_stores(staged);
  out_.line("__syncthreads();");
  open_tile_groups(edges);
  emit_body(kernel_.segments.at(0).stmts, body);
  close();
  close();
}

void CudaKernelEmitter::emit_tiles() {
  const plan::Mapping& mapping = kernel_.mapping;
  const plan::Segment& segment = kernel_.segments.at(0);
  const int tile = tile_size(mapping);
  const VarId across = mapping.space.back(), along = tile_variable(mapping);
  const std::vector<StmtId> staged = declare_tiles(segment);
  // Other loads are under way beside the tile, where the plan has registers for them.
  const std::vector<StmtId> early = segment.loads_ahead > 0 ? plan::early_loads(kernel_, segment.stmts) : std::vector<StmtId>{};
  for (StmtId id : early) early_.insert(id.index());
  emit_tile_origin();
  const auto has_edges = [&](VarId v) { return !proven_multiple(kernel_.region.vars[v].extent, tile); };
  if (!has_edges(across) && !has_edges(along)) return emit_tile(staged, early, false);
  open(fmt::format("if ({} - cxxi_across >= {} && {} - cxxi_along >= {}) {{", extent(across), tile, extent(along),
                   tile));
  emit_tile(staged, early, false);
  close("} else {");
  out_.indent();
  emit_tile(staged, early, true);
  close();
}

// An element of the tile, in the loop of open_tile_groups.
std::string CudaKernelEmitter::staged_element(StmtId id) const {
  const std::string row = width_ == 1 ? "cxxi_row"
                                      : fmt::format("cxxi_row % {0} * {1} + cxxi_row / {0}", width_,
                                                    tile_layout(id).groups());
  return fmt::format("t{}[{}][cxxi_x].get({})", id.index(), row, width_ > 1 ? "e" : "0");
}

}  // namespace cxxinductor::codegen

// Tiles: loads that are contiguous along another variable than the stores pass through shared memory. Both ways a thread moves
// groups of `width` elements: it reads `width` of them side by side, transposes the square in registers, and puts down groups
// along the other variable. ir/plan/tile_layout.h says where. A tile without edges needs no tests of its bounds, so that its
// accesses differ in constants alone and all of a thread's loads are under way at once.
#include "codegen/cuda/body_printer.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/threads.h"
#include "ir/plan/tile_layout.h"
#include "kernels/body/lower_body.h"

namespace cxxinductor::codegen {
namespace {

class TilesWriter {
 public:
  TilesWriter(CudaText& text, const plan::Tiles& shape)
      : text_(text),
        tile_(shape.tile),
        turns_(groups_of_thread(text.kernel.mapping)),
        groups_(shape.tile / text.width()),
        abreast_(shape.block_threads / groups_),
        across_(text.kernel.mapping.space.back()),
        along_(shape.tile_var),
        body_(kernels::lower_segment(text.kernel, 0)) {
    for (StmtId id : body_.slot.stmts)
      if (text.kernel.access[id] == plan::AccessKind::Staged) staged_.push_back(id);
  }

  void write() {
    for (StmtId id : staged_) {
      const plan::TileLayout layout{tile_, text_.width(), byte_size(text_.stmt(id).dtype)};
      text_.out.line("__shared__ {} t{}[{}][{}];", group_type(id), id.index(), layout.tile, layout.pitch());
    }
    find_tile();
    const auto has_edges = [&](VarId v) { return !text_.proven_multiple(text_.kernel.region.vars[v].extent, tile_); };
    if (!has_edges(across_) && !has_edges(along_)) return write_tile(false);
    text_.open(fmt::format("if ({} - cxxi_across >= {} && {} - cxxi_along >= {}) {{", text_.extent(across_), tile_, text_.extent(along_), tile_));
    write_tile(false);
    text_.close("} else {");
    text_.out.indent();
    write_tile(true);
    text_.close();
  }

 private:
  void find_tile();
  void write_tile(bool edges);
  void load_squares(bool edges);
  void store_squares();
  void open_groups(bool edges);
  std::string group_type(StmtId id) const { return fmt::format("cxxi_group<{}, {}>", cuda_type(text_.stmt(id).dtype), text_.width()); }

  CudaText& text_;
  const int tile_, turns_, groups_, abreast_;
  const VarId across_, along_;
  const kernels::Body body_;
  std::vector<StmtId> staged_;
};

void TilesWriter::find_tile() {
  const auto tiles = [&](VarId v) { return text_.count_text({v}, tile_); };
  text_.out.line("const int cxxi_x = threadIdx.x % {0}, cxxi_y = threadIdx.x / {0};", groups_);
  text_.out.line("const cxxi_uint cxxi_strip = {} / {};", text_.block(), tiles(across_));
  text_.out.line("const cxxi_index cxxi_across = cxxi_index({} % {}) * {};", text_.block(), tiles(across_), tile_);
  text_.out.line("const cxxi_index cxxi_along = cxxi_index(cxxi_strip % {}) * {};", tiles(along_), tile_);
  std::vector<VarId> outer;
  for (VarId v : text_.kernel.mapping.space)
    if (v != across_ && v != along_) outer.push_back(v);
  if (outer.empty()) return;
  text_.out.line("const cxxi_uint cxxi_outer = cxxi_strip / {};", tiles(along_));
  text_.decode("cxxi_outer", outer, 1);
}

// Squares of width x width elements, all of a thread's before it puts one down.
void TilesWriter::load_squares(bool edges) {
  const int squares = groups_ / abreast_, width = text_.width();
  for (StmtId id : staged_) text_.out.line("{} m{}[{}][{}] = {{}};", group_type(id), id.index(), squares, width);
  text_.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", squares));
  text_.out.line("const cxxi_index {} = cxxi_along + cxxi_x * {}, cxxi_first = cxxi_across + (cxxi_y + u * {}) * {};", text_.variable(along_), width,
                 abreast_, width);
  if (edges) text_.open(fmt::format("if ({} < {} && cxxi_first < {}) {{", text_.variable(along_), text_.extent(along_), text_.extent(across_)));
  text_.open_unrolled(fmt::format("for (int r = 0; r < {}; ++r) {{", width));
  text_.out.line("const cxxi_index {} = cxxi_first + r;", text_.variable(across_));
  for (StmtId id : staged_)
    text_.out.line("m{}[u][r] = cxxi_load_group<{}, {}>({});", id.index(), width, text_.variant.vectorized, text_.address(id));
  for (int opened = edges ? 3 : 2; opened > 0; --opened) text_.close();
}

void TilesWriter::store_squares() {
  text_.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", groups_ / abreast_));
  for (StmtId id : staged_) text_.out.line("cxxi_transpose(m{}[u]);", id.index());
  text_.open_unrolled(fmt::format("for (int r = 0; r < {}; ++r) {{", text_.width()));
  for (StmtId id : staged_) text_.out.line("t{0}[r * {1} + cxxi_x][cxxi_y + u * {2}] = m{0}[u][r];", id.index(), groups_, abreast_);
  text_.close();
  text_.close();
}

// The loop over a thread's groups of the tile, which lie along the last variable of space.
void TilesWriter::open_groups(bool edges) {
  text_.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", turns_));
  text_.out.line("const int cxxi_row = cxxi_y + u * {};", tile_ / turns_);
  text_.out.line("const cxxi_index {} = cxxi_across + cxxi_x * {}, {} = cxxi_along + cxxi_row;", text_.variable(across_), text_.width(),
                 text_.variable(along_));
  text_.open(!edges ? std::string("{")
                    : fmt::format("if ({} < {} && {} < {}) {{", text_.variable(across_), text_.extent(across_), text_.variable(along_), text_.extent(along_)));
}

// Other loads are under way beside the tile, where the plan has registers for them.
void TilesWriter::write_tile(bool edges) {
  load_squares(edges);
  print_fragments(text_, body_, {.item = "", .group = "[u]", .position = ""}, turns_, [&](bool loading, auto inside) {
    if (!loading) {
      store_squares();
      text_.out.line("__syncthreads();");
    }
    open_groups(edges);
    inside();
    text_.close();
    text_.close();
  });
}

}  // namespace

void write_threads(CudaText& text, const plan::Tiles& shape) { TilesWriter(text, shape).write(); }

}  // namespace cxxinductor::codegen

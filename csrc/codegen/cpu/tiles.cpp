// Tiles: loads across memory are transposed into an array on the stack, which the body then reads along its rows.
#include "codegen/cpu/spelling.h"
#include "codegen/cpu/units.h"
#include "kernels/body/lower_body.h"
#include "support/error.h"

namespace cxxinductor::codegen {
namespace {

// Fills the arrays of a tile's Staged loads.
void stage_loads(CpuText& text, const std::vector<StmtId>& staged, const plan::CpuTiles& shape) {
  const plan::Kernel& kernel = text.kernel;
  const VarId across = kernel.mapping.space.back();
  text.open("{");
  text.out.line("const index {} = cxxi_across, {} = cxxi_along;", text.variable(across), text.variable(shape.tile_var));
  for (StmtId id : staged) {
    sym::Expr step, rest;
    const bool linear = sym::split_linear(kernel.offsets[id], kernel.region.symbol(across), &step, &rest);
    CXXI_CHECK(linear, "{}: %{} is staged, but not linear across the tile", kernel.name, id.index());
    text.out.line("cxxi::stage<{}, {}>(w{}, p{} + {}, {}, cxxi_along_end - cxxi_along, cxxi_across_end - cxxi_across);",
                  cpu_dtype_tag(text.stmt(id).dtype), shape.tile, id.index(), text.stmt(id).as<loops::Load>()->buffer.index(),
                  text.expression(kernel.offsets[id]), text.expression(step));
  }
  text.close();
}

}  // namespace

void write_units(CpuText& text, const plan::CpuTiles& shape) {
  const plan::Kernel& kernel = text.kernel;
  const kernels::Body body = kernels::lower_segment(kernel, 0);
  const VarId across = kernel.mapping.space.back(), along = shape.tile_var;
  const int tile = shape.tile;
  std::vector<StmtId> staged;
  for (StmtId id : body.slot.stmts)
    if (kernel.access[id] == plan::AccessKind::Staged) staged.push_back(id);
  std::vector<VarId> outer;
  for (VarId v : kernel.mapping.space)
    if (v != across && v != along) outer.push_back(v);
  for (StmtId id : staged) text.declare_array(id, int64_t{tile} * tile);
  text.out.line("const index cxxi_tiles_across = ({} + {}) / {};", text.extent(across), tile - 1, tile);
  text.out.line("const index cxxi_tiles_along = ({} + {}) / {};", text.extent(along), tile - 1, tile);
  text.open("for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {");
  text.out.line("const index cxxi_strip = cxxi_unit / cxxi_tiles_along;");
  text.decode("cxxi_strip / cxxi_tiles_across", outer);
  const auto side = [&](std::string_view name, VarId v, std::string_view number) {
    text.out.line("const index cxxi_{} = {} * {};", name, number, tile);
    text.out.line("const index cxxi_{0}_end = cxxi_{0} + {1} < {2} ? cxxi_{0} + {1} : {2};", name, tile, text.extent(v));
  };
  side("across", across, "cxxi_strip % cxxi_tiles_across");
  side("along", along, "cxxi_unit % cxxi_tiles_along");
  stage_loads(text, staged, shape);
  text.declare_body(fmt::format(", index {}, index {}, index cxxi_element", text.variable(along), text.variable(across)), body);
  text.open("for (index cxxi_t = cxxi_along; cxxi_t < cxxi_along_end; ++cxxi_t) {");
  text.out.line("const index cxxi_first = (cxxi_t - cxxi_along) * {} - cxxi_across;", tile);
  text.out.line("index cxxi_at = cxxi_across;");
  text.write_vector_loop("cxxi_across_end", "cxxi_t, cxxi_at, cxxi_first + cxxi_at");
  text.close();
  text.close();
}

}  // namespace cxxinductor::codegen

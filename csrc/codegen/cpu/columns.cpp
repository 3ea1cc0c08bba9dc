// Columns: a thread takes a strip of neighbouring columns; their states and what is computed once per column are arrays over the strip.
#include <set>

#include "codegen/cpu/units.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"

namespace cxxinductor::codegen {
namespace {

// What lives from segment to segment.
void declare_strip(CpuText& text, const std::vector<kernels::Body>& bodies, int columns) {
  std::set<StmtId> declared;
  for (const kernels::Body& body : bodies) {
    text.declare_states(kernels::reductions_of(text.kernel, body.slot.stmts), "column_tile_state", columns);
    for (const kernels::Place& place : body.slot.out)
      if (declared.insert(place.value).second) text.declare_array(place.value, columns);
  }
}

void write_segment(CpuText& text, const kernels::Body& body, const std::vector<VarId>& row) {
  const std::string last = text.variable(body.slot.vector_var);
  text.open("{");
  // x_<row variables> are declared by the loops below, so the body takes them as parameters.
  std::string parameters = fmt::format(", index {}, index cxxi_group, index cxxi_element", last);
  std::string arguments = "cxxi_at, cxxi_group, cxxi_point";
  for (VarId v : row) {
    parameters += ", index " + text.variable(v);
    arguments += ", " + text.variable(v);
  }
  text.declare_body(parameters, body);
  text.out.line("index cxxi_point = 0;");
  for (VarId v : row) text.open(fmt::format("for (index {0} = 0; {0} < {1}; ++{0}) {{", text.variable(v), text.extent(v)));
  text.out.line("index cxxi_at = cxxi_strip;");
  if (text.width() > 1) {
    text.open(fmt::format("for (index cxxi_group = 0; cxxi_at + {0} <= cxxi_strip_end; cxxi_at += {0}, ++cxxi_group) {{", text.width()));
    text.call_body(fmt::format("cxxi::number<{}>{{}}, {}", text.width(), arguments));
    text.close();
  }
  text.open("for (index cxxi_group = 0; cxxi_at < cxxi_strip_end; ++cxxi_at, ++cxxi_group) {");
  text.call_body("cxxi::number<1>{}, " + arguments);
  if (text.width() > 1) text.out.line("CXXI_KEEP_SCALAR;");
  text.close();
  const std::vector<StmtId> in_blocks = kernels::summed_in_blocks(text.kernel, kernels::reductions_of(text.kernel, body.slot.stmts));
  text.put_blocks_aside(in_blocks, fmt::format("(cxxi_point & {0}) == {0}", plan::updates_of_block - 1));
  text.out.line("++cxxi_point;");
  for (size_t d = 0; d < row.size(); ++d) text.close();
  for (StmtId id : in_blocks) text.out.line("r{}.take_all(cxxi_strip_end - cxxi_strip);", id.index());
  text.close();
}

}  // namespace

void write_units(CpuText& text, const plan::CpuColumns& shape) {
  const plan::Kernel& kernel = text.kernel;
  const int columns = shape.columns_per_unit;
  text.out.line("const index cxxi_columns = {};", text.extent(vector_variable(kernel.mapping)));
  text.out.line("const index cxxi_strips = (cxxi_columns + {}) / {};", columns - 1, columns);
  text.open("for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {");
  text.out.line("const index cxxi_strip = cxxi_unit % cxxi_strips * {};", columns);
  text.out.line("const index cxxi_strip_end = cxxi_strip + {0} < cxxi_columns ? cxxi_strip + {0} : cxxi_columns;", columns);
  text.decode("cxxi_unit / cxxi_strips", std::span(kernel.mapping.space).first(kernel.mapping.space.size() - 1));
  std::vector<kernels::Body> bodies;
  for (size_t s = 0; s < kernel.segments.size(); ++s) bodies.push_back(kernels::lower_segment(kernel, s));
  declare_strip(text, bodies, columns);
  for (size_t s = 0; s < bodies.size(); ++s)
    write_segment(text, bodies[s], kernel.segments[s].kind == plan::Segment::Kind::RowLoop ? kernel.mapping.row : std::vector<VarId>{});
  text.close();
}

}  // namespace cxxinductor::codegen

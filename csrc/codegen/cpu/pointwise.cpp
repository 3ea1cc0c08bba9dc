// Pointwise: one range of points, in runs along the innermost variable.
#include "codegen/cpu/units.h"
#include "kernels/body/lower_body.h"

namespace cxxinductor::codegen {
namespace {

std::string product_text(const std::vector<std::string>& factors) {
  std::string text;
  for (const std::string& factor : factors) text += (text.empty() ? "" : " * ") + factor;
  return text;
}

// From cxxi_at to the end of the chunk or of the innermost variable's range, or to the next cut.
void write_run(CpuText& text, const std::vector<sym::Expr>& cuts) {
  text.out.line("index cxxi_run = cxxi_stop - cxxi_point < cxxi_left ? cxxi_stop - cxxi_point : cxxi_left;");
  for (sym::Expr cut : cuts) text.out.line("cxxi_run = cxxi::up_to(cxxi_run, {} - cxxi_at);", text.expression(cut));
  text.out.line("const index cxxi_run_end = cxxi_at + cxxi_run;");
  text.write_vector_loop("cxxi_run_end", "cxxi_at");
  text.out.line("cxxi_point += cxxi_run;");
}

// The next point of the outer variables.
void advance(CpuText& text, const std::vector<VarId>& space) {
  for (size_t d = space.size() - 1; d-- > 0;) {
    const std::string name = text.variable(space[d]);
    if (d == 0) {
      text.out.line("++{};", name);
    } else {
      text.open(fmt::format("if (++{} == {}) {{", name, text.extent(space[d])));
      text.out.line("{} = 0;", name);
    }
  }
  for (size_t d = space.size() - 1; d-- > 1;) text.close();
}

}  // namespace

void write_units(CpuText& text, const plan::CpuPointwise& shape) {
  const std::vector<VarId>& space = text.kernel.mapping.space;
  const kernels::Body body = kernels::lower_segment(text.kernel, 0);
  if (space.empty()) {
    text.declare_body("", body);
    return text.call_body("cxxi::number<1>{}");
  }
  const std::string last = text.variable(space.back()), columns = text.extent(space.back());
  std::vector<std::string> extents;
  for (VarId v : space) extents.push_back(text.extent(v));
  text.out.line("const index cxxi_points = {};", product_text(extents));
  text.out.line("index cxxi_point = cxxi_begin * {};", shape.chunk);
  text.out.line("const index cxxi_stop = cxxi_end * {0} < cxxi_points ? cxxi_end * {0} : cxxi_points;", shape.chunk);
  text.out.line("if (cxxi_point >= cxxi_stop) return;");
  text.decode("cxxi_point", space);
  text.declare_body(", index " + last, body);
  text.out.line("index cxxi_at = {};", last);
  text.open("while (true) {");
  text.out.line("const index cxxi_left = {} - cxxi_at;", columns);
  write_run(text, body.slot.uniform.cuts);
  text.out.line("if (cxxi_point >= cxxi_stop) break;");
  if (!body.slot.uniform.cuts.empty()) text.out.line("if (cxxi_at < {}) continue;", columns);
  text.out.line("cxxi_at = 0;");
  advance(text, space);
  text.close();
}

}  // namespace cxxinductor::codegen

// Matrix products on tensor cores: values for the variables of cuda/matmul_kernel.cuh and cuda/warpgroup_kernel.cuh.
#include <fmt/ranges.h>

#include "codegen/cuda/body_printer.h"
#include "codegen/cuda/signature.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/threads.h"
#include "codegen/templates.h"
#include "ir/plan/matmul.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "support/error.h"

namespace cxxinductor::codegen {
namespace {

std::string tile_type(const plan::Matmul& matmul) {
  const std::string sizes = fmt::format("{}, {}, {}", matmul.tile_m, matmul.tile_n, matmul.tile_k);
  const std::string rest = fmt::format("{}, {}, {}", matmul.stages, matmul.left_along_k, matmul.right_along_k);
  if (matmul.warpgroups) return fmt::format("cxxi_warpgroup_matmul<Factor, {}, {}, {}>", sizes, matmul.warps_m / 4, rest);
  return fmt::format("cxxi_matmul<Factor, {}, {}, {}, {}>", sizes, matmul.warps_m, matmul.warps_n, rest);
}

// The text that `write` makes on its own.
template <class Write>
std::string text_of(const CudaText& text, Write write) {
  TextWriter out;
  CudaText part(text.kernel, text.variant, text.origins, out);
  write(part);
  return std::move(out).take();
}

// The statements that a factor needs, for a group of it, and `return` of that group.
void write_computed_group(CudaText& text, StmtId value, VarId along) {
  print_steps(text, kernels::lower_body(text.kernel, kernels::factor_slot(text.kernel, value, along)), {});
  text.out.line("cxxi_group<Factor, {}> cxxi_made = {{}};", kernels::factor_width);
  text.out.line("#pragma unroll");
  text.out.line("for (int e = 0; e < {}; ++e) cxxi_made.set(e, l{}[e]);", kernels::factor_width, value.index());
  text.out.line("return cxxi_made;");
}

std::string stored_factor(const CudaText& text, StmtId value, VarId outer, VarId inner, const std::string& extents) {
  const plan::Kernel& kernel = text.kernel;
  sym::Expr stride, rest;
  const bool linear = sym::split_linear(kernel.offsets[value], kernel.region.symbol(outer), &stride, &rest);
  CXXI_CHECK(linear, "the offset of %{} in {} is not linear", value.index(), kernel.name);
  const sym::Expr start = sym::substitute(rest, {{kernel.region.vars[inner].name, sym::Expr(0)}});
  return fmt::format("cxxi_stored_factor<Factor, cxxi_index, {}>{{p{} + {}, {}, {}}}", text.variant.vectorized,
                     text.stmt(value).as<loops::Load>()->buffer.index(), text.expression(start), text.expression(stride), extents);
}

std::string factor(const CudaText& text, StmtId value, VarId across, bool along_k) {
  const VarId k = plan::matmul_parts(text.kernel).k;
  const VarId outer = along_k ? across : k, inner = along_k ? k : across;
  const std::string extents = fmt::format("{}, {}", text.extent(outer), text.extent(inner));
  if (text.kernel.access[value] == plan::AccessKind::Staged) return stored_factor(text, value, outer, inner, extents);
  TextWriter out;
  out.line("cxxi_compute_factor<Factor, cxxi_index>([&](const cxxi_index {}, const cxxi_index {}, const int cxxi_lanes) {{", text.variable(outer),
           text.variable(inner));
  out.raw_line(text_of(text, [&](CudaText& part) {
    part.out.indent();
    write_computed_group(part, value, inner);
  }));
  out.line("}}, {})", extents);
  return std::move(out).take();
}

void write_epilogue(CudaText& text) {
  const kernels::Body body = kernels::lower_segment(text.kernel, 1);
  text.declare_lanes(body.slot);
  print_steps(text, body, {});
}

}  // namespace

void write_matmul(CudaText& text, const plan::Matmul& matmul) {
  const plan::Mapping& mapping = text.kernel.mapping;
  const plan::MatmulParts parts = plan::matmul_parts(text.kernel);
  const VarId m = plan::matmul_m(mapping), n = plan::matmul_n(mapping);
  const std::vector<VarId> batch(mapping.space.begin(), mapping.space.end() - 2);
  TemplateVariables variables;
  variables["threads"] = std::to_string(block_threads(mapping));
  variables["name"] = text.kernel.name;
  variables["parameters"] = fmt::format("{}", fmt::join(parameters(text), ", "));
  variables["symbols"] = text_of(text, [](CudaText& part) { declare_symbols(part); });
  variables["factor"] = cuda_type(text.stmt(parts.left).dtype);
  variables["kept"] = cuda_type(text.stmt(parts.kept).dtype);
  variables["tile"] = tile_type(matmul);
  if (matmul.warpgroups) {
    std::string problems;
    for (VarId v : batch) problems += (problems.empty() ? "" : " * ") + fmt::format("cxxi_uint({})", text.extent(v));
    variables["problems"] = problems.empty() ? "1" : problems;
  } else {
    variables["padding"] = std::to_string(plan::matmul_row_padding);
  }
  variables["width"] = std::to_string(mapping.vector_width);
  variables["unroll"] = std::to_string(matmul.unroll);
  variables["band"] = std::to_string(matmul.group_m);
  variables["rows"] = text.extent(m);
  variables["columns"] = text.extent(n);
  variables["depth"] = text.extent(parts.k);
  variables["batch"] = text_of(text, [&](CudaText& part) { part.decode("cxxi_problem", batch, 1); });
  variables["left"] = factor(text, parts.left, m, matmul.left_along_k);
  variables["right"] = factor(text, parts.right, n, matmul.right_along_k);
  variables["m"] = text.variable(m);
  variables["n"] = text.variable(n);
  variables["sums"] = fmt::format("g{}", parts.kept.index());
  variables["epilogue"] = text_of(text, write_epilogue);
  text.out.raw_line(render_template_file(matmul.warpgroups ? "cuda/warpgroup_kernel.cuh" : "cuda/matmul_kernel.cuh", variables));
}

}  // namespace cxxinductor::codegen

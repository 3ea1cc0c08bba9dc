// Matrix products on tensor cores: values for the variables of cuda/matmul_kernel.cuh and cuda/warpgroup_kernel.cuh.
#include "codegen/cuda/kernel_emitter.h"
#include "codegen/templates.h"
#include "ir/plan/matmul.h"
#include "support/error.h"

namespace cxxinductor::codegen {
namespace {

constexpr int kChunk = 8;  // elements of a factor that move together

std::string tile_type(const plan::Matmul& matmul) {
  const std::string sizes = fmt::format("{}, {}, {}", matmul.tile_m, matmul.tile_n, matmul.tile_k);
  const std::string rest = fmt::format("{}, {}, {}", matmul.stages, matmul.left_along_k, matmul.right_along_k);
  if (matmul.warpgroups) return fmt::format("cxxi_warpgroup_matmul<Factor, {}, {}, {}>", sizes, matmul.warps_m / 4, rest);
  return fmt::format("cxxi_matmul<Factor, {}, {}, {}, {}>", sizes, matmul.warps_m, matmul.warps_n, rest);
}

}  // namespace

template <class Emit>
std::string CudaKernelEmitter::text_of(VarId vector_var, int width, Emit emit) const {
  TextWriter out;
  CudaKernelEmitter part(kernel_, variant_, origins_, out);
  part.vector_var_ = vector_var;
  part.width_ = width;
  emit(part);
  return std::move(out).take();
}

void CudaKernelEmitter::emit_matmul() {
  const plan::Mapping& mapping = kernel_.mapping;
  const auto& matmul = mapping.get<plan::Matmul>();
  const plan::MatmulParts parts = plan::matmul_parts(kernel_);
  const VarId m = plan::matmul_m(mapping), n = plan::matmul_n(mapping);
  const std::vector<VarId> batch(mapping.space.begin(), mapping.space.end() - 2);
  TemplateVariables variables;
  variables["threads"] = std::to_string(block_threads(mapping));
  variables["name"] = kernel_.name;
  variables["parameters"] = fmt::format("{}", fmt::join(parameters(), ", "));
  variables["symbols"] = text_of({}, 1, [](CudaKernelEmitter& part) { part.declare_symbols(); });
  variables["factor"] = cuda_type(stmt(parts.left).dtype);
  variables["kept"] = cuda_type(stmt(parts.kept).dtype);
  variables["tile"] = tile_type(matmul);
  if (matmul.warpgroups) {
    std::string problems;
    for (VarId v : batch) problems += (problems.empty() ? "" : " * ") + fmt::format("cxxi_uint({})", extent(v));
    variables["problems"] = problems.empty() ? "1" : problems;
  } else {
    variables["padding"] = std::to_string(plan::matmul_row_padding);
  }
  variables["width"] = std::to_string(mapping.vector_width);
  variables["unroll"] = std::to_string(matmul.unroll);
  variables["band"] = std::to_string(matmul.group_m);
  variables["rows"] = extent(m);
  variables["columns"] = extent(n);
  variables["depth"] = extent(parts.k);
  variables["batch"] = text_of({}, 1, [&](CudaKernelEmitter& part) { part.decode("cxxi_problem", batch, 1); });
  variables["left"] = factor(parts.left, m, matmul.left_along_k);
  variables["right"] = factor(parts.right, n, matmul.right_along_k);
  variables["m"] = variable(m);
  variables["n"] = variable(n);
  variables["sums"] = fmt::format("g{}", parts.kept.index());
  variables["epilogue"] =
      text_of(n, mapping.vector_width, [&](CudaKernelEmitter& part) { part.emit_epilogue(parts.kept); });
  out_.raw_line(render_template_file(matmul.warpgroups ? "cuda/warpgroup_kernel.cuh" : "cuda/matmul_kernel.cuh", variables));
}

std::string CudaKernelEmitter::factor(StmtId value, VarId across, bool along_k) {
  const VarId k = plan::matmul_parts(kernel_).k;
  const VarId outer = along_k ? across : k, inner = along_k ? k : across;
  const std::string extents = fmt::format("{}, {}", extent(outer), extent(inner));
  if (kernel_.access[value] == plan::AccessKind::Staged) {
    const sym::Expr offset = kernel_.offsets[value];
    const auto at_zero = [&](sym::Expr e, VarId v) {
      return sym::substitute(e, {{kernel_.region.vars[v].name, sym::Expr(0)}});
    };
    sym::Expr stride, rest;
    const bool linear = sym::split_linear(offset, kernel_.region.symbol(outer), &stride, &rest);
    CXXI_CHECK(linear, "the offset of %{} in {} is not linear", value.index(), kernel_.name);
    return fmt::format("cxxi_stored_factor<Factor, cxxi_index, {}>{{p{} + {}, {}, {}}}", variant_.vectorized,
                       stmt(value).as<loops::Load>()->buffer.index(), expression(at_zero(rest, inner), false),
                       expression(stride, false), extents);
  }
  TextWriter text;
  text.line(
      "cxxi_compute_factor<Factor, cxxi_index>([&](const cxxi_index {}, const cxxi_index {}, const int cxxi_lanes) {{",
      variable(outer), variable(inner));
  text.raw_line(text_of(inner, kChunk, [&](CudaKernelEmitter& part) {
    part.out_.indent();
    part.emit_computed_group(value, inner);
  }));
  text.line("}}, {})", extents);
  return std::move(text).take();
}

// The statements that a factor needs, for a group of it, and `return` of that group.
void CudaKernelEmitter::emit_computed_group(StmtId value, VarId along) {
  const std::vector<bool> needed = plan::backward_slice(kernel_.region, value);
  std::vector<StmtId> stmts;
  for (size_t s = 0; s < needed.size(); ++s)
    if (needed[s]) stmts.push_back(StmtId(s));
  Body body;
  body.lanes = true;
  body.count = "cxxi_lanes";
  for (VarId v : kernel_.mapping.space) body.running |= loops::VarSet::of(v);
  body.running |= loops::VarSet::of(along);
  for (StmtId id : stmts) here_.insert(id.index());
  emit_ahead_of_lanes(stmts, body);
  emit_lane_loop(stmts, stmts, {}, {value}, {}, body);
  out_.line("cxxi_group<Factor, {}> cxxi_made = {{}};", kChunk);
  out_.line("#pragma unroll");
  out_.line("for (int e = 0; e < {}; ++e) cxxi_made.set(e, l{}[e]);", kChunk, value.index());
  out_.line("return cxxi_made;");
}

void CudaKernelEmitter::emit_epilogue(StmtId kept) {
  Body body;
  body.lanes = width_ > 1;
  for (VarId v : kernel_.mapping.space) body.running |= loops::VarSet::of(v);
  if (!whole_groups()) {
    body.count = "cxxi_lanes";
    out_.line("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(vector_var_), variable(vector_var_),
              integer(width_));
  }
  grouped_ = kept;
  std::vector<StmtId> stmts;
  for (StmtId id : kernel_.segments.at(1).stmts)
    if (id != kept) stmts.push_back(id);
  emit_body(stmts, body);
}

}  // namespace cxxinductor::codegen

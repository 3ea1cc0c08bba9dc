// Columns: a block takes a strip of neighbouring columns; threads with the same group of columns share its rows.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "ir/plan/columns.h"
#include "ir/plan/early_loads.h"
#include "support/error.h"

namespace cxxinductor::codegen {
void CudaKernelEmitter::emit_columns() {
  const plan::Mapping& mapping = kernel_.mapping;
  const int columns = mapping.get<plan::Columns>().columns_per_block, groups = columns / width_;
  const sym::Expr size = kernel_.region.vars[vector_var_].extent;
  const sym::Expr strips = sym::simplify(sym::ceil_div(size, columns), kernel_.assumptions);
  dead_rows_ = !proven_multiple(size, columns);
  if (groups > 1) out_.line("const int cxxi_column = threadIdx.x % {};", groups);
  out_.line("const cxxi_uint cxxi_lane = threadIdx.x / {};", groups);
  const std::vector<VarId> outer(mapping.space.begin(), mapping.space.end() - 1);
  if (outer.empty()) {
    out_.line("const cxxi_index cxxi_strip = cxxi_index({}) * {};", block_, columns);
  } else {
    const std::string count = fmt::format("cxxi_uint({})", expression(strips, false));
    out_.line("const cxxi_index cxxi_strip = cxxi_index({} % {}) * {};", block_, count, columns);
    out_.line("const cxxi_uint cxxi_outer = {} / {};", block_, count);
    decode("cxxi_outer", outer, 1);
  }
  const std::string place = fmt::format("cxxi_strip{}", groups > 1 ? fmt::format(" + cxxi_column * {}", width_) : "");
  if (dead_rows_) {
    // Columns past the end take part in barriers as copies of the first ones that touch nothing.
    out_.line("const bool cxxi_live = {} < {};", place, extent(vector_var_));
    out_.line("const cxxi_index {} = cxxi_live ? {} : 0;", variable(vector_var_), place);
  } else {
    out_.line("const cxxi_index {} = {};", variable(vector_var_), place);
  }
  if (!whole_groups())
    out_.line("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(vector_var_), variable(vector_var_),
              integer(width_));
  const int64_t shared = plan::columns_shared_bytes(kernel_.region, mapping);
  if (shared > 0) out_.line("__shared__ uint4 cxxi_shared[{}];", (shared + 15) / 16);
  for (const plan::Segment& segment : kernel_.segments) emit_column_segment(segment);
}

void CudaKernelEmitter::emit_column_segment(const plan::Segment& segment) {
  const plan::Mapping& mapping = kernel_.mapping;
  Body body;
  body.lanes = width_ > 1;
  for (VarId v : mapping.space) body.running |= loops::VarSet::of(v);
  if (!whole_groups()) body.count = "cxxi_lanes";
  if (segment.kind == plan::Segment::Kind::RowLoop) {
    emit_points(segment);
    return;
  }
  body.side_effects = threads_per_row() > 1 ? "cxxi_lane == 0" : "";
  if (dead_rows_) body.side_effects += body.side_effects.empty() ? "cxxi_live" : " && cxxi_live";
  std::vector<StmtId> stmts;
  for (StmtId id : segment.stmts) {
    const Stmt& s = stmt(id);
    if (kept_.count(id.index())) continue;
    const bool value = !s.as<loops::Store>() && !s.as<loops::Check>();
    if (value) {
      // Values with one name for the rest of the kernel are computed where they are first listed.
      kept_.insert(id.index());
      if (has_lanes(s)) out_.line("{} w{}[{}];", cuda_type(s.dtype), id.index(), width_);
    }
    stmts.push_back(id);
  }
  emit_body(stmts, body);
}

void CudaKernelEmitter::emit_points(const plan::Segment& segment) {
  const plan::Mapping& mapping = kernel_.mapping;
  const auto& shape = mapping.get<plan::Columns>();
  const int unroll = shape.in_flight, threads = shape.threads_per_row;
  std::vector<StmtId> reduces;
  for (StmtId id : segment.stmts) {
    const auto* reduce = stmt(id).as<loops::Reduce>();
    if (!reduce) continue;
    reduces.push_back(id);
    const int lanes = has_lanes(stmt(reduce->operand)) ? width_ : 1;
    const std::string state = cuda_state(reduce->reduction, stmt(reduce->operand).dtype);
    out_.line("{} r{}[{}];", state, id.index(), lanes);
    out_.line("cxxi_accumulator<{}> a{}[{}];", state, id.index(), lanes);
  }
  Body body;
  body.lanes = width_ > 1;
  for (const auto* list : {&mapping.space, &mapping.row})
    for (VarId v : *list) body.running |= loops::VarSet::of(v);
  if (!whole_groups()) body.count = "cxxi_lanes";
  body.position = "(long long)(cxxi_linear)";
  body.slot = "[u]";
  const std::vector<StmtId> in_blocks = summed_in_blocks(reduces);
  open("{");
  declare_blocks(in_blocks, true);
  out_.line("const cxxi_uint cxxi_points = {};", count_text(mapping.row, 1));
  open(fmt::format("for (cxxi_uint cxxi_first = cxxi_lane; {}cxxi_first < cxxi_points; cxxi_first += {}) {{",
                   dead_rows_ ? "cxxi_live && " : "", threads * unroll));
  const std::vector<StmtId> early = unroll > 1 ? plan::early_loads(kernel_, segment.stmts) : std::vector<StmtId>{};
  for (StmtId id : early) out_.line("{} g{}[{}] = {{}};", storage(id), id.index(), unroll);
  for (const bool loading : {true, false}) {
    if (loading && early.empty()) continue;
    if (!loading)
      for (StmtId id : early) early_.insert(id.index());
    if (unroll > 1) {
      out_.line("#pragma unroll");
      open(fmt::format("for (int u = 0; u < {}; ++u) {{", unroll));
    }
    out_.line("const cxxi_uint cxxi_linear = cxxi_first{};", unroll > 1 ? fmt::format(" + u * {}", threads) : "");
    if (unroll > 1) open("if (cxxi_linear < cxxi_points) {");
    decode("cxxi_linear", mapping.row, 1);
    loading ? emit_early_loads(early, body) : emit_body(segment.stmts, body);
    if (unroll > 1) {
      close();
      close();
    }
  }
  put_blocks_aside(in_blocks, "a");
  close();
  for (StmtId id : reduces) {
    const bool blocks = std::find(in_blocks.begin(), in_blocks.end(), id) != in_blocks.end();
    out_.line("cxxi_take_all(r{0}, a{0}{1});", id.index(), blocks ? fmt::format(", b{}", id.index()) : "");
  }
  close();
  early_.clear();
  const int groups = shape.columns_per_block / width_;
  for (StmtId id : reduces) {
    const Stmt& s = stmt(id);
    if (threads > 1) out_.line("cxxi_column_reduce<{}, {}>(r{}, cxxi_shared);", threads, groups, id.index());
    const std::string_view type = cuda_type(s.dtype);
    if (has_lanes(s)) {
      kept_.insert(id.index());
      out_.line("{} w{}[{}];", type, id.index(), width_);
      out_.line("#pragma unroll");
      out_.line("for (int e = 0; e < {0}; ++e) w{1}[e] = cxxi_cast<{2}>(r{1}[e].result<0>());", width_, id.index(),
                type);
    } else {
      out_.line("const {0} v{1} = cxxi_cast<{0}>(r{1}[0].result<0>());", type, id.index());
    }
  }
}

}  // namespace cxxinductor::codegen

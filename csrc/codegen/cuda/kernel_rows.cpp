// Rows: several threads share a row, keep its values in registers across row loops, and join their reductions.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "ir/plan/early_loads.h"
#include "ir/plan/forms.h"
#include "support/error.h"

namespace cxxinductor::codegen {
namespace {

std::set<uint32_t> segment_ids(const plan::Segment& segment) {
  std::set<uint32_t> ids;
  for (plan::StmtId id : segment.stmts) ids.insert(id.index());
  return ids;
}

}  // namespace

void CudaKernelEmitter::emit_rows() {
  emit_row_start();
  // A persistent row of symbolic length.
  if (kernel_.mapping.get<plan::Rows>().persistent && !groups_of_row().is_constant())
    out_.line("const cxxi_uint cxxi_groups = {};", count_text(kernel_.mapping.row, width_));
  declare_persistent_values();
  emit_row_segments();
}

void CudaKernelEmitter::emit_row_segments() {
  const plan::Mapping& mapping = kernel_.mapping;
  loops::VarSet space;
  for (VarId v : mapping.space) space |= loops::VarSet::of(v);
  if (is_serial()) space |= loops::VarSet::of(serial_variable(mapping));
  std::set<uint32_t> declared;
  for (const plan::Segment& segment : kernel_.segments) {
    if (segment.kind == plan::Segment::Kind::Epilogue) continue;
    if (segment.kind == plan::Segment::Kind::RowLoop) {
      emit_row_loop(segment);
      continue;
    }
    Body body;
    body.running = space;
    body.side_effects = threads_per_row() > 1 ? "cxxi_lane == 0" : "";
    if (dead_rows_) body.side_effects += body.side_effects.empty() ? "cxxi_live" : " && cxxi_live";
    std::vector<StmtId> stmts;
    for (StmtId id : segment.stmts)
      if (declared.insert(id.index()).second) stmts.push_back(id);
    emit_body(stmts, body);
  }
}

void CudaKernelEmitter::emit_row_start() {
  const plan::Mapping& mapping = kernel_.mapping;
  const auto& shape = mapping.get<plan::Rows>();
  const int threads = shape.threads_per_row, rows = shape.rows_per_block;
  sym::Expr count = 1;
  for (VarId v : mapping.space) count = count * kernel_.region.vars[v].extent;
  dead_rows_ = rows > 1 && !proven_multiple(count, rows);
  if (threads > 1) out_.line("const cxxi_uint cxxi_lane = threadIdx.x % {};", threads);
  if (mapping.space.empty() && rows == 1) return;
  const std::string number =
      rows > 1 ? fmt::format("cxxi_uint({}) * {} + threadIdx.x / {}", block_, rows, threads)
               : fmt::format("cxxi_uint({})", block_);
  if (!dead_rows_) {
    out_.line("const cxxi_uint cxxi_row = {};", number);
  } else {
    // A row past the end takes part in barriers as a copy of the last one that touches nothing.
    out_.line("const cxxi_uint cxxi_rows = {};", count_text(mapping.space, 1));
    out_.line("const cxxi_uint cxxi_place = {};", number);
    out_.line("const bool cxxi_live = cxxi_place < cxxi_rows;");
    out_.line("const cxxi_uint cxxi_row = cxxi_live ? cxxi_place : cxxi_rows - 1;");
  }
  decode("cxxi_row", mapping.space, 1);
}

int CudaKernelEmitter::threads_per_row() const {
  if (const auto* rows = kernel_.mapping.as<plan::Rows>()) return rows->threads_per_row;
  if (const auto* rows = kernel_.mapping.as<plan::SerialRows>()) return rows->threads_per_row;
  return kernel_.mapping.get<plan::Columns>().threads_per_row;
}

int CudaKernelEmitter::items_per_thread() const {
  const auto* rows = kernel_.mapping.as<plan::Rows>();
  return rows ? rows->items_per_thread : kernel_.mapping.get<plan::SerialRows>().items_per_thread;
}

sym::Expr CudaKernelEmitter::groups_of_row() const {
  sym::Expr groups = 1;
  for (size_t d = 0; d < kernel_.mapping.row.size(); ++d) {
    const sym::Expr size = kernel_.region.vars[kernel_.mapping.row[d]].extent;
    groups = groups * (d + 1 == kernel_.mapping.row.size() ? sym::ceil_div(size, width_) : size);
  }
  return groups;
}

// Whether every thread of a row has equally many elements of the reduction, and its struct makes use of that.
bool CudaKernelEmitter::shares_are_equal(const loops::Reduce& reduce) const {
  const std::vector<VarId>& row = kernel_.mapping.row;
  return !info(reduce.reduction).cuda.empty() && whole_groups() && proven_multiple(groups_of_row(), threads_per_row()) &&
         std::all_of(row.begin(), row.end(), [&](VarId v) { return reduce.over.contains(v); });
}

void CudaKernelEmitter::declare_persistent_values() {
  for (size_t i = 0; i < kernel_.region.body.size(); ++i) {
    const StmtId id(i);
    if (persistent(id) && !is_across(id))
      out_.line("{} w{}[{}] = {{}};", storage(id), i, items_per_thread());
  }
}

void CudaKernelEmitter::emit_row_loop(const plan::Segment& segment) {
  std::vector<StmtId> reduces;
  for (StmtId id : segment.stmts) {
    const auto* reduce = stmt(id).as<loops::Reduce>();
    if (!reduce || is_across(id)) continue;
    reduces.push_back(id);
    const std::string state = cuda_state(reduce->reduction, stmt(reduce->operand).dtype);
    out_.line("{0} r{1} = {0}::start();", state, id.index());
  }
  // Narrow values of an earlier row loop.
  const std::set<uint32_t> own = segment_ids(segment);
  std::set<uint32_t> kept;
  for (StmtId id : segment.stmts) {
    for (StmtId operand : loops::operands(stmt(id))) {
      const bool narrow = has_lanes(stmt(operand)) && byte_size(stmt(operand).dtype) < 4;
      if (persistent(operand) && narrow && !own.count(operand.index())) kept.insert(operand.index());
    }
  }
  for (uint32_t index : kept) out_.line("cxxi_keep_packed(w{});", index);
  declare_divisors(segment);
  is_persistent(kernel_.mapping) ? emit_persistent_items(segment) : emit_looped_items(segment, reduces);
  early_.clear();
  block_reduce(reduces);
}

void CudaKernelEmitter::declare_divisors(const plan::Segment& segment) {
  for (StmtId id : segment.stmts) {
    if (!plan::shares_divisor(kernel_, id)) continue;
    const uint32_t divisor = stmt(id).as<loops::Apply>()->operands[1].index();
    if (divisors_.insert(divisor).second) out_.line("const cxxi_divisor d{0} = cxxi_divisor::of(v{0});", divisor);
  }
}

// One item of a thread: its loads alone, or its statements.
void CudaKernelEmitter::emit_item(const plan::Segment& segment, const std::vector<StmtId>& early, bool loading,
                                  const Body& body) {
  const std::vector<VarId>& row = kernel_.mapping.row;
  decode("cxxi_linear", row, width_);
  if (!body.count.empty())
    out_.line("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(vector_var_), variable(vector_var_),
              integer(width_));
  if (loading) {
    emit_early_loads(early, body);
    return;
  }
  const bool positions = std::any_of(segment.stmts.begin(), segment.stmts.end(), [&](StmtId id) {
    const auto* reduce = stmt(id).as<loops::Reduce>();
    return reduce && form(reduce->reduction).takes_index();
  });
  if (positions) {
    std::string text = row.empty() ? "0" : variable(row[0]);
    for (size_t d = 1; d < row.size(); ++d)
      text = fmt::format("({}) * {} + {}", text, extent(row[d]), variable(row[d]));
    out_.line("const long long cxxi_position = {};", text);
  }
  emit_body(segment.stmts, body);
}

void CudaKernelEmitter::emit_persistent_items(const plan::Segment& segment) {
  const plan::Mapping& mapping = kernel_.mapping;
  const sym::Interval groups = sym::bounds(groups_of_row(), kernel_.assumptions);
  const int items = items_per_thread(), threads = threads_per_row();
  CXXI_CHECK(int64_t{items} * threads >= groups.high, "{}: {} threads with {} items cannot hold {} groups",
             kernel_.name, threads, items, groups.high);
  std::string guard = dead_rows_ ? "cxxi_live" : "";
  if (int64_t{items} * threads != groups.low)  // not all are there, or perhaps not
    guard += fmt::format("{}cxxi_linear < {}", guard.empty() ? "" : " && ",
                         groups.low == groups.high ? fmt::format("{}u", groups.low) : "cxxi_groups");

  early_.insert(ahead_.begin(), ahead_.end());

  Body body;
  body.lanes = width_ > 1;
  for (const auto* list : {&mapping.space, &mapping.row})
    for (VarId v : *list) body.running |= loops::VarSet::of(v);
  if (is_serial()) body.running |= loops::VarSet::of(serial_variable(mapping));
  if (!whole_groups()) body.count = "cxxi_lanes";
  body.position = "cxxi_position";
  body.item = items == 1 ? "[0]" : "[k]";
  body.slot = "[u]";
  const std::string lane = threads > 1 ? "cxxi_lane" : "cxxi_uint(0)";
  const auto enter = [&](const std::string& item) {
    out_.line("const cxxi_uint cxxi_linear = {}{};", lane, items == 1 ? "" : fmt::format(" + {} * {}", item, threads));
    open(guard.empty() ? "{" : fmt::format("if ({}) {{", guard));
  };
  const int batch = segment.loads_ahead;
  if (batch == 0) {
    if (items > 1) out_.line("#pragma unroll");
    open(items > 1 ? fmt::format("for (int k = 0; k < {}; ++k) {{", items) : "{");
    enter("k");
    emit_item(segment, {}, false, body);
    close();
    close();
    return;
  }
  // Loads of several items first: they are in flight together.
  const bool batches = batch < items;
  const std::vector<StmtId> early = plan::early_loads_of_row_loop(kernel_, segment);
  if (batches) {
    out_.line("#pragma unroll");
    open(fmt::format("for (int k0 = 0; k0 < {}; k0 += {}) {{", items, batch));
  } else {
    open("{");
  }
  for (StmtId id : early)
    if (!persistent(id)) out_.line("{} g{}[{}] = {{}};", storage(id), id.index(), batch);
  for (const bool loading : {true, false}) {
    if (!loading)
      for (StmtId id : early) early_.insert(id.index());
    out_.line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u) {{", batch));
    out_.line("const int k = {}u;", batches ? "k0 + " : "");
    const bool uneven = batches && items % batch != 0;
    if (uneven) open(fmt::format("if (k < {}) {{", items));
    enter("k");
    emit_item(segment, early, loading, body);
    close();
    if (uneven) close();
    close();
  }
  close();
}

std::vector<plan::StmtId> CudaKernelEmitter::summed_in_blocks(const std::vector<StmtId>& reduces) const {
  std::vector<StmtId> found;
  std::ranges::copy_if(reduces, std::back_inserter(found), [&](StmtId id) { return std::ranges::binary_search(kernel_.in_blocks, id); });
  return found;
}

void CudaKernelEmitter::declare_blocks(const std::vector<StmtId>& reduces, bool columns) {
  for (StmtId id : reduces) {
    const auto& reduce = *stmt(id).as<loops::Reduce>();
    const int lanes = has_lanes(stmt(reduce.operand)) ? width_ : 1;
    out_.line("cxxi_blocks<{}> b{}{};", cuda_state(reduce.reduction, stmt(reduce.operand).dtype), id.index(),
              columns ? fmt::format("[{}]", lanes) : "");
  }
  if (!reduces.empty()) out_.line("unsigned int cxxi_turn = 0u;");
}

// At the end of a turn of the loop.
void CudaKernelEmitter::put_blocks_aside(const std::vector<StmtId>& reduces, std::string_view states) {
  if (reduces.empty()) return;
  open(fmt::format("if (++cxxi_turn % {}u == 0u) {{", std::max(plan::updates_of_block / unrolled_groups(kernel_.mapping), 1)));
  for (StmtId id : reduces) out_.line("cxxi_put_aside({1}{0}, b{0});", id.index(), states);
  close();
}

void CudaKernelEmitter::emit_looped_items(const plan::Segment& segment, const std::vector<StmtId>& reduces) {
  const plan::Mapping& mapping = kernel_.mapping;
  const auto& shape = mapping.get<plan::Rows>();
  const int unroll = shape.in_flight, threads = shape.threads_per_row;
  const sym::Expr groups = groups_of_row();
  const bool even = proven_multiple(groups, int64_t{threads} * unroll);
  Body body;
  body.lanes = width_ > 1;
  for (const auto* list : {&mapping.space, &mapping.row})
    for (VarId v : *list) body.running |= loops::VarSet::of(v);
  if (!whole_groups()) body.count = "cxxi_lanes";
  body.position = "cxxi_position";
  body.slot = "[u]";
  const std::vector<StmtId> in_blocks = summed_in_blocks(reduces);
  open("{");
  declare_blocks(in_blocks, false);
  out_.line("const cxxi_uint cxxi_groups = {};", count_text(mapping.row, width_));
  open(fmt::format("for (cxxi_uint cxxi_first = {}; {}cxxi_first < cxxi_groups; cxxi_first += {}) {{",
                   threads > 1 ? "cxxi_lane" : "0", dead_rows_ ? "cxxi_live && " : "", threads * unroll));
  const std::vector<StmtId> early = unroll > 1 ? plan::early_loads(kernel_, segment.stmts) : std::vector<StmtId>{};
  const auto enter = [&] {
    out_.line("const cxxi_uint cxxi_linear = cxxi_first{};", unroll > 1 ? fmt::format(" + u * {}", threads) : "");
    if (unroll > 1) open(even ? "{" : "if (cxxi_linear < cxxi_groups) {");
  };
  for (StmtId id : early) out_.line("{} g{}[{}] = {{}};", storage(id), id.index(), unroll);
  for (const bool loading : {true, false}) {
    if (loading && early.empty()) continue;
    if (!loading)
      for (StmtId id : early) early_.insert(id.index());
    if (unroll > 1) {
      out_.line("#pragma unroll");
      open(fmt::format("for (int u = 0; u < {}; ++u) {{", unroll));
    }
    enter();
    emit_item(segment, early, loading, body);
    if (unroll > 1) {
      close();
      close();
    }
  }
  put_blocks_aside(in_blocks, "r");
  close();
  for (StmtId id : in_blocks) out_.line("cxxi_take_all(r{0}, b{0});", id.index());
  close();
}

void CudaKernelEmitter::block_reduce(const std::vector<StmtId>& reduces) {
  const int threads = threads_per_row();
  if (reduces.empty()) return;
  const auto equal = [&](StmtId id) { return shares_are_equal(*stmt(id).as<loops::Reduce>()); };
  const std::string turn = is_serial() ? "[cxxi_step & 1]" : "";
  if (threads > 32) {
    for (StmtId id : reduces) {
      const auto& reduce = *stmt(id).as<loops::Reduce>();
      // Two serial rows are in progress: threads may write the states of the next one before all have read those of this one.
      out_.line("__shared__ {} h{}{}[{}];", cuda_state(reduce.reduction, stmt(reduce.operand).dtype), id.index(),
                is_serial() ? "[2]" : "", block_threads(kernel_.mapping) / 32);
      out_.line("cxxi_share_row<{0}>(r{1}, h{1}{2});", equal(id), id.index(), turn);
    }
    out_.line("__syncthreads();");
    for (StmtId id : reduces)
      out_.line("cxxi_collect_row<{0}, {1}>(r{2}, h{2}{3});", threads, equal(id), id.index(), turn);
  } else if (threads > 1) {
    for (StmtId id : reduces) out_.line("cxxi_block_reduce<{}, {}>(r{});", threads, equal(id), id.index());
  }
  for (StmtId id : reduces) {
    const Stmt& s = stmt(id);
    out_.line("const {0} v{1} = cxxi_cast<{0}>(r{1}.result<0>());{2}", cuda_type(s.dtype), id.index(),
              origin_comment(s));
  }
}

}  // namespace cxxinductor::codegen

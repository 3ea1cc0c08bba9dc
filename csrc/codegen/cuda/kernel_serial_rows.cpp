// Serial rows: a block executes the rows of kernel_rows.cpp in a loop, with the loads of the next row in flight.
// Persistent loads that do not vary over the rows are made once, before the loop.
// Sums across rows are in registers, which the threads of a block join after the loop, or in shared memory,
// where each element has one thread.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "ir/plan/early_loads.h"
#include "ir/plan/serial_rows.h"
#include "support/error.h"
#include "sym/integer.h"

namespace cxxinductor::codegen {
void CudaKernelEmitter::emit_serial_rows() {
  const plan::Mapping& mapping = kernel_.mapping;
  const auto& shape = mapping.get<plan::SerialRows>();
  const int threads = shape.threads_per_row, rows = shape.rows_per_block;
  const sym::Expr length = sym::simplify(kernel_.region.vars[shape.serial].extent, kernel_.assumptions);
  CXXI_CHECK(length.is_constant(), "{}: a block executes {} rows", kernel_.name, sym::to_string(length));
  const int64_t steps = sym::ceil_quotient(length.constant(), rows);
  dead_rows_ = length.constant() % rows != 0;
  out_.line("const cxxi_uint cxxi_lane = threadIdx.x % {0}, cxxi_slot = threadIdx.x / {0};", threads);
  out_.line("const cxxi_uint cxxi_part = cxxi_uint({});", block_);
  decode("cxxi_part", mapping.space, 1);
  declare_persistent_values();
  declare_sums();
  declare_shared_sums();
  const std::vector<StmtId> once = plan::persistent_loads_of_block(kernel_), ahead = plan::persistent_loads_of_row(kernel_),
                            of_row = plan::row_loads_ahead(kernel_);
  emit_serial_loads(once, 'w');
  for (StmtId id : ahead) out_.line("{} n{}[{}] = {{}};", storage(id), id.index(), shape.items_per_thread);
  for (StmtId id : of_row) out_.line("{} n{} = {{}};", cuda_type(stmt(id).dtype), id.index());
  const auto load_row = [&] {
    for (StmtId id : of_row)
      out_.line("n{} = {};", id.index(), scalar_load(id, *stmt(id).as<loops::Load>(), Body{}, false));
    emit_serial_loads(ahead, 'n');
  };
  const std::string serial = variable(shape.serial);
  const auto enter = [&](std::string_view step) {
    out_.line("const cxxi_index {} = cxxi_index({}) * {} + cxxi_index(cxxi_slot);", serial, step, rows);
  };
  const bool any_ahead = !ahead.empty() || !of_row.empty();
  if (any_ahead) {
    open("{");
    enter("0");
    open(dead_rows_ ? fmt::format("if ({} < {}) {{", serial, length.constant()) : "{");
    load_row();
    close();
    close();
  }
  out_.line("#pragma unroll 1");
  open(fmt::format("for (int cxxi_step = 0; cxxi_step < {}; ++cxxi_step) {{", steps));
  // Else the compiler widens them before the loop, into twice the registers.
  for (StmtId id : once)
    if (has_lanes(stmt(id)) && byte_size(stmt(id).dtype) < 4) out_.line("cxxi_keep_packed(w{});", id.index());
  if (any_ahead) {
    for (StmtId id : of_row) out_.line("const {} v{} = n{};", cuda_type(stmt(id).dtype), id.index(), id.index());
    for (StmtId id : ahead) {
      out_.line("#pragma unroll");
      out_.line("for (int k = 0; k < {0}; ++k) w{1}[k] = n{1}[k];", shape.items_per_thread, id.index());
    }
    open("{");
    enter("cxxi_step + 1");
    open(fmt::format("if ({} < {}) {{", serial, length.constant()));
    load_row();
    close();
    close();
  }
  enter("cxxi_step");
  if (dead_rows_) out_.line("const bool cxxi_live = {} < {};", serial, length.constant());
  for (const auto* loads : {&once, &ahead})
    for (StmtId id : *loads) ahead_.insert(id.index());
  for (StmtId id : of_row) made_.insert(id.index());
  emit_row_segments();
  ahead_.clear();
  close();
  for (const plan::Segment& segment : kernel_.segments)
    if (segment.kind == plan::Segment::Kind::Epilogue) emit_serial_epilogue(segment);
}

void CudaKernelEmitter::declare_sums() {
  for (size_t i = 0; i < kernel_.region.body.size(); ++i) {
    if (!is_across(StmtId(i)) || shared(StmtId(i))) continue;
    const auto& reduce = *stmt(StmtId(i)).as<loops::Reduce>();
    const std::string state = cuda_state(reduce.reduction, stmt(reduce.operand).dtype);
    const int items = items_per_thread();
    out_.line("{} r{}[{}][{}];", state, i, items, width_);
    out_.line("#pragma unroll");
    out_.line("for (int k = 0; k < {}; ++k) {{", items);
    out_.line("  #pragma unroll");
    out_.line("  for (int e = 0; e < {}; ++e) r{}[k][e] = {}::start();", width_, i, state);
    out_.line("}}");
  }
}

void CudaKernelEmitter::declare_shared_sums() {
  const auto& shape = kernel_.mapping.get<plan::SerialRows>();
  std::vector<StmtId> sums;
  for (size_t i = 0; i < kernel_.region.body.size(); ++i)
    if (shared(StmtId(i))) sums.push_back(StmtId(i));
  if (sums.empty()) return;
  CXXI_CHECK(shape.rows_per_block == 1, "{}: {} rows at a time share sums", kernel_.name, shape.rows_per_block);
  const int64_t groups = plan::groups_of_row(kernel_);
  out_.line("CXXI_DYNAMIC_SHARED(cxxi_shared);");
  int64_t offset = 0;
  for (StmtId id : sums) {
    const auto& reduce = *stmt(id).as<loops::Reduce>();
    const std::string state = cuda_state(reduce.reduction, stmt(reduce.operand).dtype);
    const std::string type = fmt::format("cxxi_shared_states<{}, {}, {}>", state, width_, groups);
    out_.line("const {0} s{1} = {{reinterpret_cast<{0}::chunk*>(cxxi_shared + {2})}};", type, id.index(), offset);
    offset += plan::shared_states_bytes(groups, kernel_.mapping.vector_width, reduced_dtype(reduce));
    open("{");
    out_.line("{} r{}[{}];", state, id.index(), width_);
    out_.line("#pragma unroll");
    out_.line("for (int e = 0; e < {}; ++e) r{}[e] = {}::start();", width_, id.index(), state);
    out_.line("for (cxxi_uint i = cxxi_lane; i < {}u; i += {}) s{}.store(r{}, i);", groups, shape.threads_per_row,
              id.index(), id.index());
    close();
  }
}

// Statements in the order of the body.
std::vector<plan::StmtId> CudaKernelEmitter::shared_sums(const std::vector<StmtId>& stmts) const {
  std::set<StmtId> found;
  for (StmtId id : stmts) {
    if (shared(id)) found.insert(id);
    for (StmtId operand : loops::operands(stmt(id)))
      if (shared(operand)) found.insert(operand);
  }
  return {found.begin(), found.end()};
}

// Into arrays over the thread's items: `prefix` and the number of the statement.
void CudaKernelEmitter::emit_serial_loads(const std::vector<StmtId>& loads, char prefix) {
  if (loads.empty()) return;
  const int items = items_per_thread(), threads = threads_per_row();
  const int64_t groups = groups_of_row().constant();
  out_.line("#pragma unroll");
  open(fmt::format("for (int k = 0; k < {}; ++k) {{", items));
  out_.line("const cxxi_uint cxxi_linear = cxxi_lane + k * {};", threads);
  open(groups == int64_t{items} * threads ? "{" : fmt::format("if (cxxi_linear < {}u) {{", groups));
  decode("cxxi_linear", kernel_.mapping.row, width_);
  Body body;
  body.lanes = width_ > 1;
  if (!whole_groups()) {
    body.count = "cxxi_lanes";
    out_.line("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(vector_var_), variable(vector_var_),
              integer(width_));
  }
  for (StmtId id : loads) {
    const auto& load = *stmt(id).as<loops::Load>();
    const std::string to = fmt::format("{}{}[k]", prefix, id.index());
    if (is_wide(id)) {
      out_.line("{} = {};", to, wide_load(id, load, body));
    } else if (has_lanes(stmt(id))) {
      out_.line("#pragma unroll");
      out_.line("for (int e = 0; e < {}; ++e) {}.set(e, {});", width_, to, scalar_load(id, load, body, true));
    } else {
      out_.line("{} = {};", to, scalar_load(id, load, body, false));
    }
  }
  close();
  close();
}

void CudaKernelEmitter::emit_serial_epilogue(const plan::Segment& segment) {
  const plan::Mapping& mapping = kernel_.mapping;
  const auto& shape = mapping.get<plan::SerialRows>();
  const int threads = shape.threads_per_row, rows = shape.rows_per_block, items = shape.items_per_thread;
  if (rows > 1) {
    const plan::JoinedRows joined = plan::joined_rows(kernel_);
    out_.line("__shared__ uint4 cxxi_shared[{}];", (joined.bytes + 15) / 16);
    for (size_t i = 0; i < kernel_.region.body.size(); ++i)
      if (is_across(StmtId(i)))
        out_.line("cxxi_slot_reduce<{}, {}, {}>(r{}, cxxi_shared, cxxi_lane, cxxi_slot);", threads, rows, joined.rows, i);
  }
  Body body;
  body.lanes = width_ > 1;
  for (VarId v : mapping.row) body.running |= loops::VarSet::of(v);
  if (!whole_groups()) body.count = "cxxi_lanes";
  body.item = "[k]";
  if (rows > 1) open("if (cxxi_slot == 0) {");
  out_.line("#pragma unroll");
  open(fmt::format("for (int k = 0; k < {}; ++k) {{", items));
  out_.line("const cxxi_uint cxxi_linear = cxxi_lane + k * {};", threads);
  open(fmt::format("if (cxxi_linear < {}u) {{", groups_of_row().constant()));
  emit_item(segment, {}, false, body);
  close();
  close();
  if (rows > 1) close();
}

}  // namespace cxxinductor::codegen

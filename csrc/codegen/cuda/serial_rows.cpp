// Serial rows: a block executes the rows of rows.cpp in a loop, with the loads of the next row in flight.
// Persistent loads that do not vary over the rows are made once, before the loop.
// Sums across rows are in registers, which the threads of a block join after the loop, or in shared memory,
// where each element has one thread.
#include "codegen/cuda/rows.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/threads.h"
#include "ir/plan/early_loads.h"
#include "ir/plan/serial_rows.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "support/error.h"
#include "sym/integer.h"

namespace cxxinductor::codegen {
namespace {

using kernels::Where;

class SerialRowsWriter {
 public:
  SerialRowsWriter(CudaText& text, const plan::SerialRows& shape)
      : text_(text),
        kernel_(text.kernel),
        shape_(shape),
        fragment_{.vector_var = vector_variable(kernel_.mapping), .width = text.width(), .masked_tail = kernel_.mapping.vector_tail && text.width() > 1},
        length_(sym::simplify(kernel_.region.vars[shape.serial].extent, kernel_.assumptions)),
        row_(text, {shape.threads_per_row, shape.items_per_thread}) {}

  void write() {
    CXXI_CHECK(length_.is_constant(), "{}: a block executes {} rows", kernel_.name, sym::to_string(length_));
    text_.out.line("const cxxi_uint cxxi_lane = threadIdx.x % {0}, cxxi_slot = threadIdx.x / {0};", shape_.threads_per_row);
    text_.out.line("const cxxi_uint cxxi_part = cxxi_uint({});", text_.block());
    text_.decode("cxxi_part", kernel_.mapping.space, 1);
    row_.declare_persistent_values();
    declare_sums();
    declare_shared_sums();
    load_items(once_, Where::Persistent);
    for (StmtId id : ahead_) text_.out.line("{} n{}[{}] = {{}};", text_.storage(fragment_, id), id.index(), shape_.items_per_thread);
    for (StmtId id : of_row_) text_.out.line("{} n{} = {{}};", cuda_type(text_.stmt(id).dtype), id.index());
    if (loads_next_row()) load_row("0", kernels::has_dead_rows(kernel_));
    write_steps();
    for (size_t s = 0; s < kernel_.segments.size(); ++s)
      if (kernel_.segments[s].kind == plan::Segment::Kind::Epilogue) write_epilogue(s);
  }

 private:
  void declare_sums();
  void declare_shared_sums();
  void load_items(const std::vector<StmtId>& loads, Where where);
  void load_row(std::string_view step, bool may_be_past);
  void take_row();
  void write_steps();
  void write_epilogue(size_t segment);
  void declare_row(std::string_view step) {
    text_.out.line("const cxxi_index {} = cxxi_index({}) * {} + cxxi_index(cxxi_slot);", text_.variable(shape_.serial), step, shape_.rows_per_block);
  }
  std::string in_range() const { return fmt::format("{} < {}", text_.variable(shape_.serial), length_.constant()); }
  bool loads_next_row() const { return !ahead_.empty() || !of_row_.empty(); }
  std::vector<kernels::Step> loads_of(const std::vector<StmtId>& loads, Where where) const {
    std::vector<kernels::Place> places;
    for (StmtId id : loads) places.push_back({id, where});
    return kernels::lower_loads(kernel_, fragment_, places);
  }

  CudaText& text_;
  const plan::Kernel& kernel_;
  const plan::SerialRows& shape_;
  const kernels::Slot fragment_;
  const sym::Expr length_;
  RowWriter row_;
  const std::vector<StmtId> once_ = plan::persistent_loads_of_block(kernel_), ahead_ = plan::persistent_loads_of_row(kernel_),
                            of_row_ = plan::row_loads_ahead(kernel_);
};

void SerialRowsWriter::declare_sums() {
  for (size_t i = 0; i < kernel_.region.body.size(); ++i) {
    if (!plan::is_across(kernel_, StmtId(i)) || kernel_.memory_spaces[StmtId(i)] == plan::MemorySpace::Shared) continue;
    const std::string state = text_.state(StmtId(i));
    text_.out.line("{} r{}[{}][{}];", state, i, shape_.items_per_thread, fragment_.width);
    text_.out.line("#pragma unroll");
    text_.out.line("for (int k = 0; k < {}; ++k) {{", shape_.items_per_thread);
    text_.out.line("  #pragma unroll");
    text_.out.line("  for (int e = 0; e < {}; ++e) r{}[k][e] = {}::start();", fragment_.width, i, state);
    text_.out.line("}}");
  }
}

void SerialRowsWriter::declare_shared_sums() {
  std::vector<StmtId> sums;
  for (size_t i = 0; i < kernel_.region.body.size(); ++i)
    if (kernel_.memory_spaces[StmtId(i)] == plan::MemorySpace::Shared) sums.push_back(StmtId(i));
  if (sums.empty()) return;
  CXXI_CHECK(shape_.rows_per_block == 1, "{}: {} rows at a time share sums", kernel_.name, shape_.rows_per_block);
  const int64_t groups = plan::groups_of_row(kernel_);
  text_.out.line("CXXI_DYNAMIC_SHARED(cxxi_shared);");
  int64_t offset = 0;
  for (StmtId id : sums) {
    const std::string state = text_.state(id);
    const std::string type = fmt::format("cxxi_shared_states<{}, {}, {}>", state, fragment_.width, groups);
    text_.out.line("const {0} s{1} = {{reinterpret_cast<{0}::chunk*>(cxxi_shared + {2})}};", type, id.index(), offset);
    offset += plan::shared_states_bytes(groups, kernel_.mapping.vector_width, plan::state_dtype(kernel_.region, *text_.stmt(id).as<loops::Reduce>()));
    text_.open("{");
    text_.out.line("{} r{}[{}];", state, id.index(), fragment_.width);
    text_.out.line("#pragma unroll");
    text_.out.line("for (int e = 0; e < {}; ++e) r{}[e] = {}::start();", fragment_.width, id.index(), state);
    text_.out.line("for (cxxi_uint i = cxxi_lane; i < {}u; i += {}) s{}.store(r{}, i);", groups, shape_.threads_per_row, id.index(), id.index());
    text_.close();
  }
}

// Into arrays over the thread's items.
void SerialRowsWriter::load_items(const std::vector<StmtId>& loads, Where where) {
  if (loads.empty()) return;
  const int64_t groups = row_.groups().constant();
  text_.open_unrolled(fmt::format("for (int k = 0; k < {}; ++k) {{", shape_.items_per_thread));
  text_.out.line("const cxxi_uint cxxi_linear = cxxi_lane + k * {};", shape_.threads_per_row);
  text_.open(groups == int64_t{shape_.items_per_thread} * shape_.threads_per_row ? "{" : fmt::format("if (cxxi_linear < {}u) {{", groups));
  text_.decode("cxxi_linear", kernel_.mapping.row, fragment_.width);
  text_.declare_lanes(fragment_);
  print_loads(text_, fragment_, loads_of(loads, where), {.item = "[k]", .group = "", .position = ""});
  text_.close();
  text_.close();
}

// Makes the loads of a row of a step.
void SerialRowsWriter::load_row(std::string_view step, bool may_be_past) {
  text_.open("{");
  declare_row(step);
  text_.open(may_be_past ? fmt::format("if ({}) {{", in_range()) : "{");
  print_loads(text_, fragment_, loads_of(of_row_, Where::Next), {});
  load_items(ahead_, Where::Next);
  text_.close();
  text_.close();
}

// What was loaded for the next row is this row's from now on.
void SerialRowsWriter::take_row() {
  for (StmtId id : of_row_) text_.out.line("const {} v{} = n{};", cuda_type(text_.stmt(id).dtype), id.index(), id.index());
  for (StmtId id : ahead_) {
    text_.out.line("#pragma unroll");
    text_.out.line("for (int k = 0; k < {0}; ++k) w{1}[k] = n{1}[k];", shape_.items_per_thread, id.index());
  }
}

void SerialRowsWriter::write_steps() {
  text_.out.line("#pragma unroll 1");
  text_.open(fmt::format("for (int cxxi_step = 0; cxxi_step < {}; ++cxxi_step) {{", sym::ceil_quotient(length_.constant(), shape_.rows_per_block)));
  // Else the compiler widens them before the loop, into twice the registers.
  for (StmtId id : once_)
    if (has_lanes(kernel_, fragment_, id) && byte_size(text_.stmt(id).dtype) < 4) text_.out.line("cxxi_keep_packed(w{});", id.index());
  if (loads_next_row()) {
    take_row();
    load_row("cxxi_step + 1", true);
  }
  declare_row("cxxi_step");
  if (kernels::has_dead_rows(kernel_)) text_.out.line("const bool cxxi_live = {};", in_range());
  row_.write_segments();
  text_.close();
}

void SerialRowsWriter::write_epilogue(size_t segment) {
  const kernels::Body body = kernels::lower_segment(kernel_, segment);
  const int threads = shape_.threads_per_row, rows = shape_.rows_per_block;
  if (rows > 1) {
    const plan::JoinedRows joined = plan::joined_rows(kernel_);
    text_.out.line("__shared__ uint4 cxxi_shared[{}];", (joined.bytes + 15) / 16);
    for (size_t i = 0; i < kernel_.region.body.size(); ++i)
      if (plan::is_across(kernel_, StmtId(i)))
        text_.out.line("cxxi_slot_reduce<{}, {}, {}>(r{}, cxxi_shared, cxxi_lane, cxxi_slot);", threads, rows, joined.rows, i);
    text_.open("if (cxxi_slot == 0) {");
  }
  text_.open_unrolled(fmt::format("for (int k = 0; k < {}; ++k) {{", shape_.items_per_thread));
  text_.out.line("const cxxi_uint cxxi_linear = cxxi_lane + k * {};", threads);
  text_.open(fmt::format("if (cxxi_linear < {}u) {{", row_.groups().constant()));
  row_.write_item(body, false, [&] { print_steps(text_, body, {.item = "[k]", .group = "", .position = ""}); });
  for (int opened = rows > 1 ? 3 : 2; opened > 0; --opened) text_.close();
}

}  // namespace

void write_threads(CudaText& text, const plan::SerialRows& shape) { SerialRowsWriter(text, shape).write(); }

}  // namespace cxxinductor::codegen

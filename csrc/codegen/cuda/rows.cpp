// Rows: several threads share a row, keep its values in registers across row loops, and join their reductions.
#include "codegen/cuda/rows.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/block_sums.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/threads.h"
#include "codegen/spelling.h"
#include "ir/plan/serial_rows.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "support/error.h"

namespace cxxinductor::codegen {

using kernels::Where;

RowWriter::RowWriter(CudaText& text, RowThreads shape)
    : text_(text),
      shape_(shape),
      width_(text.width()),
      dead_rows_(kernels::has_dead_rows(text.kernel)),
      serial_(serial_variable(text.kernel.mapping).valid()) {}

bool RowWriter::whole_groups() const { return !text_.kernel.mapping.vector_tail || width_ == 1; }

sym::Expr RowWriter::groups() const { return plan::groups_of(text_.kernel.region, text_.kernel.mapping.row, width_); }

// Whether every thread of a row has equally many elements of the reduction, and its struct makes use of that.
bool RowWriter::shares_are_equal(StmtId reduce) const {
  const auto& reduction = *text_.stmt(reduce).as<loops::Reduce>();
  const std::vector<VarId>& row = text_.kernel.mapping.row;
  return !info(reduction.reduction).cuda.empty() && whole_groups() && text_.proven_multiple(groups(), shape_.threads) &&
         std::all_of(row.begin(), row.end(), [&](VarId v) { return reduction.over.contains(v); });
}

void RowWriter::declare_persistent_values() {
  const plan::Kernel& kernel = text_.kernel;
  const kernels::Slot fragment{.vector_var = vector_variable(kernel.mapping), .width = width_};
  for (size_t i = 0; i < kernel.region.body.size(); ++i) {
    const StmtId id(i);
    if (kernel.memory_spaces[id] == plan::MemorySpace::Persistent && !plan::is_across(kernel, id))
      text_.out.line("{} w{}[{}] = {{}};", text_.storage(fragment, id), i, shape_.items);
  }
}

void RowWriter::write_segments() {
  for (size_t s = 0; s < text_.kernel.segments.size(); ++s) {
    const plan::Segment::Kind kind = text_.kernel.segments[s].kind;
    if (kind == plan::Segment::Kind::RowLoop) write_row_loop(s);
    if (kind == plan::Segment::Kind::PerRow) print_steps(text_, kernels::lower_segment(text_.kernel, s), {});
  }
}

void RowWriter::write_row_loop(size_t index) {
  const plan::Segment& segment = text_.kernel.segments[index];
  const kernels::Body body = kernels::lower_segment(text_.kernel, index);
  const std::vector<StmtId> reduces = kernels::reductions_of(text_.kernel, segment.stmts);
  for (StmtId id : reduces) text_.out.line("{0} r{1} = {0}::start();", text_.state(id), id.index());
  keep_packed(body.slot);
  for (StmtId id : kernels::shared_divisors(text_.kernel, index)) text_.out.line("const cxxi_divisor d{0} = cxxi_divisor::of(v{0});", id.index());
  if (is_persistent(text_.kernel.mapping))
    write_persistent_items(segment, body);
  else
    write_looped_items(text_.kernel.mapping.get<plan::Rows>(), body, reduces);
  block_reduce(reduces);
}

// Narrow values of an earlier row loop stay narrow.
void RowWriter::keep_packed(const kernels::Slot& slot) {
  for (const kernels::Place& place : slot.in) {
    const bool own = std::ranges::find(slot.stmts, place.value) != slot.stmts.end();
    const bool narrow = has_lanes(text_.kernel, slot, place.value) && byte_size(text_.stmt(place.value).dtype) < 4;
    if (place.where == Where::Persistent && narrow && !own) text_.out.line("cxxi_keep_packed(w{});", place.value.index());
  }
}

void RowWriter::declare_position(const kernels::Slot& slot) {
  const bool positions = std::any_of(slot.stmts.begin(), slot.stmts.end(), [&](StmtId id) {
    const auto* reduce = text_.stmt(id).as<loops::Reduce>();
    return reduce && form(reduce->reduction).takes_index();
  });
  if (!positions) return;
  const std::vector<VarId>& row = text_.kernel.mapping.row;
  std::string number = row.empty() ? "0" : text_.variable(row[0]);
  for (size_t d = 1; d < row.size(); ++d) number = fmt::format("({}) * {} + {}", number, text_.extent(row[d]), text_.variable(row[d]));
  text_.out.line("const long long cxxi_position = {};", number);
}

// Of groups that are there; empty: all of them.
std::string RowWriter::item_guard() const {
  const sym::Interval count = sym::bounds(groups(), text_.kernel.assumptions);
  const int64_t room = int64_t{shape_.items} * shape_.threads;
  CXXI_CHECK(room >= count.high, "{}: {} threads with {} items cannot hold {} groups", text_.kernel.name, shape_.threads, shape_.items, count.high);
  const std::string in_row = count.low == count.high ? fmt::format("cxxi_linear < {}u", count.low) : "cxxi_linear < cxxi_groups";
  return all_of({dead_rows_ ? "cxxi_live" : "", room == count.low ? "" : in_row});
}

void RowWriter::write_persistent_items(const plan::Segment& segment, const kernels::Body& body) {
  const std::string guard = item_guard();
  const int items = shape_.items, batch = segment.loads_ahead;
  const FragmentNames names{.item = items == 1 ? "[0]" : "[k]", .group = "[u]", .position = "cxxi_position"};
  const auto write_group = [&](bool loading, auto inside) {
    text_.out.line("const cxxi_uint cxxi_linear = {}{};", shape_.threads > 1 ? "cxxi_lane" : "cxxi_uint(0)",
                   items == 1 ? "" : fmt::format(" + k * {}", shape_.threads));
    text_.open(guard.empty() ? "{" : fmt::format("if ({}) {{", guard));
    write_item(body, loading, inside);
    text_.close();
  };
  if (batch == 0) {
    if (items > 1) text_.out.line("#pragma unroll");
    text_.open(items > 1 ? fmt::format("for (int k = 0; k < {}; ++k) {{", items) : "{");
    write_group(false, [&] { print_steps(text_, body, names); });
    return text_.close();
  }
  // Loads of several items first: they are in flight together.
  const bool batches = batch < items, uneven = batches && items % batch != 0;
  if (batches) text_.out.line("#pragma unroll");
  text_.open(batches ? fmt::format("for (int k0 = 0; k0 < {}; k0 += {}) {{", items, batch) : "{");
  print_fragments(text_, body, names, batch, [&](bool loading, auto inside) {
    text_.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", batch));
    text_.out.line("const int k = {}u;", batches ? "k0 + " : "");
    if (uneven) text_.open(fmt::format("if (k < {}) {{", items));
    write_group(loading, inside);
    if (uneven) text_.close();
    text_.close();
  });
  text_.close();
}

void RowWriter::write_looped_items(const plan::Rows& shape, const kernels::Body& body, const std::vector<StmtId>& reduces) {
  const int unroll = shape.in_flight, threads = shape.threads_per_row;
  const bool even = text_.proven_multiple(groups(), int64_t{threads} * unroll);
  const std::vector<StmtId> in_blocks = kernels::summed_in_blocks(text_.kernel, reduces);
  text_.open("{");
  declare_blocks(text_, body.slot, in_blocks, false);
  text_.out.line("const cxxi_uint cxxi_groups = {};", text_.count_text(text_.kernel.mapping.row, width_));
  text_.open(fmt::format("for (cxxi_uint cxxi_first = {}; {}cxxi_first < cxxi_groups; cxxi_first += {}) {{", threads > 1 ? "cxxi_lane" : "0",
                         dead_rows_ ? "cxxi_live && " : "", threads * unroll));
  print_fragments(text_, body, {.item = "", .group = "[u]", .position = "cxxi_position"}, unroll, [&](bool loading, auto inside) {
    if (unroll > 1) text_.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", unroll));
    text_.out.line("const cxxi_uint cxxi_linear = cxxi_first{};", unroll > 1 ? fmt::format(" + u * {}", threads) : "");
    if (unroll > 1) text_.open(even ? "{" : "if (cxxi_linear < cxxi_groups) {");
    write_item(body, loading, inside);
    for (int opened = unroll > 1 ? 2 : 0; opened > 0; --opened) text_.close();
  });
  put_blocks_aside(text_, in_blocks, "r");
  text_.close();
  for (StmtId id : in_blocks) text_.out.line("cxxi_take_all(r{0}, b{0});", id.index());
  text_.close();
}

void RowWriter::block_reduce(const std::vector<StmtId>& reduces) {
  if (reduces.empty()) return;
  const int threads = shape_.threads;
  const std::string turn = serial_ ? "[cxxi_step & 1]" : "";
  if (threads > 32) {
    for (StmtId id : reduces) {
      // Two serial rows are in progress: threads may write the states of the next one before all have read those of this one.
      text_.out.line("__shared__ {} h{}{}[{}];", text_.state(id), id.index(), serial_ ? "[2]" : "", block_threads(text_.kernel.mapping) / 32);
      text_.out.line("cxxi_share_row<{0}>(r{1}, h{1}{2});", shares_are_equal(id), id.index(), turn);
    }
    text_.out.line("__syncthreads();");
    for (StmtId id : reduces) text_.out.line("cxxi_collect_row<{0}, {1}>(r{2}, h{2}{3});", threads, shares_are_equal(id), id.index(), turn);
  } else if (threads > 1) {
    for (StmtId id : reduces) text_.out.line("cxxi_block_reduce<{}, {}>(r{});", threads, shares_are_equal(id), id.index());
  }
  for (StmtId id : reduces)
    text_.out.line("const {0} v{1} = cxxi_cast<{0}>(r{1}.result<0>());{2}", cuda_type(text_.stmt(id).dtype), id.index(), text_.origin_comment(id));
}

// ---- Rows, one at a time per thread -----------------------------------------------------------------------------

namespace {

void find_row(CudaText& text, const plan::Rows& shape) {
  const std::vector<VarId>& space = text.kernel.mapping.space;
  const int threads = shape.threads_per_row, rows = shape.rows_per_block;
  if (threads > 1) text.out.line("const cxxi_uint cxxi_lane = threadIdx.x % {};", threads);
  if (space.empty() && rows == 1) return;
  const std::string number = rows > 1 ? fmt::format("cxxi_uint({}) * {} + threadIdx.x / {}", text.block(), rows, threads)
                                      : fmt::format("cxxi_uint({})", text.block());
  if (!kernels::has_dead_rows(text.kernel)) {
    text.out.line("const cxxi_uint cxxi_row = {};", number);
  } else {
    // A row past the end takes part in barriers as a copy of the last one that touches nothing.
    text.out.line("const cxxi_uint cxxi_rows = {};", text.count_text(space, 1));
    text.out.line("const cxxi_uint cxxi_place = {};", number);
    text.out.line("const bool cxxi_live = cxxi_place < cxxi_rows;");
    text.out.line("const cxxi_uint cxxi_row = cxxi_live ? cxxi_place : cxxi_rows - 1;");
  }
  text.decode("cxxi_row", space, 1);
}

}  // namespace

void write_threads(CudaText& text, const plan::Rows& shape) {
  RowWriter row(text, {shape.threads_per_row, shape.items_per_thread});
  find_row(text, shape);
  // A persistent row of symbolic length.
  if (shape.persistent && !row.groups().is_constant())
    text.out.line("const cxxi_uint cxxi_groups = {};", text.count_text(text.kernel.mapping.row, text.width()));
  row.declare_persistent_values();
  row.write_segments();
}

}  // namespace cxxinductor::codegen

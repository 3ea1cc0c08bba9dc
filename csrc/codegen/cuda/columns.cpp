// Columns: a block takes a strip of neighbouring columns; threads with the same group of columns share its rows.
#include <algorithm>

#include "codegen/cuda/block_sums.h"
#include "codegen/cuda/body_printer.h"
#include "codegen/cuda/spelling.h"
#include "codegen/cuda/threads.h"
#include "ir/plan/columns.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"

namespace cxxinductor::codegen {
namespace {

class ColumnsWriter {
 public:
  ColumnsWriter(CudaText& text, const plan::Columns& shape) : text_(text), shape_(shape), dead_(kernels::has_dead_rows(text.kernel)) {}

  void write() {
    find_columns();
    for (size_t s = 0; s < text_.kernel.segments.size(); ++s) {
      const kernels::Body body = kernels::lower_segment(text_.kernel, s);
      if (s == 0) text_.declare_lanes(body.slot);
      if (s == 0) declare_shared();
      if (text_.kernel.segments[s].kind == plan::Segment::Kind::RowLoop)
        write_points(body);
      else
        write_per_column(body);
    }
  }

 private:
  void find_columns();
  void declare_shared();
  void write_per_column(const kernels::Body& body);
  void write_points(const kernels::Body& body);
  void declare_states(const kernels::Slot& slot, const std::vector<StmtId>& reduces);
  void join(const kernels::Slot& slot, const std::vector<StmtId>& reduces);
  int groups() const { return shape_.columns_per_block / text_.width(); }

  CudaText& text_;
  const plan::Columns& shape_;
  const bool dead_;
};

void ColumnsWriter::find_columns() {
  const plan::Mapping& mapping = text_.kernel.mapping;
  const VarId across = vector_variable(mapping);
  const int columns = shape_.columns_per_block;
  if (groups() > 1) text_.out.line("const int cxxi_column = threadIdx.x % {};", groups());
  text_.out.line("const cxxi_uint cxxi_lane = threadIdx.x / {};", groups());
  const std::vector<VarId> outer(mapping.space.begin(), mapping.space.end() - 1);
  if (outer.empty()) {
    text_.out.line("const cxxi_index cxxi_strip = cxxi_index({}) * {};", text_.block(), columns);
  } else {
    const std::string count = text_.count_text({across}, columns);
    text_.out.line("const cxxi_index cxxi_strip = cxxi_index({} % {}) * {};", text_.block(), count, columns);
    text_.out.line("const cxxi_uint cxxi_outer = {} / {};", text_.block(), count);
    text_.decode("cxxi_outer", outer, 1);
  }
  const std::string place = fmt::format("cxxi_strip{}", groups() > 1 ? fmt::format(" + cxxi_column * {}", text_.width()) : "");
  if (!dead_) return text_.out.line("const cxxi_index {} = {};", text_.variable(across), place);
  // Columns past the end take part in barriers as copies of the first ones that touch nothing.
  text_.out.line("const bool cxxi_live = {} < {};", place, text_.extent(across));
  text_.out.line("const cxxi_index {} = cxxi_live ? {} : 0;", text_.variable(across), place);
}

void ColumnsWriter::declare_shared() {
  const int64_t shared = plan::columns_shared_bytes(text_.kernel.region, text_.kernel.mapping);
  if (shared > 0) text_.out.line("__shared__ uint4 cxxi_shared[{}];", (shared + 15) / 16);
}

// Values with one name for the rest of the kernel.
void ColumnsWriter::write_per_column(const kernels::Body& body) {
  for (const kernels::Place& place : body.slot.out)
    text_.out.line("{} w{}[{}];", cuda_type(text_.stmt(place.value).dtype), place.value.index(), body.slot.width);
  print_steps(text_, body, {});
}

void ColumnsWriter::declare_states(const kernels::Slot& slot, const std::vector<StmtId>& reduces) {
  for (StmtId id : reduces) {
    const int lanes = has_lanes(text_.kernel, slot, text_.stmt(id).as<loops::Reduce>()->operand) ? slot.width : 1;
    text_.out.line("{} r{}[{}];", text_.state(id), id.index(), lanes);
    text_.out.line("cxxi_accumulator<{}> a{}[{}];", text_.state(id), id.index(), lanes);
  }
}

void ColumnsWriter::write_points(const kernels::Body& body) {
  const std::vector<VarId>& row = text_.kernel.mapping.row;
  const int unroll = shape_.in_flight, threads = shape_.threads_per_row;
  const std::vector<StmtId> reduces = kernels::reductions_of(text_.kernel, body.slot.stmts), in_blocks = kernels::summed_in_blocks(text_.kernel, reduces);
  declare_states(body.slot, reduces);
  text_.open("{");
  declare_blocks(text_, body.slot, in_blocks, true);
  text_.out.line("const cxxi_uint cxxi_points = {};", text_.count_text(row, 1));
  text_.open(fmt::format("for (cxxi_uint cxxi_first = cxxi_lane; {}cxxi_first < cxxi_points; cxxi_first += {}) {{", dead_ ? "cxxi_live && " : "",
                         threads * unroll));
  print_fragments(text_, body, {.item = "", .group = "[u]", .position = "(long long)(cxxi_linear)"}, unroll, [&](bool, auto inside) {
    if (unroll > 1) text_.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", unroll));
    text_.out.line("const cxxi_uint cxxi_linear = cxxi_first{};", unroll > 1 ? fmt::format(" + u * {}", threads) : "");
    if (unroll > 1) text_.open("if (cxxi_linear < cxxi_points) {");
    text_.decode("cxxi_linear", row, 1);
    inside();
    for (int opened = unroll > 1 ? 2 : 0; opened > 0; --opened) text_.close();
  });
  put_blocks_aside(text_, in_blocks, "a");
  text_.close();
  for (StmtId id : reduces) {
    const bool blocks = std::ranges::find(in_blocks, id) != in_blocks.end();
    text_.out.line("cxxi_take_all(r{0}, a{0}{1});", id.index(), blocks ? fmt::format(", b{}", id.index()) : "");
  }
  text_.close();
  join(body.slot, reduces);
}

void ColumnsWriter::join(const kernels::Slot& slot, const std::vector<StmtId>& reduces) {
  for (StmtId id : reduces) {
    if (shape_.threads_per_row > 1) text_.out.line("cxxi_column_reduce<{}, {}>(r{}, cxxi_shared);", shape_.threads_per_row, groups(), id.index());
    const std::string_view type = cuda_type(text_.stmt(id).dtype);
    if (has_lanes(text_.kernel, slot, id)) {
      text_.out.line("{} w{}[{}];", type, id.index(), slot.width);
      text_.out.line("#pragma unroll");
      text_.out.line("for (int e = 0; e < {0}; ++e) w{1}[e] = cxxi_cast<{2}>(r{1}[e].result<0>());", slot.width, id.index(), type);
    } else {
      text_.out.line("const {0} v{1} = cxxi_cast<{0}>(r{1}[0].result<0>());", type, id.index());
    }
  }
}

}  // namespace

void write_threads(CudaText& text, const plan::Columns& shape) { ColumnsWriter(text, shape).write(); }

}  // namespace cxxinductor::codegen

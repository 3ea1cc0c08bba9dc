// Rows: a thread takes one row at a time, whose vectors are dealt out to several states of each reduction.
#include <algorithm>

#include "codegen/cpu/body_printer.h"
#include "codegen/cpu/units.h"
#include "ir/plan/cpu_rows.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"

namespace cxxinductor::codegen {
namespace {

class RowWriter {
 public:
  explicit RowWriter(CpuText& text) : text_(text), row_(text.kernel.mapping.row) {}
  void write_row_loop(const kernels::Body& body);

 private:
  void write_pass();
  void write_vectors();
  void call(int width, int set, int offset);
  void count_updates(bool declare);

  CpuText& text_;
  const std::vector<VarId>& row_;
  std::vector<StmtId> in_blocks_;  // of the row loop
  int sets_ = 1;
};

void RowWriter::write_row_loop(const kernels::Body& body) {
  const std::vector<StmtId> reduces = kernels::reductions_of(text_.kernel, body.slot.stmts);
  sets_ = reduces.empty() ? 1 : plan::sets_of_states(text_.kernel.mapping);
  in_blocks_ = kernels::summed_in_blocks(text_.kernel, reduces);
  text_.declare_states(reduces, "row_state", sets_ > 1 ? sets_ + 1 : 1);
  text_.open("{");
  std::string parameters = ", auto cxxi_set, index cxxi_element";
  for (VarId v : row_) parameters += ", index " + text_.variable(v);
  text_.declare_body(parameters, body);
  text_.out.line("index cxxi_first = 0;");
  count_updates(true);
  for (size_t d = 0; d + 1 < row_.size(); ++d)
    text_.open(fmt::format("for (index {0} = 0; {0} < {1}; ++{0}) {{", text_.variable(row_[d]), text_.extent(row_[d])));
  write_pass();
  text_.out.line("cxxi_first += cxxi_length;");
  count_updates(false);
  for (size_t d = 0; d + 1 < row_.size(); ++d) text_.close();
  text_.close();
  for (StmtId id : reduces) {
    text_.out.line("const auto t{0} = r{0}.joined();", id.index());
    text_.out.line("const auto v{0} = t{0}.result<0>();", id.index());
  }
}

// Passes are too short to put states aside in each of them.
void RowWriter::count_updates(bool declare) {
  if (row_.size() < 2 || in_blocks_.empty()) return;
  if (declare) return text_.out.line("index cxxi_updates = 0;");
  text_.out.line("cxxi_updates += {};", text_.expression(plan::updates_of_pass(text_.kernel.mapping, text_.kernel.region)));
  text_.put_blocks_aside(in_blocks_, fmt::format("cxxi_updates >= {}", plan::updates_of_block));
  text_.out.line("if (cxxi_updates >= {0}) cxxi_updates = 0;", plan::updates_of_block);
}

void RowWriter::call(int width, int set, int offset) {
  const std::string at = offset == 0 ? "cxxi_at" : fmt::format("cxxi_at + {}", offset);
  std::string arguments;
  for (size_t d = 0; d + 1 < row_.size(); ++d) arguments += ", " + text_.variable(row_[d]);
  if (!row_.empty()) arguments += ", " + at;
  text_.call_body(fmt::format("cxxi::number<{}>{{}}, cxxi::number<{}>{{}}, cxxi_first + {}{}", width, set, at, arguments));
}

// Along the last variable of a row.
void RowWriter::write_pass() {
  text_.out.line("const index cxxi_length = {};", row_.empty() ? "1" : text_.extent(row_.back()));
  text_.out.line("index cxxi_at = 0;");
  if (text_.width() > 1) write_vectors();
  text_.open("for (; cxxi_at < cxxi_length; ++cxxi_at) {");
  call(1, 0, 0);
  if (text_.width() > 1)
    text_.out.line("CXXI_KEEP_SCALAR;");
  else
    text_.put_blocks_aside(in_blocks_, fmt::format("(cxxi_at & {0}) == {0}", plan::updates_of_block - 1));
  text_.close();
}

void RowWriter::write_vectors() {
  const int width = text_.width(), step = width * sets_;
  if (!in_blocks_.empty()) {
    text_.open(fmt::format("while (cxxi_at + {} <= cxxi_length) {{", step));
    text_.out.line("const index cxxi_stop = cxxi_at + {0} < cxxi_length ? cxxi_at + {0} : cxxi_length;", step * plan::updates_of_block);
  }
  text_.open(fmt::format("for (; cxxi_at + {0} <= {1}; cxxi_at += {0}) {{", step, in_blocks_.empty() ? "cxxi_length" : "cxxi_stop"));
  for (int set = 0; set < sets_; ++set) call(width, set, set * width);
  text_.close();
  if (!in_blocks_.empty()) {
    text_.put_blocks_aside(in_blocks_, fmt::format("cxxi_at + {} <= cxxi_length", step));
    text_.close();
  }
  if (sets_ == 1) return;
  text_.open(fmt::format("for (; cxxi_at + {0} <= cxxi_length; cxxi_at += {0}) {{", width));
  call(width, sets_, 0);  // apart from the long chains
  text_.close();
}

}  // namespace

void write_units(CpuText& text, const plan::CpuRows&) {
  const plan::Kernel& kernel = text.kernel;
  sym::Expr length = 1;
  for (VarId v : kernel.mapping.row) length = length * kernel.region.vars[v].extent;
  for (size_t s = 0; s < kernel.region.body.size(); ++s)
    if (kernel.memory_spaces[StmtId(s)] == plan::MemorySpace::Persistent) text.declare_array(StmtId(s), std::max<int64_t>(length.constant(), 1));
  text.open("for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {");
  text.decode("cxxi_unit", kernel.mapping.space);
  RowWriter row(text);
  for (size_t s = 0; s < kernel.segments.size(); ++s) {
    const kernels::Body body = kernels::lower_segment(kernel, s);
    if (kernel.segments[s].kind == plan::Segment::Kind::RowLoop)
      row.write_row_loop(body);
    else
      print_steps(text, body, "return");
  }
  text.close();
}

}  // namespace cxxinductor::codegen

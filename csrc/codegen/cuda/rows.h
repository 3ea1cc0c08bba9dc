// The segments of a row, for blocks that have one row at a time per thread and those that walk over rows. Internal to codegen/cuda.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/body_printer.h"
#include "codegen/cuda/cuda_text.h"

namespace cxxinductor::codegen {

// The threads of one row: how many there are, and the groups that each of them holds where rows are in registers.
struct RowThreads {
  int threads = 1, items = 1;
};

class RowWriter {
 public:
  RowWriter(CudaText& text, RowThreads shape);
  void declare_persistent_values();
  void write_segments();  // without the epilogue
  sym::Expr groups() const;  // of a row
  // What a thread does for one of its groups, cxxi_linear.
  template <class Inside>
  void write_item(const kernels::Body& body, bool loading, Inside inside) {
    text_.decode("cxxi_linear", text_.kernel.mapping.row, body.slot.width);
    text_.declare_lanes(body.slot);
    if (!loading) declare_position(body.slot);
    inside();
  }

 private:
  void write_row_loop(size_t segment);
  void keep_packed(const kernels::Slot& slot);
  void write_persistent_items(const plan::Segment& segment, const kernels::Body& body);
  std::string item_guard() const;
  void write_looped_items(const plan::Rows& shape, const kernels::Body& body, const std::vector<StmtId>& reduces);
  void declare_position(const kernels::Slot& slot);
  void block_reduce(const std::vector<StmtId>& reduces);
  bool shares_are_equal(StmtId reduce) const;
  bool whole_groups() const;

  CudaText& text_;
  const RowThreads shape_;
  const int width_;
  const bool dead_rows_;
  const bool serial_;
};

}  // namespace cxxinductor::codegen

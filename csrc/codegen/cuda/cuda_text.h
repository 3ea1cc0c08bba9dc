// One kernel's text for CUDA: names, expressions and the numbers of threads. Internal to codegen/cuda.
//
// Names in the text: x_<variable>, a_<symbol> (the argument) and s_<symbol> (in the variant's index width),
// p<parameter>, v<statement>; g<statement> is a group in memory's form (a wide load or store), w<statement> a value
// kept across row loops, q<statement> the operands of a reduction in one group, r<statement> its state,
// a<statement> its accumulator (columns), s<statement> its states in shared memory, b<statement> its blocks' total,
// d<statement> a row's value as a divisor, l<statement> a value in all lanes of a group, n<statement> a load of the next row,
// t<statement> a tile in shared memory, m<statement> a thread's squares of it, z<statement> random words of four lanes. What a
// template declares itself starts with cxxi_.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/origin.h"
#include "kernels/body/body.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

using plan::StmtId;
using plan::VarId;

class CudaText {
 public:
  CudaText(const plan::Kernel& for_kernel, plan::Variant for_variant, const OriginTable& origins_of_statements, TextWriter& writer)
      : kernel(for_kernel), variant(for_variant), origins(origins_of_statements), out(writer) {}

  const plan::Kernel& kernel;
  const plan::Variant variant;
  const OriginTable& origins;
  TextWriter& out;

  const loops::Stmt& stmt(StmtId id) const { return kernel.region.body[id]; }
  int width() const { return vector_variable(kernel.mapping).valid() ? kernel.mapping.vector_width : 1; }  // of the mapping's groups
  // Number of the block among those of its launch.
  std::string_view block() const { return kernel.max_grouped > 1 ? "cxxi_block" : "blockIdx.x"; }
  std::string variable(VarId v) const;
  std::string extent(VarId v) const;
  std::string integer(int64_t value) const;
  // C text of e in the variant's index width, or in 64 bits; lane: the variable that moves with the loop over lanes around it, if any.
  std::string expression(sym::Expr e, VarId lane = {}) const;
  std::string wide_expression(sym::Expr e, VarId lane = {}) const;
  std::string address(StmtId id) const;
  // Type of what holds a value of the statement: for each lane, where it has lanes.
  std::string storage(const kernels::Slot& slot, StmtId id) const;
  std::string state(StmtId reduce) const;  // type of its states
  std::string origin_comment(StmtId id) const;
  bool proven_multiple(sym::Expr e, int64_t divisor) const;

  // Points of vars, groups of `width` of the last one being one point.
  sym::Expr group_count(const std::vector<VarId>& vars, int width) const;
  std::string count_text(const std::vector<VarId>& vars, int width) const;
  // Declares x_ of `vars` (row-major) from a number; the last one is multiplied by `width`.
  void decode(std::string_view number, const std::vector<VarId>& vars, int width);
  // Declares the count of elements of a fragment, where some may not exist.
  void declare_lanes(const kernels::Slot& slot);

  void open(std::string_view head);
  void open_unrolled(std::string_view head);
  void close(std::string_view foot = "}");

 private:
  std::string spelled(sym::Expr e, VarId lane, bool wide) const;
};

// Conditions joined by &&, empty ones left out.
std::string all_of(const std::vector<std::string>& conditions);

}  // namespace cxxinductor::codegen

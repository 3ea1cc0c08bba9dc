// One kernel's text for CUDA: names, types, expressions and declarations of coordinates. Internal to codegen/cuda.
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
#include <vector>

#include "ir/origin.h"
#include "kernels/instance.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

using plan::StmtId;
using plan::VarId;

class CudaText {
 public:
  CudaText(const plan::Kernel& for_kernel, plan::Variant for_variant, const OriginTable& origins_of_statements)
      : kernel(for_kernel), variant(for_variant), origins(origins_of_statements) {}

  const plan::Kernel& kernel;
  const plan::Variant variant;
  const OriginTable& origins;

  const loops::Stmt& stmt(StmtId id) const { return kernel.region.body[id]; }
  std::string variable(VarId v) const;
  std::string extent(VarId v) const { return expression(kernel.region.vars[v].extent); }
  // C text of e in the variant's index width, or in 64 bits; lane: the variable that moves with the loop over lanes around it, if any.
  std::string expression(sym::Expr e, VarId lane = {}) const { return spelled(e, lane, false); }
  std::string wide_expression(sym::Expr e, VarId lane = {}) const { return spelled(e, lane, true); }
  std::string address(StmtId id) const;
  std::string fragment_type(kernels::FragmentType of) const;
  std::string state(StmtId reduce) const;  // type of its states
  std::string origin_comment(StmtId id) const;
  std::string coordinates(const kernels::Coordinates& of) const;
  std::string lanes(kernels::Lanes of) const;
  std::string point_number(const std::vector<VarId>& vars) const;

 private:
  std::string spelled(sym::Expr e, VarId lane, bool wide) const;
};

// The lines of a body's steps (body_printer.cpp).
std::string print_steps(const CudaText& text, const kernels::Steps& steps);
// The whole kernel, from the template of its instance (render_kernel.cpp).
std::string render_kernel(const CudaText& text);

// States of reductions whose rows name no struct of kernels_templates/cuda have structs like those of cuda/reduce.cuh, made of the rows'
// statements (reduction_state.cpp). cuda_state: "cxxi_sum<float>"; operand: the dtype of the elements.
std::string cuda_state(Reduction reduction, DType operand);
// Definitions of the generated structs that the kernels use. They follow cuda/join.cuh in a unit.
void emit_cuda_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out);

}  // namespace cxxinductor::codegen

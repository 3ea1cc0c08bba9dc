// One kernel's text for the CPU: names, types, expressions and declarations of coordinates. Internal to codegen/cpu.
//
// A body is a generic lambda over the number of lanes, instantiated for vectors and for single elements.
// Names in the text: x_<variable>, s_<symbol>, p<parameter>, v<statement>; w<statement> is the array of a Persistent
// value, of a Row value of a strip or of a Staged load, r<statement> the state of a reduction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/origin.h"
#include "kernels/instance.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

using plan::StmtId;
using plan::VarId;

class CpuText {
 public:
  CpuText(const plan::Kernel& for_kernel, const OriginTable& origins_of_statements) : kernel(for_kernel), origins(origins_of_statements) {}

  const plan::Kernel& kernel;
  const OriginTable& origins;

  const loops::Stmt& stmt(StmtId id) const { return kernel.region.body[id]; }
  std::string variable(VarId v) const { return "x_" + kernel.region.vars[v].name; }
  std::string extent(VarId v) const { return expression(kernel.region.vars[v].extent); }
  std::string expression(sym::Expr e) const { return spelled(e, nullptr, {}); }
  // Inside a lambda over the lanes of a fragment, whose number is `lane`.
  std::string lane_expression(sym::Expr e, const kernels::Slot& slot, std::string_view lane) const { return spelled(e, &slot, lane); }
  // Of a reduction: the struct of its states and the dtype of its operand, template arguments of what holds states.
  std::string state(StmtId reduce) const;
  std::string coordinates(const kernels::Coordinates& of) const;

 private:
  std::string spelled(sym::Expr e, const kernels::Slot* slot, std::string_view lane) const;
};

// The lines of a body's steps (body_printer.cpp).
std::string print_steps(const CpuText& text, const kernels::Steps& steps);
// The whole kernel, from the template of its instance (render_kernel.cpp).
std::string render_kernel(const CpuText& text);

// States of reductions whose rows name no struct of kernels_templates/cpu have structs like those of cpu/reduce.h, made of the rows'
// statements (reduction_state.cpp). cpu_state: "cxxi::sum", a template over dtype and lanes. long_positions: the reduced space has more
// points than an int counts.
std::string cpu_state(Reduction reduction, DType operand, bool long_positions);
// Definitions of the generated structs that the kernels use. They follow the templates of a unit.
void emit_cpu_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out);

}  // namespace cxxinductor::codegen

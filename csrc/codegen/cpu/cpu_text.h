// One kernel's text for the CPU: names, expressions and loops. Internal to codegen/cpu.
//
// A body is a generic lambda over the number of lanes, instantiated for vectors and for single elements.
// Names in the text: x_<variable>, s_<symbol>, p<parameter>, v<statement>; w<statement> is the array of a Persistent
// value, of a Row value of a strip or of a Staged load, r<statement> the state of a reduction.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/origin.h"
#include "kernels/body/body.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

using plan::StmtId;
using plan::VarId;

class CpuText {
 public:
  CpuText(const plan::Kernel& for_kernel, const OriginTable& origins_of_statements, TextWriter& writer)
      : kernel(for_kernel), origins(origins_of_statements), out(writer) {}

  const plan::Kernel& kernel;
  const OriginTable& origins;
  TextWriter& out;
  bool marked = false;  // a #line is in force

  const loops::Stmt& stmt(StmtId id) const { return kernel.region.body[id]; }
  int width() const { return vector_variable(kernel.mapping).valid() ? kernel.mapping.vector_width : 1; }
  std::string variable(VarId v) const { return "x_" + kernel.region.vars[v].name; }
  std::string extent(VarId v) const { return expression(kernel.region.vars[v].extent); }
  std::string expression(sym::Expr e) const;
  // Inside a lambda over the lanes of a fragment, whose number is `lane`.
  std::string lane_expression(sym::Expr e, const kernels::Slot& slot, std::string_view lane) const;

  void open(std::string_view head);
  void close();
  // Declares variables from a row-major point number over them.
  void decode(std::string_view number, std::span<const VarId> vars);
  // Arrays of values: `count` elements for the statement.
  void declare_array(StmtId id, int64_t count);
  // parameters: of the lambda, after the number of lanes.
  void declare_body(std::string_view parameters, const kernels::Body& body);
  void call_body(std::string_view arguments);
  // Calls the body from cxxi_at to the end: vectors, then what is left of one, element by element.
  void write_vector_loop(std::string_view end, std::string_view arguments);

  // States of reductions, of a template of kernels_templates/cpu/reduce.h.
  void declare_states(const std::vector<StmtId>& reduces, std::string_view kind, int count);
  void put_blocks_aside(const std::vector<StmtId>& in_blocks, std::string_view condition);

 private:
  std::string spelled(sym::Expr e, const kernels::Slot* slot, std::string_view lane) const;
  std::string reduction_type(const loops::Reduce& reduce) const;
};

}  // namespace cxxinductor::codegen

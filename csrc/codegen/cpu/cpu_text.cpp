#include "codegen/cpu/cpu_text.h"

#include "codegen/cpu/spelling.h"
#include "codegen/spelling.h"
#include "ir/loops/stmt_properties.h"
#include "sym/print_c.h"

namespace cxxinductor::codegen {

std::string CpuText::spelled(sym::Expr e, const kernels::Slot* slot, std::string_view lane) const {
  sym::CSpelling spelling;
  spelling.integer_suffix = "LL";
  spelling.symbol = [&](std::string_view name) -> std::string {
    if (const StmtId id = loops::statement_of_symbol(name); id.valid())
      return slot && has_lanes(kernel, *slot, id) ? fmt::format("cxxi::lane({}, {})", value_name(id), lane) : value_name(id);
    for (size_t v = 0; v < kernel.region.vars.size(); ++v) {
      if (kernel.region.vars[VarId(v)].name != name) continue;
      return slot && VarId(v) == slot->vector_var ? fmt::format("({} + {})", variable(VarId(v)), lane) : variable(VarId(v));
    }
    return "s_" + identifier(name);
  };
  return sym::to_c(e, kernel.assumptions, spelling);
}

std::string CpuText::state(StmtId reduce) const {
  const loops::RowState state = row_state(stmt(reduce)).value();
  const bool long_positions = form(state.reduction).takes_index() && !kernel.always_index32;
  const DType operand = stmt(state.operand).dtype;
  return fmt::format("{}, {}", cpu_state(state.reduction, operand, long_positions), cpu_dtype_tag(operand));
}

std::string CpuText::coordinates(const kernels::Coordinates& of) const {
  if (of.vars.empty()) return "";
  TextWriter out;
  out.line("index cxxi_rest = {};", of.number);
  for (size_t d = of.vars.size(); d-- > 1;) {
    out.line("index {} = cxxi_rest % {};", variable(of.vars[d]), extent(of.vars[d]));
    out.line("cxxi_rest /= {};", extent(of.vars[d]));
  }
  out.line("index {} = cxxi_rest;", variable(of.vars[0]));
  return std::move(out).take();
}

}  // namespace cxxinductor::codegen

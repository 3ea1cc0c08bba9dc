#include "codegen/cpu/cpu_text.h"

#include <algorithm>

#include "codegen/cpu/body_printer.h"
#include "codegen/cpu/reduction_state.h"
#include "codegen/cpu/spelling.h"
#include "codegen/spelling.h"
#include "kernels/body/slots.h"
#include "sym/print_c.h"

namespace cxxinductor::codegen {

std::string CpuText::expression(sym::Expr e) const { return spelled(e, nullptr, {}); }

std::string CpuText::lane_expression(sym::Expr e, const kernels::Slot& slot, std::string_view lane) const { return spelled(e, &slot, lane); }

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

void CpuText::open(std::string_view head) {
  out.raw_line(head);
  out.indent();
}

void CpuText::close() {
  out.dedent();
  out.raw_line("}");
}

void CpuText::decode(std::string_view number, std::span<const VarId> vars) {
  if (vars.empty()) return;
  out.line("index cxxi_rest = {};", number);
  for (size_t d = vars.size(); d-- > 0;) {
    if (d == 0) {
      out.line("index {} = cxxi_rest;", variable(vars[d]));
    } else {
      out.line("index {} = cxxi_rest % {};", variable(vars[d]), extent(vars[d]));
      out.line("cxxi_rest /= {};", extent(vars[d]));
    }
  }
}

void CpuText::declare_array(StmtId id, int64_t count) {
  out.line("alignas(64) {}::element w{}[{}];", cpu_dtype_tag(stmt(id).dtype), id.index(), count);
}

void CpuText::declare_body(std::string_view parameters, const kernels::Body& body) {
  open(fmt::format("const auto body = [&](auto cxxi_lanes{}) __attribute__((always_inline)) {{", parameters));
  out.line("constexpr int L = decltype(cxxi_lanes)::value;");
  print_steps(*this, body, "return false");
  if (marked) out.line("#line 1 \"{}\"", kernel.name);
  marked = false;
  if (kernels::has_checks(kernel)) out.line("return true;");
  out.dedent();
  out.raw_line("};");
}

void CpuText::call_body(std::string_view arguments) {
  if (kernels::has_checks(kernel)) {
    out.line("if (!body({})) return;  // a check failed: the record says which", arguments);
  } else {
    out.line("body({});", arguments);
  }
}

void CpuText::write_vector_loop(std::string_view end, std::string_view arguments) {
  if (width() > 1) {
    open(fmt::format("for (; cxxi_at + {0} <= {1}; cxxi_at += {0}) {{", width(), end));
    call_body(fmt::format("cxxi::number<{}>{{}}, {}", width(), arguments));
    close();
  }
  open(fmt::format("for (; cxxi_at < {}; ++cxxi_at) {{", end));
  call_body(fmt::format("cxxi::number<1>{{}}, {}", arguments));
  if (width() > 1) out.line("CXXI_KEEP_SCALAR;");
  close();
}

std::string CpuText::reduction_type(const loops::Reduce& reduce) const {
  const bool long_positions = form(reduce.reduction).takes_index() && !kernel.always_index32;
  const DType operand = stmt(reduce.operand).dtype;
  return fmt::format("{}, {}", cpu_state(reduce.reduction, operand, long_positions), cpu_dtype_tag(operand));
}

void CpuText::declare_states(const std::vector<StmtId>& reduces, std::string_view kind, int count) {
  for (StmtId id : reduces) {
    const bool blocks = std::ranges::binary_search(kernel.in_blocks, id);
    out.line("cxxi::{}{}<{}, {}, {}> r{};", blocks ? "long_" : "", kind, reduction_type(*stmt(id).as<loops::Reduce>()), width(), count, id.index());
  }
}

void CpuText::put_blocks_aside(const std::vector<StmtId>& in_blocks, std::string_view condition) {
  if (in_blocks.empty()) return;
  open(fmt::format("if ({}) {{", condition));
  for (StmtId id : in_blocks) out.line("r{}.put_aside({});", id.index(), is_columns(kernel.mapping) ? "cxxi_strip_end - cxxi_strip" : "");
  close();
}

}  // namespace cxxinductor::codegen

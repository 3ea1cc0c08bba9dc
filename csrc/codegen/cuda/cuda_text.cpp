#include "codegen/cuda/cuda_text.h"

#include "codegen/cuda/reduction_state.h"
#include "codegen/cuda/spelling.h"
#include "codegen/spelling.h"
#include "sym/print_c.h"

namespace cxxinductor::codegen {

std::string CudaText::variable(VarId v) const { return "x_" + identifier(kernel.region.vars[v].name); }

std::string CudaText::extent(VarId v) const { return expression(kernel.region.vars[v].extent); }

std::string CudaText::integer(int64_t value) const { return fmt::format("{}{}", value, variant.index64 ? "LL" : ""); }

std::string CudaText::expression(sym::Expr e, VarId lane) const { return spelled(e, lane, false); }

std::string CudaText::wide_expression(sym::Expr e, VarId lane) const { return spelled(e, lane, true); }

std::string CudaText::spelled(sym::Expr e, VarId lane, bool wide) const {
  sym::CSpelling spelling;
  spelling.integer_suffix = wide || variant.index64 ? "LL" : "";
  spelling.symbol = [&](std::string_view name) -> std::string {
    if (const StmtId id = loops::statement_of_symbol(name); id.valid()) {
      const DType exact = wide || variant.index64 ? DType::I64 : DType::I32;
      return stmt(id).dtype == exact ? value_name(id) : fmt::format("{}({})", wide ? "(long long)" : "cxxi_index", value_name(id));
    }
    for (size_t v = 0; v < kernel.region.vars.size(); ++v) {
      if (kernel.region.vars[VarId(v)].name != name) continue;
      const std::string moved = variable(VarId(v)) + (VarId(v) == lane ? " + e" : "");
      return wide ? fmt::format("(long long)({})", moved) : VarId(v) == lane ? fmt::format("({})", moved) : moved;
    }
    return (wide ? "a_" : "s_") + identifier(name);
  };
  return sym::to_c(e, kernel.assumptions, spelling);
}

std::string CudaText::address(StmtId id) const {
  const auto* load = stmt(id).as<loops::Load>();
  const loops::BufferId buffer = load ? load->buffer : stmt(id).as<loops::Store>()->buffer;
  const sym::Expr offset = kernel.offsets[id];
  if (offset.is_constant(0)) return fmt::format("p{}", buffer.index());
  return fmt::format("p{} + {}", buffer.index(), expression(offset));
}

std::string CudaText::storage(const kernels::Slot& slot, StmtId id) const {
  const std::string_view type = cuda_type(stmt(id).dtype);
  return has_lanes(kernel, slot, id) ? fmt::format("cxxi_group<{}, {}>", type, slot.width) : std::string(type);
}

std::string CudaText::state(StmtId reduce) const {
  const auto& reduction = *stmt(reduce).as<loops::Reduce>();
  return cuda_state(reduction.reduction, stmt(reduction.operand).dtype);
}

std::string CudaText::origin_comment(StmtId id) const {
  const OriginId origin = stmt(id).origin;
  if (!origin.valid() || !origins.contains(origin) || origins[origin].call.empty()) return "";
  return "  // " + one_line(origins[origin].call);
}

bool CudaText::proven_multiple(sym::Expr e, int64_t divisor) const { return sym::prove_divides(divisor, e, kernel.assumptions); }

sym::Expr CudaText::group_count(const std::vector<VarId>& vars, int width) const {
  return sym::simplify(plan::groups_of(kernel.region, vars, width), kernel.assumptions);
}

std::string CudaText::count_text(const std::vector<VarId>& vars, int width) const {
  return fmt::format("cxxi_uint({})", expression(group_count(vars, width)));
}

void CudaText::decode(std::string_view number, const std::vector<VarId>& vars, int width) {
  if (vars.empty()) return;
  std::string rest(number);
  for (size_t d = vars.size(); d-- > 0;) {
    const bool last = d + 1 == vars.size();
    const std::string times = last && width > 1 ? fmt::format(" * {}", width) : "";
    if (d == 0) {
      out.line("const cxxi_index {} = cxxi_index({}){};", variable(vars[0]), rest, times);
      break;
    }
    sym::Expr size = kernel.region.vars[vars[d]].extent;
    if (last) size = sym::simplify(sym::ceil_div(size, width), kernel.assumptions);
    const std::string size_text = fmt::format("cxxi_uint({})", expression(size));
    out.line("const cxxi_index {} = cxxi_index({} % {}){};", variable(vars[d]), rest, size_text, times);
    const std::string name = fmt::format("{}_{}", number, d);
    out.line("const cxxi_uint {} = {} / {};", name, rest, size_text);
    rest = name;
  }
}

void CudaText::declare_lanes(const kernels::Slot& slot) {
  if (!slot.masked_tail) return;
  out.line("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(slot.vector_var), variable(slot.vector_var), integer(slot.width));
}

void CudaText::open(std::string_view head) {
  out.raw_line(head);
  out.indent();
}

void CudaText::open_unrolled(std::string_view head) {
  out.raw_line("#pragma unroll");
  open(head);
}

void CudaText::close(std::string_view foot) {
  out.dedent();
  out.raw_line(foot);
}

std::string all_of(const std::vector<std::string>& conditions) {
  std::string text;
  for (const std::string& condition : conditions)
    if (!condition.empty()) text += (text.empty() ? "" : " && ") + condition;
  return text;
}

}  // namespace cxxinductor::codegen

#include "codegen/cuda/cuda_text.h"

#include "codegen/cuda/spelling.h"
#include "codegen/spelling.h"
#include "ir/loops/stmt_properties.h"
#include "sym/print_c.h"

namespace cxxinductor::codegen {

std::string CudaText::variable(VarId v) const { return "x_" + identifier(kernel.region.vars[v].name); }

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

std::string CudaText::fragment_type(kernels::FragmentType of) const {
  const std::string_view type = cuda_type(stmt(of.value).dtype);
  return of.width > 1 ? fmt::format("cxxi_group<{}, {}>", type, of.width) : std::string(type);
}

std::string CudaText::state(StmtId reduce) const {
  const loops::RowState state = row_state(stmt(reduce)).value();
  return cuda_state(state.reduction, stmt(state.operand).dtype);
}

std::string CudaText::origin_comment(StmtId id) const {
  const OriginId origin = stmt(id).origin;
  if (!origin.valid() || !origins.contains(origin) || origins[origin].call.empty()) return "";
  return "  // " + one_line(origins[origin].call);
}

std::string CudaText::coordinates(const kernels::Coordinates& of) const {
  TextWriter out;
  std::string rest(of.number);
  for (size_t d = of.vars.size(); d-- > 0;) {
    const bool last = d + 1 == of.vars.size();
    const std::string times = last && of.width > 1 ? fmt::format(" * {}", of.width) : "";
    if (d == 0) {
      out.line("const cxxi_index {} = cxxi_index({}){};", variable(of.vars[0]), rest, times);
      break;
    }
    sym::Expr size = kernel.region.vars[of.vars[d]].extent;
    if (last) size = sym::simplify(sym::ceil_div(size, of.width), kernel.assumptions);
    const std::string size_text = fmt::format("cxxi_uint({})", expression(size));
    out.line("const cxxi_index {} = cxxi_index({} % {}){};", variable(of.vars[d]), rest, size_text, times);
    const std::string name = fmt::format("{}_{}", of.number, d);
    out.line("const cxxi_uint {} = {} / {};", name, rest, size_text);
    rest = name;
  }
  return std::move(out).take();
}

std::string CudaText::lanes(kernels::Lanes of) const {
  if (!of.masked_tail) return "";
  return fmt::format("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(of.along), variable(of.along), expression(of.width));
}

std::string CudaText::point_number(const std::vector<VarId>& vars) const {
  std::string number = vars.empty() ? "0" : variable(vars[0]);
  for (size_t d = 1; d < vars.size(); ++d) number = fmt::format("({}) * {} + {}", number, extent(vars[d]), variable(vars[d]));
  return number;
}

}  // namespace cxxinductor::codegen

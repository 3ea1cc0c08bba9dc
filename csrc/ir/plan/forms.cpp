#include "ir/plan/forms.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"

namespace cxxinductor::plan {

bool shares_divisor(const Kernel& kernel, StmtId id) {
  const loops::Stmt& stmt = kernel.region.body[id];
  const auto* apply = stmt.as<loops::Apply>();
  if (!apply || apply->op != ScalarOp::Div || stmt.dtype != DType::F32) return false;
  return is_rows(kernel.mapping) && kernel.memory_spaces[id] != MemorySpace::Row && kernel.memory_spaces[apply->operands[1]] == MemorySpace::Row;
}

bool rounds_by_order(const loops::Region& region, StmtId id) {
  const auto state = row_state(region.body[id]);
  return state && is_known_after_row(region.body[id]) && info(state->reduction).order_matters && is_float(region.body[state->operand].dtype);
}

bool philox_vec4(const Kernel& kernel, StmtId id, VarId vector_var, int width) {
  const auto has_lanes = [&](StmtId value) { return kernel.region.body[value].vars.contains(vector_var); };
  const auto* draw = kernel.region.body[id].as<loops::Apply>();
  if (!draw || draw->op != ScalarOp::Philox || !vector_var.valid() || !has_lanes(id) || width % 4 != 0) return false;
  for (size_t i = 0; i < draw->operands.size(); ++i)
    if (i != 2 && has_lanes(draw->operands[i])) return false;
  const auto* position = kernel.region.body[draw->operands[2]].as<loops::Index>();
  if (!position) return false;
  const sym::Expr moves = kernel.region.symbol(vector_var);
  const sym::Expr start = sym::simplify(position->value - moves, kernel.assumptions);
  const std::vector<sym::Expr>& symbols = start.free_symbols();
  return std::find(symbols.begin(), symbols.end(), moves) == symbols.end() && sym::prove_divides(4, start, kernel.assumptions);
}

}  // namespace cxxinductor::plan

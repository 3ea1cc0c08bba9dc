#include "ir/plan/columns.h"

#include <algorithm>

namespace cxxinductor::plan {

int64_t columns_shared_bytes(const loops::Region& region, const Mapping& mapping) {
  const VarId vector_var = vector_variable(mapping);
  int64_t bytes = 0;
  for (const loops::Stmt& stmt : region.body) {
    const auto* reduce = stmt.as<loops::Reduce>();
    if (!reduce) continue;
    const loops::Stmt& operand = region.body[reduce->operand];
    const bool lanes = vector_var.valid() && operand.vars.contains(vector_var);
    const int64_t states = int64_t{block_threads(mapping)} * (lanes ? mapping.vector_width : 1);
    bytes = std::max(bytes, states * state_bytes(reduce->reduction, operand.dtype));
  }
  return bytes;
}

}  // namespace cxxinductor::plan

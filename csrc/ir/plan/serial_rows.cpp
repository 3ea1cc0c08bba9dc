#include "ir/plan/serial_rows.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"
#include "support/error.h"
#include "sym/integer.h"

namespace cxxinductor::plan {

DType state_dtype(const loops::Region& region, const loops::Reduce& reduce) {
  return compute_type(form(reduce.reduction).state.front().dtype(region.body[reduce.operand].dtype));
}

int64_t shared_states_bytes(int64_t groups, int vector_width, DType state) { return sym::ceil_quotient(groups * vector_width * byte_size(state), 16) * 16; }

int64_t groups_of_row(const Kernel& kernel) {
  const sym::Expr groups = sym::simplify(groups_of(kernel.region, kernel.mapping.row, kernel.mapping.vector_width), kernel.assumptions);
  CXXI_CHECK(groups.is_constant(), "{}: a persistent row has no constant length", kernel.name);
  return groups.constant();
}

int64_t serial_shared_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (size_t s = 0; s < kernel.region.body.size(); ++s) {
    if (kernel.memory_spaces[StmtId(s)] != MemorySpace::Shared) continue;
    const DType state = state_dtype(kernel.region, *kernel.region.body[StmtId(s)].as<loops::Reduce>());
    bytes += shared_states_bytes(groups_of_row(kernel), kernel.mapping.vector_width, state);
  }
  return bytes;
}

bool is_across(const Kernel& kernel, StmtId id) {
  const VarId serial = serial_variable(kernel.mapping);
  const loops::Stmt& stmt = kernel.region.body[id];
  const auto state = row_state(stmt);
  return state && is_known_after_row(stmt) && serial.valid() && state->over == loops::VarSet::of(serial);
}

JoinedRows joined_rows(const Kernel& kernel) {
  constexpr int64_t most_bytes = 32 * 1024;  // at a time; kernels have other arrays in shared memory beside them
  const auto& shape = kernel.mapping.get<SerialRows>();
  int64_t state_bytes = 0;
  for (size_t s = 0; s < kernel.region.body.size(); ++s)
    if (is_across(kernel, StmtId(s)))
      state_bytes = std::max<int64_t>(state_bytes, byte_size(state_dtype(kernel.region, *kernel.region.body[StmtId(s)].as<loops::Reduce>())));
  const int64_t row_bytes = state_bytes * shape.items_per_thread * shape.threads_per_row * kernel.mapping.vector_width;
  const int64_t rows = std::clamp<int64_t>(most_bytes / std::max<int64_t>(row_bytes, 1), 1, shape.rows_per_block);
  return {rows, rows * row_bytes};
}

}  // namespace cxxinductor::plan

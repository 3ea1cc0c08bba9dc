#include "ir/plan/cpu_rows.h"

namespace cxxinductor::plan {

int64_t persistent_bytes(const loops::Region& region, const IdVector<StmtId, MemorySpace>& memory_spaces, int64_t length) {
  int64_t bytes = 0;
  for (size_t s = 0; s < region.body.size(); ++s)
    if (memory_spaces[StmtId(s)] == MemorySpace::Persistent) bytes += length * byte_size(region.body[StmtId(s)].dtype);
  return bytes;
}

int sets_of_states(const Mapping& mapping) {
  const auto* rows = mapping.as<CpuRows>();
  return rows && mapping.vector_width > 1 && !mapping.row.empty() ? rows->sets : 1;
}

sym::Expr updates_of_pass(const Mapping& mapping, const loops::Region& region) {
  if (mapping.row.empty()) return 1;
  const int width = mapping.vector_width, step = width * sets_of_states(mapping);
  const sym::Expr size = region.vars[mapping.row.back()].extent;
  return sym::floor_div(size, step) + sym::floor_div(sym::mod(size, step), width) + sym::mod(size, width);
}

}  // namespace cxxinductor::plan

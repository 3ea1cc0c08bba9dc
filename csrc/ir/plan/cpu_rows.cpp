#include "ir/plan/cpu_rows.h"

namespace cxxinductor::plan {

int64_t persistent_bytes(const loops::Region& region, const IdVector<StmtId, MemorySpace>& memory_spaces, int64_t length) {
  int64_t bytes = 0;
  for (size_t s = 0; s < region.body.size(); ++s)
    if (memory_spaces[StmtId(s)] == MemorySpace::Persistent) bytes += length * byte_size(region.body[StmtId(s)].dtype);
  return bytes;
}

}  // namespace cxxinductor::plan

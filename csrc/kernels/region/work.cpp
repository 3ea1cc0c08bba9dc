#include "kernels/region/work.h"

#include <algorithm>
#include <bit>

namespace cxxinductor::kernels {

using loops::Stmt;
using loops::VarId;

int64_t power_of_two_up(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1)))); }
int64_t power_of_two_down(int64_t n) { return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(n, 1)))); }

int count_loads(const FlatRegion& flat, VarId v) {
  return static_cast<int>(std::count_if(flat.region.body.begin(), flat.region.body.end(),
                                        [v](const Stmt& stmt) { return stmt.as<loops::Load>() && v.valid() && stmt.vars.contains(v); }));
}

bool uses_random(const FlatRegion& flat) {
  return std::any_of(flat.region.body.begin(), flat.region.body.end(), [](const Stmt& stmt) {
    const auto* apply = stmt.as<loops::Apply>();
    return apply && info(apply->op).traits.random;
  });
}

int64_t operations_at_point(const FlatRegion& flat) {
  int64_t operations = 0;
  for (const Stmt& stmt : flat.region.body) {
    const auto* apply = stmt.as<loops::Apply>();
    operations += apply && info(apply->op).traits.transcendental ? 8 : 1;
  }
  return std::max<int64_t>(operations, 1);
}

}  // namespace cxxinductor::kernels

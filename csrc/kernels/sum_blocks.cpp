#include "kernels/sum_blocks.h"

#include "ir/plan/forms.h"

namespace cxxinductor::kernels {

void choose_sum_blocks(plan::Kernel& kernel) {
  kernel.in_blocks.clear();
  const sym::Expr updates = sym::simplify(updates_of_state(kernel.mapping, kernel.region), kernel.assumptions);
  if (sym::bounds(updates, kernel.assumptions).high <= 2 * plan::updates_of_block) return;
  for (size_t s = 0; s < kernel.region.body.size(); ++s)
    if (plan::rounds_by_order(kernel.region, plan::StmtId(s))) kernel.in_blocks.emplace_back(s);
}

}  // namespace cxxinductor::kernels

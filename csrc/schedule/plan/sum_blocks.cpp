#include "schedule/plan/sum_blocks.h"

#include "ir/plan/cpu_rows.h"
#include "support/overloaded.h"

namespace cxxinductor::schedule {
namespace {

using sym::Expr;

Expr points_of(const plan::Kernel& kernel, std::span<const plan::VarId> vars) {
  Expr points = 1;
  for (plan::VarId v : vars) points = points * kernel.region.vars[v].extent;
  return points;
}

// Updates of one state by one thread; 1 where states are in registers, or where nothing is reduced.
Expr updates_of_state(const plan::Kernel& kernel) {
  const std::vector<plan::VarId>& row = kernel.mapping.row;
  if (row.empty()) return 1;
  const Expr passes = points_of(kernel, std::span(row).first(row.size() - 1)), points = points_of(kernel, row);
  const auto of_rows = [&](const plan::Rows& rows) {
    if (rows.persistent) return Expr(1);
    const Expr groups = passes * sym::ceil_div(kernel.region.vars[row.back()].extent, kernel.mapping.vector_width);
    return sym::ceil_div(groups, rows.threads_per_row);
  };
  return std::visit(Overloaded{[](const plan::Pointwise&) { return Expr(1); },
                               [&](const plan::Rows& rows) { return of_rows(rows); },
                               [](const plan::SerialRows&) { return Expr(1); },
                               [&](const plan::Columns& columns) { return sym::ceil_div(sym::simplify(points, kernel.assumptions), columns.threads_per_row); },
                               [](const plan::Tiles&) { return Expr(1); },
                               [](const plan::Matmul&) { return Expr(1); },
                               [](const plan::CpuPointwise&) { return Expr(1); },
                               [&](const plan::CpuRows&) { return passes * plan::updates_of_pass(kernel); },
                               [&](const plan::CpuColumns&) { return points; },
                               [](const plan::CpuTiles&) { return Expr(1); }},
                    kernel.mapping.shape);
}

}  // namespace

void choose_sum_blocks(plan::Kernel& kernel) {
  kernel.in_blocks.clear();
  if (sym::bounds(updates_of_state(kernel), kernel.assumptions).high <= 2 * plan::updates_of_block) return;
  for (size_t s = 0; s < kernel.region.body.size(); ++s) {
    const auto* reduce = kernel.region.body[plan::StmtId(s)].as<loops::Reduce>();
    if (reduce && info(reduce->reduction).order_matters && is_float(kernel.region.body[reduce->operand].dtype))
      kernel.in_blocks.emplace_back(s);
  }
}

}  // namespace cxxinductor::schedule

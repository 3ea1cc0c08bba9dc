// Reductions: one variable per dimension of the operand.
#include <algorithm>

#include "lowering/context.h"

namespace cxxinductor::lowering {

void lower_reduce(Context& context, const graph::Node& node, const graph::Reduce& kind) {
  auto operand = std::get<graph::ValueId>(node.operands[0]);
  const graph::Value& source = context.value(operand);
  RegionWriter writer(context, "n_" + context.value(node.results[0]).name, source.device, node.origin);
  loops::RegionBuilder& builder = writer.builder();
  std::vector<sym::Expr> coords = writer.vars(source.sizes), result_coords;
  loops::VarSet over;
  for (size_t d = 0; d < coords.size(); ++d) {
    bool reduced = kind.dims.empty() || std::binary_search(kind.dims.begin(), kind.dims.end(), static_cast<int>(d));
    if (reduced) over |= loops::VarSet::of(loops::VarId(d));
    if (!reduced)
      result_coords.push_back(coords[d]);
    else if (kind.keepdim)
      result_coords.push_back(0);
  }
  std::vector<sym::Expr> reduced_coords = coords;
  if (coords.empty()) {  // a scalar is reduced over one position
    reduced_coords = writer.vars({sym::Expr(1)});
    over = loops::VarSet::of(loops::VarId(0));
  }
  loops::StmtId stmt = writer.compute(writer.load(operand, coords));
  // Every reduced variable must show in the operand: one that a broadcast dropped comes back through a true condition.
  for (size_t v = 0; v < reduced_coords.size(); ++v) {
    auto var = loops::VarSet::of(loops::VarId(v));
    if (!var.subset_of(over) || var.subset_of(builder.region().body[stmt].vars)) continue;
    loops::StmtId always = builder.apply(ScalarOp::Ge, {builder.index(reduced_coords[v]), builder.constant(Scalar::from_integer(DType::I64, 0))});
    stmt = builder.apply(ScalarOp::Where, {always, stmt, stmt});
  }
  loops::StmtId reduced = builder.reduce(kind.reduction, stmt, over);
  for (size_t i = 0; i < node.results.size(); ++i)
    writer.store(node.results[i], result_coords, i == 0 ? reduced : builder.project(reduced, static_cast<uint32_t>(i)));
  writer.finish();
}

}  // namespace cxxinductor::lowering

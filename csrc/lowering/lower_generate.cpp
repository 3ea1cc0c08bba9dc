// Values without tensor operands: full and iota.
#include "lowering/context.h"

namespace cxxinductor::lowering {

void lower_full(Context& context, const graph::Node& node) {
  const graph::Value& value = context.value(node.results[0]);
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  std::vector<sym::Expr> coords = writer.vars(value.sizes);
  const auto* scalar = std::get_if<Scalar>(&node.operands[0]);
  loops::StmtId stmt = scalar ? writer.builder().constant(cast(*scalar, value.dtype)) : writer.builder().index(std::get<sym::Expr>(node.operands[0]));
  writer.store(node.results[0], coords, stmt);
  writer.finish();
}

void lower_iota(Context& context, const graph::Node& node, const graph::Iota& kind) {
  const graph::Value& value = context.value(node.results[0]);
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  std::vector<sym::Expr> coords = writer.vars(value.sizes);
  writer.store(node.results[0], coords, writer.builder().index(kind.start + kind.step * coords[0]));
  writer.finish();
}

}  // namespace cxxinductor::lowering

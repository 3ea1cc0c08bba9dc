// Elementwise ops: operands loaded at the point, cast to the compute type, the op applied, the result rounded.
#include "ir/graph/infer.h"
#include "lowering/context.h"

namespace cxxinductor::lowering {
namespace {

loops::StmtId read_operand(Context& context, RegionWriter& writer, const graph::Operand& operand, const std::vector<sym::Expr>& coords, DType compute) {
  loops::RegionBuilder& builder = writer.builder();
  if (const auto* scalar = std::get_if<Scalar>(&operand)) return builder.constant(cast(*scalar, compute));
  if (const auto* e = std::get_if<sym::Expr>(&operand)) return builder.cast(builder.index(*e), compute);
  auto id = std::get<graph::ValueId>(operand);
  bool rank0 = context.value(id).sizes.empty();
  return builder.cast(writer.load(id, rank0 ? std::vector<sym::Expr>{} : coords), compute);
}

}  // namespace

void lower_elementwise(Context& context, const graph::Node& node, const graph::Elementwise& kind) {
  const graph::ValueId result = node.results[0];
  const graph::Value& value = context.value(result);
  const ScalarOpInfo& row = info(kind.op);
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  std::vector<sym::Expr> coords = writer.vars(value.sizes);
  const DType operand_dtype = graph::operand_dtype(context.graph, kind.op, node.operands);
  std::vector<loops::StmtId> operands;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    DType wanted = compute_type(operand_dtype);
    // A copy or conversion reads the element as it is stored: no detour through the compute type.
    if (row.rule == TypeRule::Cast || row.rule == TypeRule::Identity) wanted = operand_dtype;
    if (row.rule == TypeRule::Select && i == 0) wanted = DType::Bool;
    operands.push_back(read_operand(context, writer, node.operands[i], coords, wanted));
  }
  loops::StmtId stmt = operands[0];
  if (row.rule != TypeRule::Cast && row.rule != TypeRule::Identity) stmt = writer.builder().apply(kind.op, std::move(operands));
  writer.store(result, coords, stmt);
  writer.finish();
}

}  // namespace cxxinductor::lowering

// Scatters. In place: one update per point of the source. Otherwise, for slices of a base that must not change: every element
// of the result is selected from base and source.
#include "lowering/context.h"
#include "support/error.h"

namespace cxxinductor::lowering {
namespace {

using loops::StmtId;

graph::ValueId operand(const graph::Node& node, size_t i) { return std::get<graph::ValueId>(node.operands.at(i)); }

StmtId apply(RegionWriter& writer, ScalarOp op, StmtId a, StmtId b) { return writer.builder().apply(op, {writer.compute(a), writer.compute(b)}); }

// The coordinate in dimension d of the base for a point of the source.
sym::Expr place_in(Context& context, RegionWriter& writer, const graph::Node& node, const graph::Scatter& kind, size_t d, const std::vector<sym::Expr>& at) {
  if (kind.target[d] >= 0) return loops::expand(kind.start[d] + kind.step[d] * at[static_cast<size_t>(kind.target[d])]);
  const graph::ValueId index_id = operand(node, static_cast<size_t>(1 - kind.target[d]));
  std::vector<sym::Expr> index_coords;
  for (int dim : kind.index_dims) index_coords.push_back(at[static_cast<size_t>(dim)]);
  const sym::Expr size = context.value(operand(node, 0)).sizes[d];
  const StmtId index = writer.wrapped_index(index_id, std::move(index_coords), size, kind.wrap);
  if (kind.check)
    writer.builder().check(index, size, fmt::format("index {} of dimension {} of size {}", context.value(index_id).name, d, sym::to_string(size)));
  return loops::statement_symbol(index);
}

// Row-major number of a point of the source.
sym::Expr number_of(const std::vector<sym::Expr>& at, const std::vector<sym::Expr>& sizes) {
  sym::Expr number = 0;
  for (size_t d = 0; d < at.size(); ++d) number = number * sizes[d] + at[d];
  return loops::expand(number);
}

// Into the buffer of `target`, which holds the base.
void lower_in_place(Context& context, const graph::Node& node, const graph::Scatter& kind, graph::ValueId target) {
  const graph::Value& source = context.value(operand(node, 1));
  RegionWriter writer(context, "n_" + context.value(node.results[0]).name, source.device, node.origin);
  const std::vector<sym::Expr> at = writer.vars(source.sizes);
  std::vector<sym::Expr> place;
  for (size_t d = 0; d < kind.target.size(); ++d) place.push_back(place_in(context, writer, node, kind, d, at));
  loops::Store how;
  how.combine = kind.combine;
  if (graph::may_collide(kind)) how.conflict_order = number_of(at, source.sizes);
  writer.update(target, std::move(place), writer.load(operand(node, 1), at), std::move(how));
  writer.finish();
}

// Every element of the result, from the source where the slice covers it.
void lower_as_choice(Context& context, const graph::Node& node, const graph::Scatter& kind) {
  const graph::Value &value = context.value(node.results[0]), &source = context.value(operand(node, 1));
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  loops::RegionBuilder& builder = writer.builder();
  const std::vector<sym::Expr> coords = writer.vars(value.sizes);
  std::vector<sym::Expr> from(source.sizes.size(), 0);
  StmtId mask;
  for (size_t d = 0; d < coords.size(); ++d) {
    const auto s = static_cast<size_t>(kind.target[d]);
    const sym::Expr past = coords[d] - kind.start[d], step = kind.step[d];
    mask = writer.both(mask, writer.range_mask(past, 0, step * source.sizes[s]));
    from[s] = past;
    if (step.is_constant(1)) continue;
    from[s] = sym::floor_div(past, step);
    mask = writer.both(mask, builder.apply(ScalarOp::Eq, {builder.index(sym::mod(past, step)), builder.index(0)}));
  }
  StmtId stmt = writer.load(operand(node, 1), from, mask);
  const auto op = op_of(kind.combine);
  if (op || mask.valid()) {
    const StmtId outside = mask.valid() && !op ? builder.apply(ScalarOp::LogicalNot, {mask}) : StmtId();
    const StmtId base = writer.load(operand(node, 0), coords, outside);
    if (op) stmt = builder.cast(apply(writer, *op, base, stmt), value.dtype);
    if (mask.valid()) stmt = builder.apply(ScalarOp::Where, {mask, writer.compute(stmt), writer.compute(base)});
  }
  writer.store(node.results[0], coords, stmt);
  writer.finish();
}

}  // namespace

void lower_scatter(Context& context, const graph::Node& node, const graph::Scatter& kind) {
  const graph::ValueId result = node.results[0];
  if (kind.inplace) return lower_in_place(context, node, kind, operand(node, 0));
  if (node.operands.size() == 2) return lower_as_choice(context, node, kind);
  context.append_copy(operand(node, 0), context.buffers[result], "c_" + context.value(result).name);
  lower_in_place(context, node, kind, result);
}

}  // namespace cxxinductor::lowering

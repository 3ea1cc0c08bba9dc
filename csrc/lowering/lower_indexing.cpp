// Index arithmetic: pad and cat load under masks, gather loads at data-dependent coordinates.
#include "lowering/context.h"
#include "support/error.h"

namespace cxxinductor::lowering {
namespace {

// Where on any dtype: operands of narrow types pass through it in their compute type, which is exact.
loops::StmtId select(RegionWriter& writer, loops::StmtId condition, loops::StmtId yes, loops::StmtId no) {
  return writer.builder().apply(ScalarOp::Where, {condition, writer.compute(yes), writer.compute(no)});
}

}  // namespace

void lower_pad(Context& context, const graph::Node& node, const graph::Pad& kind) {
  auto operand = std::get<graph::ValueId>(node.operands[0]);
  const graph::Value& source = context.value(operand);
  const graph::Value& value = context.value(node.results[0]);
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  std::vector<sym::Expr> coords = writer.vars(value.sizes), from;
  loops::StmtId mask;
  for (size_t d = 0; d < coords.size(); ++d) {
    from.push_back(coords[d] - kind.low[d]);
    mask = writer.both(mask, writer.range_mask(from[d], 0, source.sizes[d]));
  }
  loops::StmtId stmt = writer.load(operand, from, mask);
  if (mask.valid()) stmt = select(writer, mask, stmt, writer.builder().constant(kind.fill));
  writer.store(node.results[0], coords, stmt);
  writer.finish();
}

void lower_cat(Context& context, const graph::Node& node, const graph::Cat& kind) {
  const graph::Value& value = context.value(node.results[0]);
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  std::vector<sym::Expr> coords = writer.vars(value.sizes);
  const auto dim = static_cast<size_t>(kind.dim);
  struct Part {
    loops::StmtId value, below;  // below: the position lies before the end of this part
  };
  std::vector<Part> parts;
  sym::Expr begin = 0;
  for (const graph::Operand& operand : node.operands) {
    auto id = std::get<graph::ValueId>(operand);
    sym::Expr end = begin + context.value(id).sizes[dim];
    std::vector<sym::Expr> from = coords;
    from[dim] = coords[dim] - begin;
    loops::StmtId below = writer.range_mask(coords[dim], 0, end);
    loops::StmtId mask = writer.both(writer.range_mask(coords[dim], begin, value.sizes[dim]), below);
    parts.push_back({writer.load(id, from, mask), below});
    begin = end;
  }
  loops::StmtId stmt = parts.back().value;
  for (size_t p = parts.size() - 1; p-- > 0;)
    if (parts[p].below.valid())
      stmt = select(writer, parts[p].below, parts[p].value, stmt);
    else
      stmt = parts[p].value;
  writer.store(node.results[0], coords, stmt);
  writer.finish();
}

void lower_gather(Context& context, const graph::Node& node, const graph::Gather& kind) {
  auto operand = std::get<graph::ValueId>(node.operands[0]);
  const graph::Value& source = context.value(operand);
  const graph::Value& value = context.value(node.results[0]);
  RegionWriter writer(context, "n_" + value.name, value.device, node.origin);
  loops::RegionBuilder& builder = writer.builder();
  std::vector<sym::Expr> coords = writer.vars(value.sizes), index_coords, from;
  for (int dim : kind.index_dims) index_coords.push_back(coords[static_cast<size_t>(dim)]);
  for (size_t d = 0; d < source.sizes.size(); ++d) {
    if (kind.source[d] >= 0) {
      from.push_back(coords[static_cast<size_t>(kind.source[d])]);
      continue;
    }
    auto index_id = std::get<graph::ValueId>(node.operands[static_cast<size_t>(-kind.source[d])]);
    const loops::StmtId index = writer.wrapped_index(index_id, index_coords, source.sizes[d], kind.wrap);
    if (kind.check)
      builder.check(index, source.sizes[d],
                    fmt::format("index {} of dimension {} of size {}", context.value(index_id).name, d, sym::to_string(source.sizes[d])));
    from.push_back(loops::statement_symbol(index));
  }
  writer.store(node.results[0], coords, writer.load(operand, from));
  writer.finish();
}

}  // namespace cxxinductor::lowering

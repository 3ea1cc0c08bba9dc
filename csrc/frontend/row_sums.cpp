#include "frontend/row_sums.h"

#include <cmath>

namespace cxxinductor::frontend {
namespace {

// 169 places for 2401 rows of 32 floats, 13 million terms, take 18 us on an H100, where eager's kernels take 45 (benchmarks/row_sums.py).
constexpr double most_terms = 1 << 24;

}  // namespace

bool may_sum_all_rows(const Sizes& rows, sym::Expr places) {
  double terms = places.is_constant() ? static_cast<double>(places.constant()) : 0;
  for (const sym::Expr size : rows) terms *= size.is_constant() ? static_cast<double>(size.constant()) : 0;
  return terms > 0 && terms <= most_terms;
}

ValueId sum_all_rows(CallContext& context, ValueId rows, ValueId index, sym::Expr places, bool wrap) {
  graph::Builder& build = context.build;
  const Sizes sizes = context.value(rows).sizes;
  Sizes along_places(sizes.size() + 1, sym::Expr(1)), along_rows = along_places, one_place = sizes;
  along_places[0] = places;
  along_rows[1] = sizes[0];
  one_place.insert(one_place.begin(), 1);
  const Device device = context.result().device;
  const ValueId numbers = build.iota(0, 1, places, DType::I64, device);
  // What is read at an index is the index, once it is checked.
  graph::Gather at;
  at.source = {-1};
  at.index_dims = {0};
  at.wrap = wrap;
  const ValueId checked = build.gather(numbers, {index}, at, {sizes[0]});
  const ValueId counts = build.elementwise(ScalarOp::Eq, {build.reshape(checked, along_rows), build.reshape(numbers, along_places)});
  const Operand zero = Scalar::from_integer(context.dtype(rows), 0);
  const ValueId chosen = build.elementwise(ScalarOp::Where, {counts, build.reshape(rows, one_place), zero});
  return build.reduce(Reduction::Sum, chosen, {1}, false).front();
}

bool is_zeros(const graph::Graph& graph, ValueId id) {
  const graph::NodeId producer = graph.values[id].producer;
  const graph::Node* node = producer.valid() ? &graph.nodes[producer] : nullptr;
  if (!node || !node->as<graph::Full>()) return false;
  const auto* value = std::get_if<Scalar>(&node->operands.front());
  return value && value->as_real() == 0 && !std::signbit(value->as_real());
}

}  // namespace cxxinductor::frontend

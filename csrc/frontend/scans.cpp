// cumsum and cumprod of short rows, as reductions: out[i] = reduce over j of (j <= i ? x[j] : neutral).
//
// The IRs have no scan. A row of n elements costs n * n steps, which is negligible for positions of tokens and prohibitive for
// long rows: those stay calls of ATen.
#include "frontend/accumulate.h"
#include "frontend/aten_table.h"

namespace cxxinductor::frontend {
namespace {

constexpr int64_t most_steps = int64_t{1} << 24;  // elements times row length; about 10 us of an H200

Results import_scan(CallContext& context, Reduction reduction, double neutral) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  const int rank = context.rank(x);
  if (rank == 0) return context.decline_rank_0();
  if (dtype == DType::Bool || is_opaque(dtype)) return context.decline("it is not of numbers");
  const auto axis = static_cast<size_t>(context.dim(1, "dim", 0, rank));
  const Sizes sizes = context.value(x).sizes;
  const sym::Expr length = sizes[axis];
  const sym::Interval steps = sym::bounds(graph::element_count(sizes) * length, context.assumptions());
  if (steps.high > most_steps) return context.decline("the IRs have no scan, and its rows are long");

  // Dimension `axis` of the space is i, the one behind it j.
  Sizes source = sizes, space = sizes;
  source.insert(source.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  space.insert(space.begin() + static_cast<std::ptrdiff_t>(axis), length);
  Sizes row(space.size() - axis, 1), column = row;
  row[0] = length;     // i, as [length, 1, 1...]
  column[1] = length;  // j, as [1, length, 1...]
  const Device device = context.result().device;
  const ValueId i = build.reshape(build.iota(0, 1, length, DType::I64, device), row);
  const ValueId j = build.reshape(build.iota(0, 1, length, DType::I64, device), column);
  const DType compute = step_type(context, dtype);
  const ValueId wide = build.cast(build.cast(x, dtype), compute);
  const ValueId spread = build.expand(build.reshape(wide, source), space);
  const ValueId included = build.expand(build.elementwise(ScalarOp::Le, {j, i}), space);
  const Operand otherwise(is_float(compute) ? Scalar::from_real(compute, neutral) : Scalar::from_integer(compute, static_cast<int64_t>(neutral)));
  const ValueId term = build.elementwise(ScalarOp::Where, {included, spread, otherwise});
  const ValueId total = build.reduce(reduction, term, {static_cast<int>(axis) + 1}, false).front();
  return std::vector{build.cast(total, dtype)};
}

}  // namespace

void add_scan_rows(ImportTable& table) {
  table.emplace("aten::cumsum", ImportRow{[](CallContext& c) { return import_scan(c, Reduction::Sum, 0); }, Accepts::Arithmetic});
  table.emplace("aten::cumprod", ImportRow{[](CallContext& c) { return import_scan(c, Reduction::Prod, 1); }, Accepts::Arithmetic});
}

}  // namespace cxxinductor::frontend

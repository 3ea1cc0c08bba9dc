// Pooling over windows of constant size: a chain over the taps of the window, in ATen's order.
//
// Each tap is a strided slice of the padded input, so a pool is index arithmetic and fuses like any pointwise op. In
// the backward each input element adds up the few windows that hold it, instead of a scatter: no atomics, and ATen's order of
// additions (ATen/native/cuda/DilatedMaxPool2d.cu and AveragePool2d.cu, torch 2.11).
#include <limits>

#include "frontend/aten_table.h"
#include "frontend/pointwise.h"
#include "ir/device_types.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

constexpr int64_t most_taps = 64;  // statements grow with the window; larger windows stay calls

// One spatial dimension of a pool.
struct Axis {
  int dim = 0;
  int64_t window = 1, stride = 1, padding = 0, dilation = 1;
  sym::Expr in, out;
};
struct Window {
  Axis rows, columns;
};

// One or two integers of a list; none where they are symbols.
std::optional<std::pair<int64_t, int64_t>> pair_of(const CallContext& context, size_t position, std::string_view name, std::pair<int64_t, int64_t> otherwise) {
  const Sizes values = context.exprs(position, name);
  if (values.empty()) return otherwise;
  if (!values.front().is_constant() || !values.back().is_constant() || values.size() > 2) return std::nullopt;
  return std::pair(values.front().constant(), values.back().constant());
}

// Arguments (kernel_size, stride, padding[, dilation]) from `first` on; `in` and `out` are the sizes of the pool's input
// and result, whose last two dimensions are pooled.
std::optional<Window> window_of(const CallContext& context, size_t first, bool dilated, const Sizes& in, const Sizes& out) {
  const auto kernel = pair_of(context, first, "kernel_size", {0, 0});
  if (!kernel || in.size() < 3 || in.size() != out.size()) return std::nullopt;
  const auto stride = pair_of(context, first + 1, "stride", *kernel);
  const auto padding = pair_of(context, first + 2, "padding", {0, 0});
  const auto dilation = dilated ? pair_of(context, first + 3, "dilation", {1, 1}) : std::pair<int64_t, int64_t>{1, 1};
  if (!stride || !padding || !dilation) return std::nullopt;
  if (kernel->first * kernel->second > most_taps) return context.decline("its windows are large");
  const size_t rank = in.size();
  const auto d = static_cast<int>(rank);
  return Window{{d - 2, kernel->first, stride->first, padding->first, dilation->first, in[rank - 2], out[rank - 2]},
                {d - 1, kernel->second, stride->second, padding->second, dilation->second, in[rank - 1], out[rank - 1]}};
}

class Pool {
 public:
  Pool(CallContext& context, Window window, int rank) : context_(context), build_(context.build), window_(std::move(window)), rank_(rank) {}

  // x with `fill` around it, as far as windows reach.
  ValueId padded(ValueId x, double fill) {
    const sym::Expr rows = reach(window_.rows), columns = reach(window_.columns);
    if (fits(window_.rows, rows) && fits(window_.columns, columns)) return x;
    Sizes sizes = context_.value(x).sizes, low(sizes.size(), sym::Expr(0));
    for (const auto& [axis, size] : {std::pair(window_.rows, rows), std::pair(window_.columns, columns)}) {
      low[static_cast<size_t>(axis.dim)] = axis.padding;
      sizes[static_cast<size_t>(axis.dim)] = size;
    }
    return build_.pad(x, low, sizes, Scalar::from_real(context_.dtype(x), fill));
  }

  // Element (row, column) of every window.
  ValueId tap(ValueId padded, int64_t row, int64_t column) {
    const Axis &y = window_.rows, &x = window_.columns;
    const ValueId rows = build_.slice(padded, y.dim, row * y.dilation, y.out, y.stride);
    return build_.slice(rows, x.dim, column * x.dilation, x.out, x.stride);
  }

  // Position among the input's rows or columns of tap `t` of each window, shaped to broadcast along its dimension.
  ValueId position(const Axis& axis, int64_t t) { return counted(axis, t * axis.dilation - axis.padding, axis.stride, axis.out); }

  // The first position of each window that is inside of the input.
  ValueId first_inside(const Axis& axis) {
    const ValueId start = position(axis, 0);
    const Operand zero(Scalar::from_integer(DType::I64, 0)), step(Scalar::from_integer(DType::I64, axis.dilation));
    const ValueId before = build_.elementwise(ScalarOp::Lt, {start, zero});
    return build_.elementwise(ScalarOp::Where, {before, build_.elementwise(ScalarOp::Remainder, {start, step}), start});
  }

  ValueId linear(ValueId row, ValueId column) {
    return build_.elementwise(ScalarOp::Add, {build_.elementwise(ScalarOp::Mul, {row, Operand(window_.columns.in)}), column});
  }

  ValueId counted(const Axis& axis, sym::Expr start, sym::Expr step, sym::Expr size) {
    Sizes shape(static_cast<size_t>(rank_), 1);
    shape[static_cast<size_t>(axis.dim)] = size;
    return build_.reshape(build_.iota(start, step, size, DType::I64, context_.result().device), shape);
  }

  const Window& window() const { return window_; }

 private:
  static sym::Expr reach(const Axis& axis) { return (axis.out - 1) * axis.stride + (axis.window - 1) * axis.dilation + 1; }
  bool fits(const Axis& axis, sym::Expr reach) const { return axis.padding == 0 && sym::bounds(axis.in - reach, context_.assumptions()).low >= 0; }

  CallContext& context_;
  graph::Builder& build_;
  Window window_;
  int rank_;
};

Operand integer(int64_t value) { return Operand(Scalar::from_integer(DType::I64, value)); }

// max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode): a later element wins where it is
// larger or NaN; a window of nothing but -inf gives its first element.
Results import_max_pool(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const Sizes& out = context.result().sizes;
  const auto window = window_of(context, 1, true, context.value(x).sizes, out);
  if (!window || !is_float(context.dtype(x))) return std::nullopt;
  Pool pool(context, *window, context.rank(x));
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const DType dtype = context.dtype(x);
  const ValueId padded = pool.padded(x, lowest);
  ValueId largest = build.full(Operand(immediate_real(dtype, lowest)), dtype, context.result().device, out);
  ValueId place = pool.linear(pool.first_inside(window->rows), pool.first_inside(window->columns));
  place = build.expand(place, out);
  for (int64_t i = 0; i < window->rows.window; ++i) {
    for (int64_t j = 0; j < window->columns.window; ++j) {
      const ValueId value = pool.tap(padded, i, j);
      const ValueId larger = build.elementwise(ScalarOp::Gt, {value, largest});
      const ValueId wins = build.elementwise(ScalarOp::LogicalOr, {larger, build.elementwise(ScalarOp::IsNan, {value})});
      const ValueId here = pool.linear(pool.position(window->rows, i), pool.position(window->columns, j));
      largest = build.elementwise(ScalarOp::Where, {wins, value, largest});
      place = build.elementwise(ScalarOp::Where, {wins, build.expand(here, out), place});
    }
  }
  return std::vector{largest, place};
}

// Elements that each window of an average counts along one axis, as i64.
ValueId counted_elements(CallContext& context, Pool& pool, const Axis& axis, bool count_padding) {
  graph::Builder& build = context.build;
  const ValueId start = pool.position(axis, 0);
  const sym::Expr limit = axis.in + axis.padding;
  const ValueId end = build.elementwise(ScalarOp::Minimum, {build.elementwise(ScalarOp::Add, {start, integer(axis.window)}), Operand(limit)});
  if (count_padding) return build.elementwise(ScalarOp::Sub, {end, start});
  return build.elementwise(ScalarOp::Sub,
                           {build.elementwise(ScalarOp::Minimum, {end, Operand(axis.in)}), build.elementwise(ScalarOp::Maximum, {start, integer(0)})});
}

// The divisor of an average, in the compute type: a constant if all windows count equally many elements.
std::optional<Operand> average_divisor(CallContext& context, Pool& pool, size_t position, DType compute) {
  const bool count_padding = context.boolean(position, "count_include_pad", true);
  if (context.has(position + 1, "divisor_override")) {
    const int64_t divisor = context.integer(position + 1, "divisor_override", 0);
    if (divisor == 0) return std::nullopt;
    return Operand(Scalar::from_integer(compute, divisor));
  }
  const auto uniform = [&](const Axis& axis) {
    const sym::Expr last = (axis.out - 1) * axis.stride + axis.window;  // end of the last window, from -padding
    const sym::Expr room = axis.in + (count_padding ? 2 : 0) * axis.padding;
    return (count_padding || axis.padding == 0) && sym::bounds(room - last, context.assumptions()).low >= 0;
  };
  const Window& window = pool.window();
  if (uniform(window.rows) && uniform(window.columns)) {
    return Operand(Scalar::from_integer(compute, window.rows.window * window.columns.window));
  }
  const ValueId rows = counted_elements(context, pool, window.rows, count_padding);
  const ValueId columns = counted_elements(context, pool, window.columns, count_padding);
  return Operand(context.build.cast(context.build.elementwise(ScalarOp::Mul, {rows, columns}), compute));
}

// avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
Results import_average_pool(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const auto window = window_of(context, 1, false, context.value(x).sizes, context.result().sizes);
  if (!window || !is_float(context.dtype(x))) return std::nullopt;
  Pool pool(context, *window, context.rank(x));
  const DType compute = compute_type(context.dtype(x));
  const auto divisor = average_divisor(context, pool, 5, compute);
  if (!divisor) return std::nullopt;
  const ValueId padded = build.cast(pool.padded(x, 0), compute);
  std::optional<ValueId> sum;
  for (int64_t i = 0; i < window->rows.window; ++i) {
    for (int64_t j = 0; j < window->columns.window; ++j) {
      const ValueId value = pool.tap(padded, i, j);
      sum = sum ? build.elementwise(ScalarOp::Add, {*sum, value}) : value;
    }
  }
  return std::vector{build.cast(build.elementwise(ScalarOp::Div, {*sum, *divisor}), context.result().dtype)};
}

// The windows along one axis that may hold an input position: their number counts down from position / stride, at most
// ceil(window / stride) of them.
struct Covering {
  ValueId number;  // of the window, clamped into the result
  ValueId inside;  // bool: there is such a window, and it holds the position
};

Covering covering(CallContext& context, Pool& pool, const Axis& axis, int64_t back) {
  graph::Builder& build = context.build;
  const ValueId place = pool.counted(axis, axis.padding, 1, axis.in);  // from the first window's first element
  const ValueId last = build.elementwise(ScalarOp::FloorDiv, {place, integer(axis.stride)});
  const ValueId number = build.elementwise(ScalarOp::Sub, {last, integer(back)});
  const ValueId exists = build.elementwise(
      ScalarOp::LogicalAnd, {build.elementwise(ScalarOp::Ge, {number, integer(0)}), build.elementwise(ScalarOp::Lt, {number, Operand(axis.out)})});
  const ValueId start = build.elementwise(ScalarOp::Mul, {number, integer(axis.stride)});
  const ValueId reaches = build.elementwise(ScalarOp::Lt, {build.elementwise(ScalarOp::Sub, {place, start}), integer(axis.window)});
  const ValueId clamped = build.elementwise(ScalarOp::Minimum, {build.elementwise(ScalarOp::Maximum, {number, integer(0)}), Operand(axis.out - 1)});
  return {clamped, build.elementwise(ScalarOp::LogicalAnd, {exists, reaches})};
}

// Element (row, column) of each plane of x, at positions that are in range.
ValueId at(CallContext& context, ValueId x, ValueId row, ValueId column, const Window& window) {
  graph::Builder& build = context.build;
  const int rank = context.rank(x);
  graph::Gather gather;
  gather.wrap = gather.check = false;
  for (int d = 0; d < rank; ++d) gather.source.push_back(d == rank - 2 ? -1 : d == rank - 1 ? -2 : d);
  gather.index_dims = {rank - 2, rank - 1};
  const Sizes plane{window.rows.in, window.columns.in};
  const auto spread = [&](ValueId index, const Sizes& shape) { return build.expand(build.reshape(index, shape), plane); };
  return build.gather(x, {spread(row, {window.rows.in, 1}), spread(column, {1, window.columns.in})}, std::move(gather), context.result().sizes);
}

// The sum over the windows that hold each input element, in ascending order of windows, as ATen adds them.
// term(row, column, inside) is the contribution of a window, 0 if it does not hold the element.
template <class Term>
ValueId gathered(CallContext& context, Pool& pool, const Term& term) {
  graph::Builder& build = context.build;
  const Window& window = pool.window();
  const auto most = [](const Axis& axis) { return (axis.window + axis.stride - 1) / axis.stride; };
  std::optional<ValueId> sum;
  for (int64_t i = most(window.rows) - 1; i >= 0; --i) {
    const Covering row = covering(context, pool, window.rows, i);
    for (int64_t j = most(window.columns) - 1; j >= 0; --j) {
      const Covering column = covering(context, pool, window.columns, j);
      const ValueId inside = build.elementwise(ScalarOp::LogicalAnd, {row.inside, column.inside});
      const ValueId given = term(row.number, column.number, build.expand(inside, context.result().sizes));
      sum = sum ? build.elementwise(ScalarOp::Add, {*sum, given}) : given;
    }
  }
  return build.cast(*sum, context.result().dtype);
}

// The dtype in which a backward adds up.
DType sum_type(const CallContext& context, ValueId gradient) {
  return context.eager().adds_gradients_in_compute_type ? compute_type(context.dtype(gradient)) : context.dtype(gradient);
}

// max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
Results import_max_pool_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), x = context.tensor(1, "self");
  const ValueId indices = context.tensor(7, "indices");
  const auto window = window_of(context, 2, true, context.value(x).sizes, context.value(gradient).sizes);
  if (!window) return std::nullopt;
  if (window->rows.dilation != 1 || window->columns.dilation != 1) return context.decline("its windows are dilated");
  if (!is_float(context.dtype(gradient))) return context.decline("it is not of floats");
  Pool pool(context, *window, context.rank(x));
  const DType compute = sum_type(context, gradient);
  const ValueId here = build.expand(pool.linear(pool.counted(window->rows, 0, 1, window->rows.in), pool.counted(window->columns, 0, 1, window->columns.in)),
                                    context.result().sizes);
  const auto term = [&](ValueId row, ValueId column, ValueId inside) {
    const ValueId chosen = build.elementwise(ScalarOp::Eq, {at(context, indices, row, column, *window), here});
    const ValueId counts = build.elementwise(ScalarOp::LogicalAnd, {inside, chosen});
    const ValueId value = build.cast(at(context, gradient, row, column, *window), compute);
    return build.elementwise(ScalarOp::Where, {counts, value, Operand(immediate_real(compute, 0))});
  };
  return std::vector{gathered(context, pool, term)};
}

// avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
Results import_average_pool_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), x = context.tensor(1, "self");
  const auto window = window_of(context, 2, false, context.value(x).sizes, context.value(gradient).sizes);
  if (!window || !is_float(context.dtype(gradient))) return std::nullopt;
  Pool pool(context, *window, context.rank(x));
  const DType compute = sum_type(context, gradient);
  const DType wide = compute_type(compute);
  const auto divisor = average_divisor(context, pool, 6, wide);
  if (!divisor) return std::nullopt;
  // ATen divides an element of the gradient's dtype by an int, which rounds to that dtype, before it adds.
  const ValueId quotient = build.elementwise(ScalarOp::Div, {build.cast(gradient, wide), *divisor});
  const ValueId share = build.cast(build.cast(quotient, context.dtype(gradient)), compute);
  const auto term = [&](ValueId row, ValueId column, ValueId inside) {
    const ValueId value = at(context, share, row, column, *window);
    return build.elementwise(ScalarOp::Where, {inside, value, Operand(immediate_real(compute, 0))});
  };
  return std::vector{gathered(context, pool, term)};
}

}  // namespace

void add_pooling_rows(ImportTable& table) {
  const auto add = [&table](const char* name, Importer importer) { table.emplace(name, ImportRow{std::move(importer), Accepts::Arithmetic}); };
  add("aten::max_pool2d_with_indices", import_max_pool);
  add("aten::max_pool2d_with_indices_backward", import_max_pool_backward);
  add("aten::avg_pool2d", import_average_pool);
  add("aten::avg_pool2d_backward", import_average_pool_backward);
}

}  // namespace cxxinductor::frontend

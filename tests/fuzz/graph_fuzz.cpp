// The generator: a pool of values that grows by random nodes over values already there.
#include "fuzz/graph_fuzz.h"

#include <algorithm>
#include <numeric>

#include "fuzz/value_pool.h"
#include "ir/graph/verify.h"

namespace cxxinductor::fuzz {
namespace {

// Results that do not depend on the target's math library: bit-equal everywhere.
constexpr ScalarOp exact_unary[] = {ScalarOp::Neg, ScalarOp::Abs, ScalarOp::Relu, ScalarOp::Square, ScalarOp::Reciprocal};
constexpr ScalarOp stepwise_unary[] = {ScalarOp::Floor, ScalarOp::Ceil, ScalarOp::Round, ScalarOp::Trunc, ScalarOp::Sign};
constexpr ScalarOp smooth_unary[] = {ScalarOp::Exp,  ScalarOp::Tanh, ScalarOp::Sigmoid, ScalarOp::Silu,
                                     ScalarOp::Gelu, ScalarOp::Erf,  ScalarOp::Sin,     ScalarOp::Expm1};
constexpr ScalarOp arithmetic[] = {ScalarOp::Add, ScalarOp::Sub, ScalarOp::Mul, ScalarOp::Maximum, ScalarOp::Minimum};
constexpr ScalarOp comparisons[] = {ScalarOp::Eq, ScalarOp::Ne, ScalarOp::Lt, ScalarOp::Le, ScalarOp::Gt, ScalarOp::Ge};
constexpr ScalarOp bitwise[] = {ScalarOp::BitAnd, ScalarOp::BitOr, ScalarOp::BitXor};

class Generator : ValuePool {
 public:
  Generator(uint64_t seed, const Shape& shape) : ValuePool(seed, shape) {}

  RandomGraph run() {
    out_.graph.name = "fuzz";
    add_symbols();
    for (int64_t count = number(1, 4) + std::ssize(symbols_); count > 0; --count) add_input();
    for (int step = 0; step < shape_.steps; ++step) add_step();
    add_outputs();
    graph::verify_or_throw(out_.graph, "the fuzzer");
    out_.exact.resize(out_.graph.values.size(), true);
    return live_part(out_);
  }

 private:
  // ---- Steps ----
  void add_step() {
    switch (number(0, 20)) {
      case 0:
      case 1:
        return unary();
      case 2:
      case 3:
      case 4:
        return binary();
      case 5:
        return compare_and_select();
      case 6:
        return convert();
      case 7:
      case 8:
        return reduce();
      case 9:
        return reshape();
      case 10:
        return permute_or_flip();
      case 11:
        return one_in(2) ? slice() : pad();
      case 12:
        return concatenate();
      case 13:
        return gather();
      case 14:
        return expand();
      case 15:
        return scatter();
      case 16:
        return write_window();
      case 17:
        return along_and_across();
      case 18:
        return softmax();
      case 19:
        return one_hot_sum();
      default:
        return one_in(2) ? create() : call();
    }
  }

  void unary() {
    const ValueId x = pick_value();
    if (dtype(x) == DType::Bool) {
      keep(apply(ScalarOp::LogicalNot, {x}), true);
    } else if (!is_float(dtype(x))) {
      keep(apply(one_in(2) ? ScalarOp::Abs : ScalarOp::Neg, {x}), true);
    } else if (one_in(3)) {
      keep(apply(pick(smooth_unary), {exact(x) ? tame(x, 4) : tame_inexact(x, 4)}, false), false);
    } else if (exact(x)) {
      keep(apply(one_in(2) ? pick(stepwise_unary) : pick(exact_unary), {x}), true);
    } else {
      keep(apply(one_in(2) ? ScalarOp::Neg : ScalarOp::Abs, {x}), false);
    }
  }
  // Continuous, so that inexact values may pass.
  ValueId tame_inexact(ValueId x, double limit) { return apply(ScalarOp::Clamp, {x, immediate(dtype(x), -limit), immediate(dtype(x), limit)}); }

  // Two values that broadcast, the second converted to the first's dtype.
  std::optional<std::pair<ValueId, ValueId>> pick_pair() {
    const ValueId x = pick_value();
    const auto y = pick_where([&](ValueId id) { return broadcasts(sizes(id), sizes(x)) && (exact(id) || is_float(dtype(x))); });
    if (!y) return std::nullopt;
    // A rank-0 operand beside a larger one enters in the compute type.
    const bool scalar = rank(*y) == 0 && rank(x) > 0;
    return std::pair(x, convert_to(*y, scalar ? compute_type(dtype(x)) : dtype(x)));
  }
  static bool broadcasts(const Sizes& from, const Sizes& to) {
    if (from.size() > to.size()) return false;
    for (size_t d = 0; d < from.size(); ++d)
      if (!from[d].is_constant(1) && from[d] != to[to.size() - from.size() + d]) return false;
    return true;
  }
  ValueId convert_to(ValueId x, DType to) {
    if (dtype(x) == to) return x;
    if (is_float(dtype(x)) && !is_float(to)) x = tame(x, 100);  // out of range is undefined
    return cast(x, to);
  }

  void binary() {
    const auto pair = pick_pair();
    if (!pair) return;
    const auto [x, y] = *pair;
    const DType type = dtype(x);
    if (type == DType::Bool) {
      keep(apply(pick(bitwise), {x, y}), true);
    } else if (!is_float(type)) {
      keep(apply(one_in(3) ? pick(bitwise) : pick(arithmetic), {x, y}), true);
    } else if (exact(x) && exact(y)) {
      keep(apply(one_in(6) ? ScalarOp::Div : pick(arithmetic), {x, y}), true);
    } else {
      // Products of unbounded inexact values would drown every difference.
      keep(apply(pick(arithmetic), {tame_inexact(x, 64), tame_inexact(y, 64)}), false);
    }
    if (type != DType::Bool && one_in(3)) add_constant(pool_.back());
  }

  void add_constant(ValueId x) {
    if (dtype(x) == DType::Bool) return;
    keep(apply(ScalarOp::Add, {x, immediate(dtype(x), static_cast<double>(number(-3, 3)))}), exact(x));
  }

  void compare_and_select() {
    const auto pair = pick_pair();
    if (!pair || !exact(pair->first) || !exact(pair->second)) return;
    const ValueId condition = keep(apply(pick(comparisons), {pair->first, pair->second}), true);
    const auto x = pick_where([&](ValueId id) { return sizes(id) == sizes(condition) && dtype(id) != DType::Bool; });
    if (x) keep(apply(ScalarOp::Where, {condition, *x, immediate(dtype(*x), static_cast<double>(number(-2, 2)))}), exact(*x));
  }

  void convert() {
    const ValueId x = pick_value();
    const DType to = pick(value_dtypes);
    if (exact(x))
      keep(convert_to(x, to), true);
    else  // rounding to a narrow type would turn a last bit into a large one
      keep(cast(x, dtype(x) == DType::F64 ? DType::F32 : DType::F64), false);
  }

  void reduce() {
    const ValueId x = pick_value();
    std::vector<int> dims;
    for (int d = 0; d < rank(x); ++d)
      if (one_in(2)) dims.push_back(d);
    const bool keepdim = one_in(2);
    const bool floats = is_float(dtype(x));
    const auto add = [&](Reduction reduction, ValueId operand, bool is_exact) {
      for (ValueId result : builder_.reduce(reduction, operand, dims, keepdim)) keep(result, is_exact);
    };
    switch (number(0, 5)) {
      case 0:  // + 0: of zeros of both signs, any may win
        for (ValueId result : builder_.reduce(one_in(2) ? Reduction::Max : Reduction::Min, x, dims, keepdim)) {
          mark(result, exact(x));
          keep(floats ? apply(ScalarOp::Add, {result, immediate(dtype(x), 0)}) : result, exact(x));
        }
        return;
      case 1:
        if (!exact(x)) return;
        return add(one_in(2) ? Reduction::Any : Reduction::All, x, true);
      case 2:
        if (!exact(x)) return;
        return add(one_in(2) ? Reduction::ArgMax : Reduction::ArgMin, x, true);
      case 3: {  // a row's mean and deviation, subtracted as norms do
        if (!exact(x)) return;
        const ValueId operand = convert_to(floats ? small_integers(x, 8) : x, DType::F32);
        return add(Reduction::Welford, floats ? operand : small_integers(operand, 8), false);
      }
      default:
        if (!floats) return add(Reduction::Sum, convert_to(x, DType::I64), true);
        if (!exact(x)) return add(Reduction::Sum, cast(tame_inexact(x, 64), DType::F64), false);
        return add(Reduction::Sum, cast(small_integers(x, 8), dtype(x) == DType::F64 ? DType::F64 : DType::F32), true);
    }
  }

  // What backwards of norms do: rows less their own sums, and sums of the same rows across.
  void along_and_across() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 2 && exact(id) && dtype(id) != DType::Bool; });
    if (!x) return;
    const ValueId whole = is_float(dtype(*x)) ? small_integers(*x, 3) : tame(*x, 3);
    const ValueId rows = cast(whole, dtype(*x) == DType::F64 ? DType::F64 : DType::F32);
    const int last = rank(rows) - 1;
    std::vector<int> others(static_cast<size_t>(last));
    std::iota(others.begin(), others.end(), 0);
    const auto sum = [&](ValueId operand, const std::vector<int>& dims, bool keepdim) {
      const ValueId result = builder_.reduce(Reduction::Sum, operand, dims, keepdim).front();
      mark(result, true);
      return result;
    };
    const ValueId total = sum(apply(ScalarOp::Mul, {rows, rows}), {last}, true);
    keep(apply(ScalarOp::Sub, {rows, total}), true);
    const std::vector<int> across = one_in(2) ? others : std::vector<int>{0};
    keep(sum(rows, across, one_in(3)), true);
    if (one_in(2)) keep(sum(apply(ScalarOp::Mul, {rows, one_in(2) ? total : rows}), across, false), true);
  }

  void softmax() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1 && is_float(dtype(id)); });
    if (!x) return;
    const ValueId rows = exact(*x) ? tame(*x, 8) : tame_inexact(*x, 8);
    const std::vector<int> dims{static_cast<int>(number(0, rank(rows) - 1))};
    const ValueId most = builder_.reduce(Reduction::Max, rows, dims, true).front();
    mark(most, exact(rows));
    const ValueId powers = apply(ScalarOp::Exp, {apply(ScalarOp::Sub, {rows, most})}, false);
    const DType type = dtype(powers) == DType::F64 ? DType::F64 : DType::F32;
    const ValueId total = builder_.reduce(Reduction::Sum, cast(powers, type), dims, true).front();
    mark(total, false);
    const ValueId shares = apply(ScalarOp::Div, {powers, convert_to(total, dtype(powers))}, false);
    keep(shares, false);
    if (one_in(2)) keep(apply(ScalarOp::Log, {total}, false), false);
    if (one_in(2)) softmax_backward(rows, shares, dims, type);
    if (rank(rows) < 2 || one_in(2)) return;
    // Its probabilities made again from sums that were saved: here, any number of the row.
    const size_t other = dims[0] == 0 ? 1 : 0;
    Sizes of_rows(sizes(rows).size(), 1);
    of_rows[other] = sizes(rows)[other];
    const ValueId numbers = builder_.iota(1, 1, of_rows[other], DType::I64, device_);
    mark(numbers, true);
    const ValueId saved = builder_.reshape(numbers, of_rows);
    mark(saved, true);
    const ValueId again = apply(ScalarOp::Exp, {rows}, false);
    softmax_backward(rows, apply(ScalarOp::Div, {again, convert_to(saved, dtype(again))}, false), dims, type);
  }

  // Where the gradient is what came in.
  void softmax_backward(ValueId rows, ValueId shares, const std::vector<int>& dims, DType type) {
    const ValueId product = apply(ScalarOp::Mul, {shares, convert_to(rows, dtype(shares))}, false);
    const ValueId sum = builder_.reduce(Reduction::Sum, cast(product, type), dims, true).front();
    mark(sum, false);
    const ValueId less = apply(ScalarOp::Mul, {shares, convert_to(sum, dtype(shares))}, false);
    keep(apply(ScalarOp::Sub, {product, less}, false), false);
  }

  // Sums of which one position counts, as losses pick a class.
  void one_hot_sum() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1 && exact(id) && dtype(id) != DType::Bool; });
    if (!x) return;
    const ValueId whole = is_float(dtype(*x)) ? small_integers(*x, 8) : *x;
    const ValueId source = cast(whole, !is_float(dtype(*x)) ? DType::I64 : dtype(*x) == DType::F64 ? DType::F64 : DType::F32);
    const int last = rank(source) - 1;
    const sym::Expr count = sizes(source)[static_cast<size_t>(last)];
    const ValueId positions = builder_.iota(0, 1, count, DType::I64, device_);
    mark(positions, true);
    Sizes outer = sizes(source);
    outer.back() = 1;
    const auto classes = pick_where([&](ValueId id) { return sizes(id) == outer && exact(id); });
    ValueId wanted = builder_.full(immediate(DType::I64, static_cast<double>(number(-1, 4))), DType::I64, device_, outer);
    mark(wanted, true);
    if (classes) wanted = convert_to(*classes, DType::I64);
    const ValueId chosen = apply(ScalarOp::Eq, {positions, wanted});
    const ValueId kept = apply(ScalarOp::Where, {chosen, source, immediate(dtype(source), 0)});
    const ValueId total = builder_.reduce(Reduction::Sum, kept, {last}, one_in(2)).front();
    keep(total, true);
  }

  void reshape() {
    const ValueId x = pick_value();
    Sizes shape = sizes(x);
    if (one_in(3)) shape.insert(shape.begin() + number(0, std::ssize(shape)), 1);
    if (shape.size() >= 2 && one_in(2)) {  // merge two neighbours
      const auto d = static_cast<size_t>(number(0, std::ssize(shape) - 2));
      shape[d] = shape[d] * shape[d + 1];
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    }
    for (size_t d = 0; d < shape.size() && shape.size() < 5; ++d) {  // split a size with a factor of two
      if (sym::known_divisor(shape[d], out_.graph.assumptions) % 2 != 0 || one_in(2)) continue;
      shape[d] = sym::floor_div(shape[d], 2);
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d) + number(0, 1), 2);
      break;
    }
    keep(builder_.reshape(x, shape), exact(x));
  }

  void permute_or_flip() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1; });
    if (!x) return;
    std::vector<int> dims(static_cast<size_t>(rank(*x)));
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int>(d);
    if (one_in(3)) return void(keep(builder_.flip(*x, {pick(dims)}), exact(*x)));
    std::shuffle(dims.begin(), dims.end(), random_);
    keep(builder_.permute(*x, dims), exact(*x));
  }

  void slice() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1; });
    if (!x) return;
    const auto dim = static_cast<size_t>(number(0, rank(*x) - 1));
    const sym::Expr extent = sizes(*x)[dim];
    const int64_t least = sym::bounds(extent, out_.graph.assumptions).low;
    if (extent.is_constant() && least >= 2 && one_in(2)) {
      const int64_t step = number(1, 2), start = number(0, least - 1);
      keep(builder_.slice(*x, static_cast<int>(dim), start, (least - start + step - 1) / step, step), exact(*x));
    } else if (least >= 2) {
      const int64_t cut = number(1, least - 1);
      keep(builder_.slice(*x, static_cast<int>(dim), number(0, cut), extent - cut, 1), exact(*x));
    }
  }

  void pad() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1; });
    if (!x) return;
    Sizes low, shape;
    for (sym::Expr extent : sizes(*x)) {
      const int64_t least = sym::bounds(extent, out_.graph.assumptions).low;
      low.push_back(number(least >= 2 && one_in(4) ? -1 : 0, 2));
      shape.push_back(extent + low.back() + number(0, 2));
    }
    keep(builder_.pad(*x, low, shape, immediate(dtype(*x), static_cast<double>(number(0, 2)))), exact(*x));
  }

  void concatenate() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1; });
    if (!x) return;
    const auto dim = static_cast<size_t>(number(0, rank(*x) - 1));
    std::vector<ValueId> parts{*x};
    bool is_exact = exact(*x);
    for (int64_t more = number(1, 2); more > 0; --more) {
      const auto y = pick_where([&](ValueId id) {
        if (rank(id) != rank(*x) || (!exact(id) && !is_float(dtype(*x)))) return false;
        for (size_t d = 0; d < sizes(id).size(); ++d)
          if (d != dim && sizes(id)[d] != sizes(*x)[d]) return false;
        return true;
      });
      if (!y) break;
      parts.push_back(convert_to(*y, dtype(*x)));
      is_exact = is_exact && exact(parts.back());
    }
    keep(builder_.cat(parts, static_cast<int>(dim)), is_exact);
  }

  // Index values within [0, extent), or negative ones that wrap to it.
  ValueId index_into(ValueId numbers, sym::Expr extent, bool wraps) {
    const ValueId whole = convert_to(numbers, DType::I64);
    const Operand bound = extent.is_constant() ? Operand(Scalar::from_integer(DType::I64, extent.constant())) : Operand(extent);
    const ValueId index = apply(ScalarOp::Remainder, {whole, bound});
    return wraps ? apply(ScalarOp::Sub, {index, bound}) : index;
  }

  void gather() {
    const auto x = pick_where([&](ValueId id) { return rank(id) >= 1; });
    const auto numbers = pick_where([&](ValueId id) { return exact(id) && rank(id) == 1; });
    if (!x || !numbers) return;
    const int dim = static_cast<int>(number(0, rank(*x) - 1));
    const bool wraps = one_in(3);
    const ValueId index = index_into(*numbers, sizes(*x)[static_cast<size_t>(dim)], wraps);
    graph::Gather kind;
    kind.wrap = wraps || one_in(2);
    kind.check = one_in(2);
    Sizes shape = sizes(*x);
    for (int d = 0; d < rank(*x); ++d) kind.source.push_back(d == dim ? -1 : d);
    kind.index_dims = {dim};
    shape[static_cast<size_t>(dim)] = sizes(index)[0];
    keep(builder_.gather(*x, {index}, kind, shape), exact(*x));
  }

  // ---- Scatters ----
  static bool is_narrow_float(DType type) { return is_float(type) && byte_size(type) < 4; }
  bool is_input(ValueId id) const { return !value(id).producer.valid(); }
  ValueId like(ValueId x) {  // a value of the same sizes, often itself
    const auto other = pick_where([&](ValueId id) { return sizes(id) == sizes(x) && (exact(id) || is_float(dtype(x))); });
    return other ? convert_to(*other, dtype(x)) : x;
  }
  // Elements that combine to the same in any order.
  ValueId combinable(ValueId x, Combine combine) {
    if (!is_float(dtype(x)) || !counts_repeats(combine)) return x;
    return cast(small_integers(x, combine == Combine::Mul || is_narrow_float(dtype(x)) ? 1 : 8), dtype(x));
  }
  Combine pick_combine(ValueId base) {
    constexpr Combine all[] = {Combine::Overwrite, Combine::Overwrite, Combine::Add, Combine::Mul, Combine::Max, Combine::Min};
    const Combine combine = pick(all);
    const bool possible = exact(base) && dtype(base) != DType::Bool;
    return possible ? combine : Combine::Overwrite;
  }

  // One or two dimensions by index tensors. Nothing where no numbers are at hand.
  std::optional<ValueId> scattered(ValueId base) {
    const auto numbers = pick_where([&](ValueId id) { return exact(id) && rank(id) == 1; });
    if (!numbers) return std::nullopt;
    graph::Scatter kind;
    kind.combine = pick_combine(base);
    // What is made of computed values may be no sum of small integers.
    if (counts_repeats(kind.combine) && (!is_input(base) || is_narrow_float(dtype(base)))) base = combinable(base, kind.combine);
    const bool by_order = kind.combine == Combine::Overwrite && shape_.device == DeviceType::Cuda;
    const bool wraps = one_in(3);
    std::vector<ValueId> places, taken;
    graph::Gather take;
    Sizes shape{sizes(*numbers)[0]};
    for (int d = 0; d < rank(base); ++d) {
      const bool last = d + 1 == rank(base), indexed = places.size() < 2 && ((last && places.empty()) || one_in(2));
      const sym::Expr extent = sizes(base)[static_cast<size_t>(d)];
      kind.target.push_back(indexed ? -1 - static_cast<int>(places.size()) : static_cast<int>(shape.size()));
      if (indexed) {
        places.push_back(index_into(*numbers, extent, wraps));
        taken.push_back(index_into(convert_to(*numbers, DType::I64), extent, false));
      } else {
        shape.push_back(extent);
      }
    }
    kind.index_dims = take.index_dims = {0};
    kind.wrap = take.wrap = true;
    kind.check = one_in(2);
    take.source = kind.target;
    ValueId from = like(base);
    if (kind.combine != Combine::Overwrite && !exact(from)) from = base;
    ValueId source = by_order ? builder_.full(immediate(dtype(base), 2), dtype(base), device_, shape) : builder_.gather(from, taken, take, shape);
    mark(source, by_order || exact(from));
    if (!by_order) source = combinable(source, kind.combine);
    kind.unique_indices = by_order && one_in(2);
    const bool is_exact = exact(base) && exact(source);
    const ValueId result = builder_.scatter(base, source, places, kind);
    mark(result, is_exact);
    return keep(result, is_exact);
  }
  void scatter() {
    const auto base = pick_where([&](ValueId id) { return rank(id) >= 1; });
    if (base) scattered(*base);
  }

  // A slice of a value changed and put back, or another slice put there.
  void write_window() {
    const auto base = pick_where([&](ValueId id) { return rank(id) >= 1; });
    if (!base) return;
    const auto dim = static_cast<size_t>(number(0, rank(*base) - 1));
    const sym::Expr extent = sizes(*base)[dim];
    const int64_t least = sym::bounds(extent, out_.graph.assumptions).low;
    if (least < 2) return;
    const bool steps = extent.is_constant() && one_in(2);
    const int64_t step = steps ? number(1, 2) : 1, start = number(0, least - 1);
    const sym::Expr count = steps ? sym::Expr((least - start + step - 1) / step) : extent - start;
    const auto part = [&](ValueId of) {
      const ValueId window = builder_.slice(of, static_cast<int>(dim), start, count, step);
      mark(window, exact(of));
      return window;
    };
    std::optional<ValueId> source;
    if (one_in(3)) source = scattered(part(*base));
    if (!source || dtype(*source) != dtype(*base) || exact(*source) != exact(*base)) source = part(one_in(2) ? *base : like(*base));
    if (dtype(*base) != DType::Bool && one_in(2)) source = apply(ScalarOp::Neg, {*source});
    graph::Scatter kind;
    for (int d = 0; d < rank(*base); ++d) kind.target.push_back(d);
    kind.start.assign(kind.target.size(), 0);
    kind.step.assign(kind.target.size(), 1);
    kind.start[dim] = start;
    kind.step[dim] = step;
    const bool is_exact = exact(*base) && exact(*source);
    keep(builder_.scatter(*base, *source, {}, kind), is_exact);
  }

  void expand() {
    const ValueId x = pick_value();
    Sizes shape = sizes(x);
    for (sym::Expr& extent : shape)
      if (extent.is_constant(1)) extent = size();
    if (shape.size() < 4 && one_in(2)) shape.insert(shape.begin(), size());
    keep(builder_.expand(x, shape), exact(x));
  }

  void create() {
    if (one_in(2)) {
      const sym::Expr count = size();
      keep(builder_.iota(number(-3, 3), number(-2, 2), count, one_in(2) ? DType::I64 : DType::F32, device_), true);
    } else if (!symbols_.empty() && one_in(2)) {
      keep(builder_.full(pick(symbols_), DType::I64, device_, random_sizes()), true);
    } else {
      const DType type = pick(value_dtypes);
      keep(builder_.full(immediate(type, static_cast<double>(number(0, 3))), type, device_, random_sizes()), true);
    }
  }

  void call() {
    if (!shape_.externs) return;
    const auto x = pick_where([&](ValueId id) { return dtype(id) == DType::F32; });
    if (!x) return;
    graph::Extern callee;
    callee.callee = "fuzz::twice";
    callee.args = {Arg(OperandRef{0})};
    graph::Value result;
    result.dtype = dtype(*x);
    result.device = device_;
    result.sizes = sizes(*x);
    const bool is_exact = exact(*x);
    keep(builder_.call_extern(std::move(callee), {*x}, {std::move(result)})[0], is_exact);
  }

  // Whatever nothing reads is an output, and some intermediate values are.
  void add_outputs() {
    std::vector<bool> read(out_.graph.values.size(), false);
    for (const graph::Node& node : out_.graph.nodes)
      for (const Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand)) read[id->index()] = true;
    for (const ValueId id : pool_)
      if (!read[id.index()] || one_in(8)) builder_.output(one_in(4) ? laid_out(id) : id);
    if (!symbols_.empty() && one_in(4)) builder_.output_symbol(symbols_[0] * 2 + 1);
    for (size_t i = 0; i < out_.graph.inputs.size(); ++i) add_mutation(i);
  }
  // A copy of the value in other strides than its own.
  ValueId laid_out(ValueId id) {
    const ValueId copy = apply(ScalarOp::Identity, {id});
    out_.graph.values[copy].layout = {graph::Layout::Kind::Fixed, permuted_strides(sizes(copy))};
    return copy;
  }
  // Scatters into the input itself more often than others.
  void add_mutation(size_t position) {
    const graph::Input& input = out_.graph.inputs[position];
    if (input.kind != graph::Input::Kind::Tensor || one_in(3)) return;
    const Sizes& strides = value(input.value).layout.strides;  // nothing writes where elements share a place
    if (std::any_of(strides.begin(), strides.end(), [](sym::Expr stride) { return stride.is_constant(0); })) return;
    for (size_t i = pool_.size(); i-- > 0;) {
      const ValueId id = pool_[i];
      if (dtype(id) != dtype(input.value) || sizes(id) != sizes(input.value) || is_input(id)) continue;
      const graph::Node& node = out_.graph.nodes[value(id).producer];
      const bool into_it = node.as<graph::Scatter>() && node.operands[0] == Operand(input.value);
      if (into_it || (node.as<graph::Scatter>() && one_in(2)) || (node.as<graph::Elementwise>() && one_in(6)))
        return builder_.mutation(static_cast<uint32_t>(position), id);
    }
  }
};

}  // namespace

RandomGraph random_graph(uint64_t seed, const Shape& shape) { return Generator(seed, shape).run(); }

}  // namespace cxxinductor::fuzz

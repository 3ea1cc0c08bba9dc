// The pool of values that a random graph grows from: choices, nodes with what is known of their exactness, inputs.
//
// `exact`: bit-equal on every target; results of anything else are compared with a tolerance (graph_fuzz.h).
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "fuzz/graph_fuzz.h"
#include "support/error.h"

namespace cxxinductor::fuzz {

using graph::Operand;
using graph::ValueId;
using Sizes = std::vector<sym::Expr>;

inline constexpr DType value_dtypes[] = {DType::F32, DType::F32, DType::F32, DType::F64, DType::BF16, DType::F16,
                                         DType::I64, DType::I32, DType::U8,  DType::I8,  DType::Bool};

class ValuePool {
 protected:
  ValuePool(uint64_t seed, const Shape& shape) : random_(seed), shape_(shape), builder_(out_.graph), device_{shape.device, 0} {}

  // ---- Choices ----
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool one_in(int64_t n) { return number(1, n) == 1; }
  template <class Range>
  auto pick(const Range& range) {
    return *(std::begin(range) + number(0, std::ssize(range) - 1));
  }
  const graph::Value& value(ValueId id) const { return out_.graph.values[id]; }
  DType dtype(ValueId id) const { return value(id).dtype; }
  const Sizes& sizes(ValueId id) const { return value(id).sizes; }
  int rank(ValueId id) const { return static_cast<int>(sizes(id).size()); }
  bool exact(ValueId id) const { return id.index() >= out_.exact.size() || out_.exact[id.index()]; }

  ValueId pick_value() {  // late values more often: long chains
    const auto count = static_cast<int64_t>(pool_.size());
    return pool_[static_cast<size_t>(std::max(number(0, count - 1), number(0, count - 1)))];
  }
  template <class Accept>
  std::optional<ValueId> pick_where(Accept accept) {
    for (int attempt = 0; attempt < 12; ++attempt)
      if (const ValueId id = pick_value(); accept(id)) return id;
    return std::nullopt;
  }

  // ---- Recording ----
  void mark(ValueId id, bool is_exact) {
    out_.exact.resize(out_.graph.values.size(), true);
    out_.exact[id.index()] = is_exact;
  }
  ValueId keep(ValueId id, bool is_exact) {
    mark(id, is_exact);
    constexpr int64_t most_elements = 4096;
    const sym::Expr count = graph::element_count(sizes(id));
    const auto size_of = [&](std::string_view name) { return out_.symbols.at(std::string(name)); };
    if (sym::evaluate(count, size_of) <= most_elements) pool_.push_back(id);
    return id;
  }
  bool all_exact(const std::vector<Operand>& operands) const {
    return std::all_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      const auto* id = std::get_if<ValueId>(&operand);
      return id == nullptr || exact(*id);
    });
  }
  ValueId apply(ScalarOp op, std::vector<Operand> operands, bool reproducible = true) {
    const bool is_exact = reproducible && all_exact(operands);
    const size_t first_new = out_.graph.values.size();
    const ValueId result = builder_.elementwise(op, std::move(operands));
    for (size_t i = first_new; i < out_.graph.values.size(); ++i) mark(ValueId(i), is_exact);  // expansions too
    return result;
  }
  ValueId cast(ValueId x, DType to) {
    const bool is_exact = exact(x);
    const ValueId result = builder_.cast(x, to);
    mark(result, is_exact);
    return result;
  }
  Scalar immediate(DType type, double number_) const {
    return is_float(compute_type(type)) ? Scalar::from_real(compute_type(type), number_)
                                        : Scalar::from_integer(compute_type(type), static_cast<int64_t>(number_));
  }

  // Exact floats without NaN in [-limit, limit].
  ValueId tame(ValueId x, double limit) {
    const DType type = dtype(x);
    const ValueId limited = apply(ScalarOp::Clamp, {x, immediate(type, -limit), immediate(type, limit)});
    return apply(ScalarOp::Where, {apply(ScalarOp::Eq, {x, x}), limited, immediate(type, 0)});
  }
  ValueId small_integers(ValueId x, double limit) { return tame(apply(ScalarOp::Round, {x}), limit); }

  // ---- Inputs ----
  void add_symbols() {
    for (int64_t i = number(0, 2); i > 0; --i) {
      const std::string name = "s" + std::to_string(symbols_.size());
      constexpr int64_t divisors[] = {1, 1, 1, 2, 3, 4};
      const int64_t divisor = pick(divisors), low = divisor * number(1, 3);
      out_.graph.assumptions.set_range(name, {low, one_in(2) ? 64 : std::numeric_limits<int64_t>::max()});
      if (divisor > 1) out_.graph.assumptions.set_divisor(name, divisor);
      out_.symbols[name] = low + divisor * number(0, 3);
      symbols_.push_back(sym::Expr::symbol(name));
    }
  }
  sym::Expr size() {
    if (!symbols_.empty() && one_in(3)) return pick(symbols_);
    constexpr int64_t constants[] = {1, 2, 3, 4, 5, 8, 16};
    return pick(constants);
  }
  Sizes random_sizes() {
    Sizes result;
    for (int64_t r = number(0, 3); r > 0; --r) result.push_back(size());
    return result;
  }
  void add_input() {
    const size_t position = out_.graph.inputs.size();
    Sizes shape = pool_.empty() ? Sizes{size(), size()} : one_in(2) ? random_sizes() : sizes(pick_value());
    // Every symbol is read from an input's size.
    if (position < symbols_.size()) shape.push_back(symbols_[position]);
    const Sizes strides = input_strides(shape);
    keep(builder_.input("x" + std::to_string(position), pick(value_dtypes), device_, shape, strides), true);
  }

  // Dense in any order of dimensions, rows apart, every second element, or one element for a whole dimension.
  Sizes input_strides(const Sizes& shape) {
    Sizes strides = one_in(3) ? permuted_strides(shape) : graph::contiguous_strides(shape);
    if (shape.empty() || !one_in(4)) return strides;
    switch (number(0, 2)) {
      case 0:  // every second element
        for (sym::Expr& stride : strides) stride = stride * 2;
        break;
      case 1:  // a gap after each element of the outermost dimension
        strides = graph::contiguous_strides(shape);
        strides.front() = strides.front() + number(1, 3);
        break;
      default:
        strides[static_cast<size_t>(number(0, std::ssize(shape) - 1))] = 0;
    }
    return strides;
  }
  // Those of a dense tensor whose dimensions were permuted.
  Sizes permuted_strides(const Sizes& shape) {
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    Sizes strides(shape.size());
    sym::Expr next = 1;
    for (const size_t d : order) {
      strides[d] = next;
      next = next * shape[d];
    }
    return strides;
  }

  std::mt19937_64 random_;
  Shape shape_;
  RandomGraph out_;
  graph::Builder builder_;
  Device device_;
  std::vector<sym::Expr> symbols_;
  std::vector<ValueId> pool_;
};

}  // namespace cxxinductor::fuzz

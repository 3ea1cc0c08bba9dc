// Random graphs of elementwise ops, views, reductions, masks and gathers over a handful of small inputs.
#pragma once

#include "ir/graph/graph.h"
#include "support/error.h"

namespace fusion_tests {

using namespace cxxinductor;
using graph::ValueId;

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : seed_(seed * 2654435761u + 99) {}

  graph::Graph make() {
    graph_.assumptions.set_range("s0", {1, 64});
    const std::vector<std::vector<sym::Expr>> shapes = {{4, 6}, {6}, {s0, 4, 6}, {4, 1}, {s0, 24}, {2, 12}, {}};
    for (const auto& shape : shapes) {
      DType dtype = pick(3) ? DType::F32 : DType::BF16;
      values_.push_back(builder_.input(fmt::format("x{}", values_.size()), dtype, cuda, shape, graph::contiguous_strides(shape)));
    }
    indices_ = builder_.input("index", DType::I64, cuda, {5}, {1});
    const size_t inputs = values_.size();
    const int nodes = 4 + static_cast<int>(pick(24));
    for (int n = 0; n < nodes; ++n) grow();
    for (size_t v = inputs; v < values_.size(); ++v)
      if (v + 1 == values_.size() || pick(6) == 0) builder_.output(values_[v]);
    if (pick(2)) mutate();
    return std::move(graph_);
  }

 private:
  size_t pick(size_t n) {
    seed_ = seed_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<size_t>(seed_ >> 33) % n;
  }
  // Recent values more often, so that chains get long.
  ValueId any() {
    size_t back = pick(2) ? pick(std::min<size_t>(values_.size(), 4)) : pick(values_.size());
    return values_[values_.size() - 1 - back];
  }
  const std::vector<sym::Expr>& sizes(ValueId v) const { return graph_.values[v].sizes; }
  void add(ValueId v) { values_.push_back(v); }

  void grow() {
    try {
      grow(pick(16));
    } catch (const UserError&) {
      // Operands that do not fit: another node next time.
    }
  }

  void grow(size_t kind) {
    ValueId x = any();
    const std::vector<sym::Expr> shape = sizes(x);
    const size_t rank = shape.size();
    const size_t dim = rank ? pick(rank) : 0;
    switch (kind) {
      case 0:
      case 1: {
        const ScalarOp ops[] = {ScalarOp::Neg, ScalarOp::Tanh, ScalarOp::Relu, ScalarOp::Sigmoid, ScalarOp::Abs};
        add(builder_.elementwise(ops[pick(5)], {x}));
        break;
      }
      case 2:
      case 3:
      case 4: {
        ValueId y = builder_.cast(any(), graph_.values[x].dtype);
        const ScalarOp ops[] = {ScalarOp::Add, ScalarOp::Sub, ScalarOp::Maximum};
        add(builder_.elementwise(ops[pick(3)], {x, y}));
        break;
      }
      case 5:
        add(builder_.cast(x, graph_.values[x].dtype == DType::F32 ? DType::BF16 : DType::F32));
        break;
      case 6: {
        if (!rank) break;
        const Reduction reductions[] = {Reduction::Sum, Reduction::Max, Reduction::Welford};
        Reduction reduction = reductions[pick(3)];
        ValueId operand = builder_.cast(x, DType::F32);
        for (ValueId result : builder_.reduce(reduction, operand, {static_cast<int>(dim)}, pick(3) != 0)) add(result);
        break;
      }
      case 7: {
        std::vector<int> dims(rank);
        for (size_t d = 0; d < rank; ++d) dims[d] = static_cast<int>((d + 1 + pick(2)) % rank);
        add(builder_.permute(x, dims));
        break;
      }
      case 8:
        add(builder_.reshape(x, reshaped(shape)));
        break;
      case 9:
        slice(x, dim);
        break;
      case 10: {
        if (!rank) break;
        std::vector<sym::Expr> low(rank, 0), padded = shape;
        low[dim] = static_cast<int64_t>(pick(3));
        padded[dim] = padded[dim] + low[dim] + static_cast<int64_t>(pick(2));
        add(builder_.pad(x, low, padded, Scalar::from_real(DType::F32, 0.5)));
        break;
      }
      case 11: {
        if (!rank) break;
        ValueId y = pick(2) ? x : builder_.elementwise(ScalarOp::Neg, {x});
        add(builder_.cat({y, x}, static_cast<int>(dim)));
        break;
      }
      case 12:
        gather(x, dim);
        break;
      case 13: {
        const double numbers[] = {1.0, 0.0, -0.5};
        ValueId constant =
            builder_.full(Scalar::from_real(DType::F32, numbers[pick(3)]), graph_.values[x].dtype, cuda, pick(2) ? shape : std::vector<sym::Expr>{});
        const ScalarOp ops[] = {ScalarOp::Mul, ScalarOp::Sub, ScalarOp::Add};
        add(builder_.elementwise(ops[pick(3)], {x, constant}));
        break;
      }
      case 14:
        add(builder_.elementwise(ScalarOp::Identity, {x}));
        break;
      default: {
        if (!rank) break;
        add(builder_.flip(x, {static_cast<int>(dim)}));
        break;
      }
    }
  }

  std::vector<sym::Expr> reshaped(const std::vector<sym::Expr>& shape) {
    std::vector<sym::Expr> result;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool merges = d + 1 < shape.size() && pick(2);
      sym::Expr size = merges ? shape[d] * shape[d + 1] : shape[d];
      if (merges) ++d;
      if (size.is_constant() && size.constant() % 2 == 0 && pick(2)) {
        result.push_back(2);
        size = size.constant() / 2;
      }
      result.push_back(size);
    }
    return result;
  }

  void slice(ValueId x, size_t dim) {
    const std::vector<sym::Expr>& shape = sizes(x);
    if (shape.empty() || !shape[dim].is_constant() || shape[dim].constant() < 2) return;
    const int64_t size = shape[dim].constant(), kept = 1 + static_cast<int64_t>(pick(static_cast<size_t>(size) - 1));
    const auto start = static_cast<int64_t>(pick(static_cast<size_t>(size - kept + 1)));
    add(builder_.slice(x, static_cast<int>(dim), start, kept, 1));
  }

  // Rows of the operand by an index tensor, or by positions.
  void gather(ValueId x, size_t dim) {
    const std::vector<sym::Expr>& shape = sizes(x);
    if (shape.empty() || !shape[dim].is_constant() || shape[dim].constant() < 4) return;
    graph::Gather kind;
    std::vector<sym::Expr> result = shape;
    for (size_t d = 0; d < shape.size(); ++d) kind.source.push_back(d == dim ? -1 : static_cast<int>(d));
    kind.index_dims = {static_cast<int>(dim)};
    kind.check = pick(2) != 0;
    ValueId index = indices_;
    result[dim] = 5;
    if (pick(2)) {
      index = builder_.iota(1, 1, 3, DType::I64, cuda);
      result[dim] = 3;
    }
    add(builder_.gather(x, {index}, kind, result));
  }

  // An input updated from values of its own shape.
  void mutate() {
    for (size_t i = values_.size(); i-- > 0;) {
      if (sizes(values_[i]) != sizes(values_[0]) || graph_.values[values_[i]].dtype != graph_.values[values_[0]].dtype) continue;
      if (values_[i] == values_[0]) return;
      builder_.mutation(0, values_[i]);
      return;
    }
  }

  uint64_t seed_;
  graph::Graph graph_;
  graph::Builder builder_{graph_};
  const Device cuda{DeviceType::Cuda, 0};
  const sym::Expr s0 = sym::Expr::symbol("s0");
  std::vector<ValueId> values_;
  ValueId indices_;
};

}  // namespace fusion_tests

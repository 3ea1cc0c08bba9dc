// Losses and their gradients.
#include "model/decompose/fragment.h"

namespace cxxinductor::model {
namespace {

constexpr int64_t no_reduction = 0, mean_reduction = 1, sum_reduction = 2;  // at::Reduction

Arg reduce(Fragment& f, const Arg& loss, int64_t reduction) {
  if (reduction == mean_reduction) return f("aten::mean", {loss});
  if (reduction == sum_reduction) return f("aten::sum", {loss});
  return loss;
}

struct Pair {
  Arg self, target;
  DType dtype;
};

// Both operands in the compute type of their common one; none where they are not of one float type.
std::optional<Pair> pair_of(Fragment& f) {
  const CallValueInfo self = f.operand("self"), target = f.operand("target");
  if (self.dtype != target.dtype || !is_floating(self.dtype)) return std::nullopt;
  return Pair{f.wide(f["self"]), f.wide(f["target"]), self.dtype};
}

Replacement mse_loss(Fragment& f) {
  const auto pair = pair_of(f);
  if (!pair) return std::nullopt;
  const Arg difference = f("aten::sub.Tensor", {pair->self, pair->target});
  const Arg loss = f.cast(f("aten::mul.Tensor", {difference, difference}), pair->dtype);
  return std::vector{reduce(f, loss, f.arguments().integer("reduction"))};
}

Replacement smooth_l1_loss(Fragment& f) {
  const auto pair = pair_of(f);
  const Arg given = f["beta"];
  const double beta = f.arguments().real(given);
  if (!pair || beta < 0) return std::nullopt;
  const Arg distance = f("aten::abs", {f("aten::sub.Tensor", {pair->self, pair->target})});
  Arg loss = distance;
  if (beta > 0) {
    const Arg square = f("aten::mul.Tensor", {f("aten::mul.Tensor", {distance, 0.5}), distance});
    loss =
        f("aten::where.self", {f("aten::lt.Scalar", {distance, beta}), f("aten::div.Tensor", {square, beta}), f("aten::sub.Tensor", {distance, 0.5 * beta})});
  }
  return std::vector{reduce(f, f.cast(loss, pair->dtype), f.arguments().integer("reduction"))};
}

// Each step is a tensor of its own in eager.
Replacement soft_margin_loss(Fragment& f) {
  const CallValueInfo self = f.operand("self"), target = f.operand("target");
  if (self.dtype != target.dtype || self.sizes != target.sizes) return std::nullopt;
  const Arg product = f("aten::mul.Tensor", {f("aten::neg", {f["target"]}), f["self"]});
  const Arg loss = f("aten::log1p", {f("aten::exp", {product})});
  return std::vector{reduce(f, loss, f.arguments().integer("reduction"))};
}

Replacement binary_cross_entropy_with_logits(Fragment& f) {
  const Arg self = f["self"], target = f["target"];
  const DType dtype = f.dtype(self);
  for (const char* name : {"target", "weight", "pos_weight"})
    if (f.has(name) && f.dtype(f[name]) != dtype) return std::nullopt;
  if (f.info(self).sizes != f.info(target).sizes) return std::nullopt;
  Arg logarithm = f.all("aten::log_sigmoid_forward", {self}).front();
  if (f.has("pos_weight")) {
    const Arg excess = f("aten::sub.Tensor", {f["pos_weight"], 1});
    logarithm = f("aten::mul.Tensor", {logarithm, f("aten::add.Tensor", {f("aten::mul.Tensor", {excess, target}), 1})});
  }
  const Arg rest = f("aten::add.Tensor", {f("aten::neg", {target}), 1});
  Arg loss = f("aten::sub.Tensor", {f("aten::mul.Tensor", {rest, self}), logarithm});
  if (f.has("weight")) loss = f("aten::mul.Tensor", {loss, f["weight"]});
  return std::vector{reduce(f, loss, f.arguments().integer("reduction"))};
}

// Classes are in dimension 1 of batches, 0 of a single row.
Replacement nll_loss(Fragment& f) {
  const CallValueInfo self = f.operand("self"), target = f.operand("target");
  const int64_t reduction = f.arguments().integer("reduction"), dim = self.sizes.size() < 2 ? 0 : 1;
  if (!is_floating(self.dtype) || target.sizes.size() + 1 != self.sizes.size()) return std::nullopt;
  const Arg counts = f("aten::ne.Scalar", {f["target"], f.arguments().integer("ignore_index")});
  const Arg zero = f.number(int64_t{0}, target.dtype, f["self"]), none = f.number(0.0, self.dtype, f["self"]);
  const Arg classes = f("aten::where.self", {counts, f["target"], zero});
  const Arg chosen = f("aten::squeeze.dim", {f("aten::gather", {f["self"], dim, f("aten::unsqueeze", {classes, dim})}), dim});
  Arg loss = f("aten::neg", {chosen});
  Arg weights = f.cast(counts, self.dtype);
  if (f.has("weight")) {
    const Arg of_classes = f("aten::index.Tensor", {f["weight"], ArgList{classes}});
    loss = f("aten::mul.Tensor", {loss, of_classes});
    weights = f("aten::where.self", {counts, of_classes, none});
  }
  loss = f("aten::where.self", {counts, loss, none});
  if (reduction == no_reduction && !target.sizes.empty()) return std::vector{loss, f.number(0.0, self.dtype, f["self"])};
  const Arg total_weight = f("aten::sum", {weights}), total = f("aten::sum", {loss});
  if (reduction == mean_reduction) return std::vector{f("aten::div.Tensor", {total, total_weight}), total_weight};
  if (reduction == sum_reduction) return std::vector{total, total_weight};
  return std::nullopt;
}

// By comparing class numbers with the target: a scatter would not fuse.
Replacement nll_loss_backward(Fragment& f) {
  const CallValueInfo self = f.operand("self");
  const int64_t reduction = f.arguments().integer("reduction");
  const size_t dim = self.sizes.size() < 2 ? 0 : 1;
  if (self.sizes.empty() || f.operand("target").sizes.size() + 1 != self.sizes.size()) return std::nullopt;
  const auto position = static_cast<int64_t>(dim);
  std::vector<sym::Expr> along(self.sizes.size() - dim, 1);
  along.front() = self.sizes[dim];
  const auto by_class = [&](const Arg& tensor) { return along.size() == 1 ? tensor : f.view(tensor, along); };
  const auto over_classes = [&](const Arg& tensor) { return f("aten::unsqueeze", {tensor, position}); };
  const Arg numbers = f("aten::arange.start_step", {int64_t{0}, to_arg(self.sizes[dim]), int64_t{1}}, {{"dtype", DType::I64}, {"device", self.device}});
  const Arg equal = f("aten::eq.Tensor", {by_class(numbers), over_classes(f["target"])});
  const Arg counts = over_classes(f("aten::ne.Scalar", {f["target"], f.arguments().integer("ignore_index")}));
  const Arg chosen = f("aten::bitwise_and.Tensor", {equal, counts});
  Arg gradient = f["grad_output"];
  if (reduction == mean_reduction) gradient = f("aten::div.Tensor", {gradient, f["total_weight"]});
  if (reduction == no_reduction && self.sizes.size() > 1) gradient = over_classes(gradient);
  if (f.has("weight")) gradient = f("aten::mul.Tensor", {by_class(f["weight"]), gradient});
  const Arg negative = f("aten::neg", {gradient});
  return std::vector{f("aten::where.self", {chosen, negative, f.number(0.0, self.dtype, f["self"])})};
}

// factor, or factor over the number of elements where the loss is their mean: one number of the compute type.
Arg scale_of(Fragment& f, double factor, DType dtype) {
  if (f.arguments().integer("reduction") != mean_reduction) return f.number(factor, dtype, f["self"]);
  sym::Expr count = 1;
  for (sym::Expr size : f.operand("self").sizes) count = count * size;
  if (count.is_constant()) return f.number(factor / static_cast<double>(count.constant()), dtype, f["self"]);
  return f.cast(f("aten::div.Tensor", {f.number(factor, DType::F64, f["self"]), f.number(count, DType::F64, f["self"])}), dtype);
}

struct Gradient {
  Pair pair;
  Arg gradient;  // of the result, in the compute type
};
std::optional<Gradient> gradient_of(Fragment& f) {
  const auto pair = pair_of(f);
  if (!pair || f.dtype(f["grad_output"]) != pair->dtype) return std::nullopt;
  return Gradient{*pair, f.wide(f["grad_output"])};
}

Replacement mse_loss_backward(Fragment& f) {
  const auto given = gradient_of(f);
  if (!given) return std::nullopt;
  const Arg difference = f("aten::sub.Tensor", {given->pair.self, given->pair.target});
  const Arg scaled = f("aten::mul.Tensor", {scale_of(f, 2, f.dtype(difference)), difference});
  return std::vector{f.cast(f("aten::mul.Tensor", {scaled, given->gradient}), given->pair.dtype)};
}

Replacement smooth_l1_loss_backward(Fragment& f) {
  const auto given = gradient_of(f);
  const Arg beta_argument = f["beta"];
  const double beta = f.arguments().real(beta_argument);
  if (!given || beta < 0) return std::nullopt;
  const Arg x = f("aten::sub.Tensor", {given->pair.self, given->pair.target});
  const Arg scaled = f("aten::mul.Tensor", {scale_of(f, 1, f.dtype(x)), given->gradient});
  const Arg inside = f("aten::div.Tensor", {f("aten::mul.Tensor", {f("aten::mul.Tensor", {scale_of(f, 1, f.dtype(x)), x}), given->gradient}), beta});
  const Arg above = f("aten::where.self", {f("aten::ge.Scalar", {x, beta}), scaled, inside});
  const Arg found = f("aten::where.self", {f("aten::le.Scalar", {x, -beta}), f("aten::neg", {scaled}), above});
  return std::vector{f.cast(found, given->pair.dtype)};
}

// As ATen: the sigmoid minus one would cancel where the margin is wide.
Replacement soft_margin_loss_backward(Fragment& f) {
  const CallValueInfo self = f.operand("self"), target = f.operand("target");
  if (self.dtype != target.dtype || self.sizes != target.sizes) return std::nullopt;
  const Arg power = f("aten::exp", {f("aten::mul.Tensor", {f("aten::neg", {f["target"]}), f["self"]})});
  sym::Expr count = 1;
  if (f.arguments().integer("reduction") == mean_reduction)
    for (sym::Expr size : self.sizes) count = count * size;
  // A number is not rounded to 16 bits.
  const Arg scale = count.is_constant() ? Arg(count.is_constant(0) ? -1.0 : -1.0 / static_cast<double>(count.constant()))
                                        : f("aten::neg", {scale_of(f, 1, compute_type(self.dtype))});
  const Arg scaled = f("aten::mul.Tensor", {f("aten::mul.Tensor", {f["target"], power}), scale});
  const Arg quotient = f("aten::div.Tensor", {scaled, f("aten::add.Tensor", {power, 1})});
  return std::vector{f("aten::mul.Tensor", {quotient, f["grad_output"]})};
}

}  // namespace

void add_loss_decompositions(DecomposeTable& table) {
  add_decompositions(table, {"aten::mse_loss"}, mse_loss);
  add_decompositions(table, {"aten::mse_loss_backward"}, mse_loss_backward);
  add_decompositions(table, {"aten::smooth_l1_loss"}, smooth_l1_loss);
  add_decompositions(table, {"aten::smooth_l1_loss_backward"}, smooth_l1_loss_backward);
  add_decompositions(table, {"aten::soft_margin_loss"}, soft_margin_loss);
  add_decompositions(table, {"aten::soft_margin_loss_backward"}, soft_margin_loss_backward);
  add_decompositions(table, {"aten::binary_cross_entropy_with_logits"}, binary_cross_entropy_with_logits);
  add_decompositions(table, {"aten::nll_loss_forward", "aten::nll_loss2d_forward"}, nll_loss);
  add_decompositions(table, {"aten::nll_loss_backward", "aten::nll_loss2d_backward"}, nll_loss_backward);
}

}  // namespace cxxinductor::model

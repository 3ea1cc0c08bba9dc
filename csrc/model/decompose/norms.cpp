// Norms in training: batch norms with the statistics of the batch, and gradients of all.
#include <algorithm>
#include <numeric>

#include "model/decompose/fragment.h"

namespace cxxinductor::model {
namespace {

std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max<int64_t>(last - first, 0)));
  std::iota(dims.begin(), dims.end(), first);
  return dims;
}

sym::Expr product_of(const std::vector<sym::Expr>& sizes, const std::vector<int64_t>& dims) {
  sym::Expr product = 1;
  for (int64_t d : dims) product = product * sizes[static_cast<size_t>(d)];
  return product;
}

Arg times(Fragment& f, const Arg& a, const Arg& b) { return f("aten::mul.Tensor", {a, b}); }
Arg plus(Fragment& f, const Arg& a, const Arg& b) { return f("aten::add.Tensor", {a, b}); }
Arg minus(Fragment& f, const Arg& a, const Arg& b) { return f("aten::sub.Tensor", {a, b}); }

// ---- Layer norm ----------------------------------------------------------------------------------------------------

Replacement layer_norm_backward(Fragment& f) {
  const CallValueInfo input = f.operand("input"), statistic = f.operand("mean");
  const auto rank = static_cast<int64_t>(input.sizes.size());
  const int64_t axis = rank - static_cast<int64_t>(f.arguments().exprs("normalized_shape").size());
  if (axis < 0 || statistic.sizes.size() != input.sizes.size() || !is_floating(input.dtype)) return std::nullopt;
  const std::vector<int64_t> outer = range(0, axis), inner = range(axis, rank);
  const std::vector<bool> wanted = f.arguments().booleans("output_mask");
  const Arg x = f.wide(f["input"]), gradient = f.wide(f["grad_out"]), rstd = f.cast(f["rstd"], compute_type(input.dtype));
  const Arg normal = times(f, minus(f, x, f.cast(f["mean"], compute_type(input.dtype))), rstd);
  std::vector<Arg> results(3);
  if (wanted.at(0)) {
    const Arg weighted = f.has("weight") ? times(f, gradient, f.wide(f["weight"])) : gradient;
    const Arg count = to_arg(product_of(input.sizes, inner));
    const Arg along = times(f, normal, f.sum(times(f, weighted, normal), inner, true));
    const Arg rest = minus(f, minus(f, times(f, weighted, count), f.sum(weighted, inner, true)), along);
    results[0] = f.cast(times(f, f("aten::div.Tensor", {rstd, count}), rest), input.dtype);
  }
  if (wanted.at(1) && f.has("weight")) results[1] = f.sum(times(f, gradient, normal), outer);
  if (wanted.at(2) && f.has("bias")) results[2] = outer.empty() ? f("aten::clone", {gradient}) : f.sum(gradient, outer);
  return results;
}

// ---- Group norm ----------------------------------------------------------------------------------------------------

Replacement group_norm_backward(Fragment& f) {
  const CallValueInfo input = f.operand("input");
  const sym::Expr batch = f.arguments().expr("N"), channels = f.arguments().expr("C"), pixels = f.arguments().expr("HxW"), groups = f.arguments().expr("group"),
                  each = sym::floor_div(channels, groups);
  if (!is_floating(input.dtype)) return std::nullopt;
  const DType type = compute_type(input.dtype);
  const std::vector<bool> wanted = f.arguments().booleans("output_mask");
  const auto grouped = [&](const Arg& tensor) { return f.view(tensor, {batch, groups, each, pixels}); };
  const auto per_group = [&](const Arg& tensor) { return f.view(f.cast(tensor, type), {batch, groups, 1}); };
  const Arg x = grouped(f.wide(f["input"])), gradient = grouped(f.wide(f["grad_out"]));
  const Arg mean = per_group(f["mean"]), rstd = per_group(f["rstd"]);
  const Arg products = f.sum(times(f, gradient, x), {3}), sums = f.sum(gradient, {3});  // [batch, groups, each]
  std::vector<Arg> results(3);
  if (wanted.at(0)) {
    const Arg weight = f.has("weight") ? f.view(f.wide(f["weight"]), {1, groups, each}) : Arg();
    const auto weighted = [&](const Arg& tensor) { return f.sum(weight.is_none() ? tensor : times(f, tensor, weight), {2}, true); };
    const Arg all_products = weighted(products), all_sums = weighted(sums);
    const Arg count = to_arg(pixels * each);
    const Arg cube = times(f, times(f, rstd, rstd), rstd);
    const Arg slope = f("aten::div.Tensor", {times(f, minus(f, times(f, all_sums, mean), all_products), cube), count});
    const Arg shift = f("aten::neg", {plus(f, times(f, slope, mean), f("aten::div.Tensor", {times(f, all_sums, rstd), count}))});
    const auto over_pixels = [&](const Arg& tensor) { return f("aten::unsqueeze", {tensor, int64_t{3}}); };
    const Arg scale = over_pixels(weight.is_none() ? rstd : times(f, rstd, weight));
    const Arg found = plus(f, plus(f, times(f, gradient, scale), times(f, x, over_pixels(slope))), over_pixels(shift));
    results[0] = f.cast(f.view(found, input.sizes), input.dtype);
  }
  if (wanted.at(1)) {
    const Arg centred = times(f, minus(f, products, times(f, sums, mean)), rstd);
    results[1] = f.view(f.sum(centred, {0}), {channels});
  }
  if (wanted.at(2)) results[2] = f.view(f.sum(sums, {0}), {channels});
  return results;
}

// ---- Batch norm ----------------------------------------------------------------------------------------------------

// Dimensions but that of channels.
std::vector<int64_t> reduced_dims(const CallValueInfo& input) {
  std::vector<int64_t> dims = range(0, static_cast<int64_t>(input.sizes.size()));
  dims.erase(dims.begin() + 1);
  return dims;
}

struct BatchNorm {
  Arg output, mean, rstd;         // the statistics of the batch, by channel
  Arg running_mean, running_var;  // none where there are none
};

std::optional<BatchNorm> batch_norm_of_batch(Fragment& f) {
  const CallValueInfo input = f.operand("input");
  const bool trains = f.arguments().find("training") == nullptr || f.arguments().boolean("training");
  if (!trains || input.sizes.size() < 2 || !is_floating(input.dtype)) return std::nullopt;
  const std::vector<int64_t> dims = reduced_dims(input);
  std::vector<sym::Expr> by_channel(input.sizes.size(), 1);
  by_channel[1] = input.sizes[1];
  const std::vector<sym::Expr> channels{input.sizes[1]};
  const Arg x = f.wide(f["input"]);
  const DType type = f.dtype(x);
  const std::vector<Arg> moments = f.all("aten::var_mean.correction", {x, to_arg(dims)}, {{"correction", int64_t{0}}, {"keepdim", true}});
  const Arg variance = moments.at(0), mean = moments.at(1);
  const Arg epsilon = f["eps"], momentum_argument = f["momentum"];
  const Arg rstd = f("aten::rsqrt", {plus(f, variance, f.arguments().real(epsilon))});
  Arg output = times(f, minus(f, x, mean), rstd);
  if (f.has("weight")) output = times(f, output, f.view(f.cast(f["weight"], type), by_channel));
  if (f.has("bias")) output = plus(f, output, f.view(f.cast(f["bias"], type), by_channel));
  BatchNorm found{f.cast(output, input.dtype), f.view(mean, channels), f.view(rstd, channels), {}, {}};
  if (!f.has("running_mean") || !f.has("running_var")) return found;
  const double momentum = f.arguments().real(momentum_argument);
  const auto moved = [&](const Arg& running, const Arg& by) {
    const Arg kept = times(f, running, 1.0 - momentum);
    return f.cast(plus(f, times(f, f.cast(by, f.dtype(running)), momentum), kept), f.dtype(running));
  };
  const sym::Expr count = product_of(input.sizes, dims);
  const Arg ratio = f("aten::div.Tensor", {f.number(to_arg(count), DType::F64, x), f.number(to_arg(count - 1), DType::F64, x)});
  found.running_mean = moved(f["running_mean"], found.mean);
  found.running_var = moved(f["running_var"], times(f, f.view(variance, channels), f.cast(ratio, type)));
  return found;
}

// native_batch_norm writes to running statistics, which are none here.
Replacement batch_norm_without_statistics(Fragment& f) {
  if (f.has("running_mean") || f.has("running_var")) return std::nullopt;
  const auto found = batch_norm_of_batch(f);
  if (!found) return std::nullopt;
  return std::vector{found->output, found->mean, found->rstd};
}

Replacement functional_batch_norm(Fragment& f) {
  const auto found = batch_norm_of_batch(f);
  if (!found || found->running_mean.is_none()) return std::nullopt;
  return std::vector{found->output, found->mean, found->rstd, found->running_mean, found->running_var};
}

Replacement updating_batch_norm(Fragment& f) {
  const auto found = batch_norm_of_batch(f);
  if (!found || found->running_mean.is_none()) return std::nullopt;
  const Arg reserve = f("aten::empty.memory_format", {to_arg(f.result(3).sizes)}, {{"dtype", f.result(3).dtype}, {"device", f.result(3).device}});
  return std::vector{found->output, found->mean, found->rstd, reserve, found->running_mean, found->running_var};
}

Replacement batch_norm_backward(Fragment& f) {
  const CallValueInfo input = f.operand("input");
  const bool trains = f.arguments().boolean("train");
  if (input.sizes.size() < 2 || !is_floating(input.dtype) || !f.has(trains ? "save_mean" : "running_mean") || !f.has(trains ? "save_invstd" : "running_var"))
    return std::nullopt;
  const std::vector<bool> wanted = f.arguments().booleans("output_mask");
  const std::vector<int64_t> dims = reduced_dims(input);
  const DType type = compute_type(input.dtype);
  std::vector<sym::Expr> by_channel(input.sizes.size(), 1);
  by_channel[1] = input.sizes[1];
  const auto per_channel = [&](const Arg& tensor) { return f.view(f.cast(tensor, type), by_channel); };
  const Arg epsilon = f["eps"];
  const Arg mean = per_channel(f[trains ? "save_mean" : "running_mean"]);
  const Arg rstd = trains ? per_channel(f["save_invstd"]) : f("aten::rsqrt", {plus(f, per_channel(f["running_var"]), f.arguments().real(epsilon))});
  const Arg gradient = f.wide(f["grad_out"]), centred = minus(f, f.wide(f["input"]), mean);
  const Arg total = f.sum(gradient, dims, true), along = f.sum(times(f, gradient, centred), dims, true);
  std::vector<Arg> results(3);
  if (wanted.at(0)) {
    const Arg scale = f.has("weight") ? times(f, rstd, per_channel(f["weight"])) : rstd;
    Arg found = gradient;
    if (trains) {
      const Arg count = to_arg(product_of(input.sizes, dims));
      const Arg slope = times(f, f("aten::div.Tensor", {along, count}), times(f, rstd, rstd));
      found = minus(f, minus(f, gradient, times(f, centred, slope)), f("aten::div.Tensor", {total, count}));
    }
    results[0] = f.cast(times(f, found, scale), input.dtype);
  }
  const std::vector<sym::Expr> channels{input.sizes[1]};
  if (wanted.at(1)) results[1] = f.view(times(f, along, rstd), channels);
  if (wanted.at(2)) results[2] = f.view(total, channels);
  return results;
}

}  // namespace

void add_norm_decompositions(DecomposeTable& table) {
  add_decompositions(table, {"aten::native_layer_norm_backward"}, layer_norm_backward);
  add_decompositions(table, {"aten::native_group_norm_backward"}, group_norm_backward);
  add_decompositions(table, {"aten::native_batch_norm", "aten::_native_batch_norm_legit.no_stats"}, batch_norm_without_statistics);
  add_decompositions(table, {"aten::_native_batch_norm_legit_functional"}, functional_batch_norm);
  add_decompositions(table, {"aten::_batch_norm_with_update_functional"}, updating_batch_norm);
  add_decompositions(table, {"aten::native_batch_norm_backward"}, batch_norm_backward);
}

}  // namespace cxxinductor::model

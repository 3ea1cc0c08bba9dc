// Paddings, shuffles of pixels, copies, matrices of positions, and a few pointwise ops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "model/decompose/fragment.h"

namespace cxxinductor::model {
namespace {

Arg positions(Fragment& f, sym::Expr first, sym::Expr end, Device device) {
  return f("aten::arange.start_step", {to_arg(first), to_arg(end), int64_t{1}}, {{"dtype", DType::I64}, {"device", device}});
}

Arg clone(Fragment& f, const Arg& tensor) {
  return f("aten::clone", {tensor}, {{"memory_format", MemoryFormatArg{static_cast<int>(MemoryFormat::Contiguous)}}});
}

// ---- Paddings ------------------------------------------------------------------------------------------------------

// place: of a position of the result, 0 at the first element of the operand, whose last position is given.
template <class Place>
Replacement padded(Fragment& f, const Place& place) {
  const CallValueInfo input = f.operand("self");
  const std::vector<sym::Expr> padding = f.arguments().exprs("padding");
  const size_t rank = input.sizes.size(), count = padding.size() / 2;
  if (count > rank) return std::nullopt;
  ArgList indices(rank - count, Arg());
  for (size_t i = 0; i < count; ++i) {  // from the first padded dimension on; paddings begin with the last
    const sym::Expr size = input.sizes[rank - count + i], before = padding[2 * (count - 1 - i)], after = padding[2 * (count - 1 - i) + 1];
    const Arg index = place(positions(f, -before, size + after, input.device), to_arg(size - 1));
    std::vector<sym::Expr> along(count - i, 1);
    along.front() = size + before + after;
    indices.push_back(f.view(index, along));
  }
  return std::vector{f("aten::index.Tensor", {f["self"], indices})};
}

Replacement reflection_pad(Fragment& f) {
  return padded(f, [&](const Arg& position, const Arg& last) {
    const Arg from_last = f("aten::abs", {f("aten::sub.Tensor", {f("aten::abs", {position}), last})});
    return f("aten::add.Tensor", {f("aten::neg", {from_last}), last});
  });
}

Replacement replication_pad(Fragment& f) {
  return padded(f, [&](const Arg& position, const Arg& last) { return f("aten::clamp", {position, int64_t{0}, last}); });
}

// ---- Shuffles ------------------------------------------------------------------------------------------------------

using Sizes = std::vector<sym::Expr>;

// The operand as [batch..., sizes...], with those dimensions in another order, as [batch..., results...].
std::vector<Arg> shuffled(Fragment& f, size_t batch, const Sizes& sizes, const std::vector<int64_t>& order, const Sizes& results) {
  const CallValueInfo input = f.operand("self");
  Sizes split(input.sizes.begin(), input.sizes.begin() + static_cast<std::ptrdiff_t>(batch)), joined = split;
  split.insert(split.end(), sizes.begin(), sizes.end());
  joined.insert(joined.end(), results.begin(), results.end());
  std::vector<int64_t> dims;
  for (size_t d = 0; d < batch; ++d) dims.push_back(static_cast<int64_t>(d));
  for (int64_t d : order) dims.push_back(static_cast<int64_t>(batch) + d);
  return {f.view(clone(f, f("aten::permute", {f.view(f["self"], split), to_arg(dims)})), joined)};
}

Replacement pixel_shuffle(Fragment& f) {
  const CallValueInfo input = f.operand("self");
  const int64_t by = f.arguments().integer("upscale_factor");
  if (input.sizes.size() < 3 || by < 1) return std::nullopt;
  const size_t batch = input.sizes.size() - 3;
  const sym::Expr channels = sym::floor_div(input.sizes[batch], by * by), rows = input.sizes[batch + 1], columns = input.sizes[batch + 2];
  return shuffled(f, batch, {channels, by, by, rows, columns}, {0, 3, 1, 4, 2}, {channels, rows * by, columns * by});
}

Replacement pixel_unshuffle(Fragment& f) {
  const CallValueInfo input = f.operand("self");
  const int64_t by = f.arguments().integer("downscale_factor");
  if (input.sizes.size() < 3 || by < 1) return std::nullopt;
  const size_t batch = input.sizes.size() - 3;
  const sym::Expr channels = input.sizes[batch], rows = sym::floor_div(input.sizes[batch + 1], by), columns = sym::floor_div(input.sizes[batch + 2], by);
  return shuffled(f, batch, {channels, rows, by, columns, by}, {0, 2, 4, 1, 3}, {channels * (by * by), rows, columns});
}

Replacement channel_shuffle(Fragment& f) {
  const CallValueInfo input = f.operand("self");
  const sym::Expr groups = f.arguments().expr("groups");
  if (input.sizes.size() < 3) return std::nullopt;
  const sym::Expr each = sym::floor_div(input.sizes[1], groups);
  Sizes sizes{groups, each}, results(input.sizes.begin() + 1, input.sizes.end());
  std::vector<int64_t> order{1, 0};
  for (size_t d = 2; d < input.sizes.size(); ++d) {
    sizes.push_back(input.sizes[d]);
    order.push_back(static_cast<int64_t>(d));
  }
  return shuffled(f, 1, sizes, order, results);
}

// ---- Copies and matrices -------------------------------------------------------------------------------------------

// "aten::t_copy": the view, and a copy of it.
Replacement view_copy(Fragment& f) {
  const Call& call = f.call();
  const std::string view = call.callee.substr(0, call.callee.size() - std::string_view("_copy").size());
  return std::vector{clone(f, f(call.overload.empty() ? view : view + "." + call.overload, call.args, call.kwargs))};
}

Replacement eye(Fragment& f) {
  const CallValueInfo result = f.result(0);
  const Arg rows = f.view(positions(f, 0, result.sizes.at(0), result.device), {result.sizes[0], 1});
  return std::vector{f.cast(f("aten::eq.Tensor", {rows, positions(f, 0, result.sizes.at(1), result.device)}), result.dtype)};
}

Replacement take(Fragment& f) {
  Sizes all{1};
  for (sym::Expr size : f.operand("self").sizes) all[0] = all[0] * size;
  return std::vector{f("aten::index.Tensor", {f.view(f["self"], all), ArgList{f["index"]}})};
}

Replacement rot90(Fragment& f) {
  const size_t rank = f.operand("self").sizes.size();
  const std::vector<int> dims = f.arguments().dims("dims", rank);
  if (dims.size() != 2) return std::nullopt;
  const int64_t first = dims[0], second = dims[1], turns = ((f.arguments().integer("k") % 4) + 4) % 4;
  const auto flipped = [&](const std::vector<int64_t>& of) { return f("aten::flip", {f["self"], to_arg(of)}); };
  if (turns == 0) return std::vector{clone(f, f["self"])};
  if (turns == 2) return std::vector{flipped({first, second})};
  return std::vector{f("aten::transpose.int", {flipped({turns == 1 ? second : first}), first, second})};
}

// ---- Reductions ----------------------------------------------------------------------------------------------------

Replacement count_nonzero(Fragment& f) {
  const Arg counted = f("aten::ne.Scalar", {f["self"], int64_t{0}});
  if (!f.has("dim")) return std::vector{f("aten::sum", {counted})};
  const Arg dims = f["dim"];
  return std::vector{f("aten::sum.dim_IntList", {counted, dims.as<ArgList>() != nullptr ? dims : Arg(ArgList{dims})})};
}

Replacement norm(Fragment& f) {
  const Arg order = f.has("p") ? f["p"] : Arg(int64_t{2});
  Fragment::Keywords keywords;
  if (f.has("dtype")) keywords.emplace_back("dtype", f["dtype"]);
  return std::vector{f("aten::linalg_vector_norm", {f["self"], order, f["dim"], f.has("keepdim") && f.arguments().boolean("keepdim")}, std::move(keywords))};
}

// Orders that the importer does not read.
Replacement vector_norm(Fragment& f) {
  const Arg given = f["ord"];
  const double order = f.arguments().real(given);
  const CallValueInfo self = f.operand("self");
  if (order == 0 || order == 1 || order == 2 || std::isinf(order) || !is_floating(self.dtype)) return std::nullopt;
  const DType dtype = f.result(0).dtype;
  const Arg powers = f("aten::pow.Tensor_Scalar", {f.cast(f("aten::abs", {f["self"]}), compute_type(dtype)), order});
  const Arg dims = f.has("dim") ? f["dim"] : Arg(ArgList());
  const Arg total = f("aten::sum.dim_IntList", {powers, dims, f.arguments().boolean("keepdim")});
  return std::vector{f("aten::pow.Tensor_Scalar", {total, 1 / order})};
}

// ---- Pointwise -----------------------------------------------------------------------------------------------------

double largest(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return 65504;
    case DType::BF16:
      return 0x1.FEp127;
    case DType::F32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

Replacement nan_to_num(Fragment& f) {
  const Arg self = f["self"];
  const DType dtype = f.dtype(self);
  if (!is_floating(dtype)) return std::nullopt;
  const auto given = [&](std::string_view name, double otherwise) {
    const Arg value = f[name];
    return f.number(value.is_none() ? otherwise : f.arguments().real(value), dtype, self);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Arg numbers = f("aten::where.self", {f("aten::ne.Tensor", {self, self}), given("nan", 0), self});
  const Arg bounded = f("aten::where.self", {f("aten::eq.Scalar", {self, infinity}), given("posinf", largest(dtype)), numbers});
  return std::vector{f("aten::where.self", {f("aten::eq.Scalar", {self, -infinity}), given("neginf", -largest(dtype)), bounded})};
}

Replacement hardshrink(Fragment& f) {
  const Arg self = f["self"], threshold = f["lambd"];
  const double width = f.arguments().real(threshold);
  const DType dtype = f.dtype(self);
  if (!is_floating(dtype)) return std::nullopt;
  const Arg inside = f("aten::logical_and", {f("aten::ge.Scalar", {self, -width}), f("aten::le.Scalar", {self, width})});
  return std::vector{f("aten::where.self", {inside, f.number(0.0, dtype, self), self})};
}

// A NaN stays one.
Replacement softshrink(Fragment& f) {
  const Arg threshold = f["lambd"];
  const double width = f.arguments().real(threshold);
  const DType dtype = f.dtype(f["self"]);
  if (!is_floating(dtype)) return std::nullopt;
  const Arg x = f.wide(f["self"]);
  const Arg below = f("aten::where.self", {f("aten::lt.Scalar", {x, -width}), f("aten::add.Tensor", {x, width}), f("aten::mul.Tensor", {x, 0.0})});
  return std::vector{f.cast(f("aten::where.self", {f("aten::gt.Scalar", {x, width}), f("aten::sub.Tensor", {x, width}), below}), dtype)};
}

Replacement heaviside(Fragment& f) {
  const Arg self = f["self"], values = f["values"];
  if (f.dtype(self) != f.dtype(values)) return std::nullopt;
  return std::vector{
      f("aten::where.self", {f("aten::eq.Scalar", {self, int64_t{0}}), values, f.cast(f("aten::gt.Scalar", {self, int64_t{0}}), f.dtype(self))})};
}

Replacement degrees_to_radians(Fragment& f) { return std::vector{f("aten::mul.Tensor", {f["self"], std::numbers::pi / 180})}; }
Replacement radians_to_degrees(Fragment& f) { return std::vector{f("aten::mul.Tensor", {f["self"], 180 / std::numbers::pi})}; }

Replacement infinite(Fragment& f, double value) {
  if (!is_floating(f.dtype(f["self"]))) return std::nullopt;
  return std::vector{f("aten::eq.Scalar", {f["self"], value})};
}
Replacement is_negative_infinity(Fragment& f) { return infinite(f, -std::numeric_limits<double>::infinity()); }
Replacement is_positive_infinity(Fragment& f) { return infinite(f, std::numeric_limits<double>::infinity()); }

}  // namespace

void add_movement_decompositions(DecomposeTable& table) {
  add_decompositions(table, {"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"}, reflection_pad);
  add_decompositions(table, {"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"}, replication_pad);
  add_decompositions(table, {"aten::pixel_shuffle"}, pixel_shuffle);
  add_decompositions(table, {"aten::pixel_unshuffle"}, pixel_unshuffle);
  add_decompositions(table, {"aten::channel_shuffle"}, channel_shuffle);
  add_decompositions(table,
                     {"aten::expand_copy", "aten::permute_copy", "aten::squeeze_copy", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims", "aten::t_copy",
                      "aten::transpose_copy.int", "aten::unsqueeze_copy"},
                     view_copy);
  add_decompositions(table, {"aten::eye", "aten::eye.m"}, eye);
  add_decompositions(table, {"aten::take"}, take);
  add_decompositions(table, {"aten::rot90"}, rot90);
  add_decompositions(table, {"aten::count_nonzero", "aten::count_nonzero.dim_IntList"}, count_nonzero);
  add_decompositions(table, {"aten::norm.Scalar", "aten::norm.ScalarOpt_dim", "aten::norm.ScalarOpt_dtype", "aten::norm.ScalarOpt_dim_dtype"}, norm);
  add_decompositions(table, {"aten::linalg_vector_norm"}, vector_norm);
  add_decompositions(table, {"aten::nan_to_num"}, nan_to_num);
  add_decompositions(table, {"aten::hardshrink"}, hardshrink);
  add_decompositions(table, {"aten::softshrink"}, softshrink);
  add_decompositions(table, {"aten::heaviside"}, heaviside);
  add_decompositions(table, {"aten::deg2rad"}, degrees_to_radians);
  add_decompositions(table, {"aten::rad2deg"}, radians_to_degrees);
  add_decompositions(table, {"aten::isneginf"}, is_negative_infinity);
  add_decompositions(table, {"aten::isposinf"}, is_positive_infinity);
}

}  // namespace cxxinductor::model

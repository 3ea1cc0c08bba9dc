// Forms of ops whose backward pass has less to keep: chains of cheap ops where one op hides them, and small tensors for
// large ones.
//
// What a softmax keeps is its result; of the chain, the operand and its rows' maxima and sums will do, which for the
// logarithms of a vocabulary saves gigabytes. A pool keeps eight bytes per element for a position in a small window:
// one is enough. The result of a layer norm follows from its operand, which its own gradient needs in any case, and from
// a mean and a deviation for each row.
#include <array>

#include "ir/device_types.h"
#include "model/decompose/fragment.h"

namespace cxxinductor::model {
namespace {

DType accumulate_type(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

Arg sum_of_rows(Fragment& f, const Arg& tensor) { return f("aten::sum.dim_IntList", {tensor, ArgList{f["dim"]}, true}); }

// exp(x - max) / sum(exp(x - max)) and its logarithm, in ATen's accumulate type, rounded once at the end.
Replacement softmax(Fragment& f, bool logarithm) {
  const CallValueInfo self = f.operand("self"), result = f.result(0);
  // Softmax gives dense rows; its parts would keep the strides of what they read.
  if (result.sizes.empty() || !is_floating(self.dtype) || result.strides != self.strides) return std::nullopt;
  if (!f.arguments().sizes.is_less(0, result.sizes[static_cast<size_t>(f.arguments().dim("dim", result.sizes.size()))])) return std::nullopt;
  const Arg wide = f.cast(f["self"], accumulate_type(result.dtype));
  const Arg shifted = f("aten::sub.Tensor", {wide, f("aten::amax", {wide, ArgList{f["dim"]}, true})});
  const Arg powers = f("aten::exp", {shifted});
  const Arg total = sum_of_rows(f, powers);
  const Arg found = logarithm ? f("aten::sub.Tensor", {shifted, f("aten::log", {total})}) : f("aten::div.Tensor", {powers, total});
  return std::vector{f.cast(found, result.dtype)};
}
Replacement plain_softmax(Fragment& f) { return softmax(f, false); }
Replacement logarithm_of_softmax(Fragment& f) { return softmax(f, true); }

// y (g - sum(g y)), and g - exp(y) sum(g) for the logarithm, in ATen's accumulate type, rounded where ATen rounds.
Replacement softmax_backward(Fragment& f, bool logarithm) {
  const CallValueInfo gradient = f.operand("grad_output"), output = f.operand("output"), result = f.result(0);
  if (result.sizes.empty() || !is_floating(output.dtype) || gradient.dtype != output.dtype) return std::nullopt;
  const DType type = accumulate_type(output.dtype);
  const Arg g = f.cast(f["grad_output"], type), y = f.cast(f["output"], type);
  if (logarithm) {
    const Arg exponential = f("aten::exp", {y});
    const Arg part = f("aten::mul.Tensor", {exponential, sum_of_rows(f, g)});
    return std::vector{f.cast(f("aten::sub.Tensor", {g, part}), result.dtype)};
  }
  const Arg weighted = f.cast(f("aten::mul.Tensor", {f["grad_output"], f["output"]}), type);  // a tensor of its own in eager
  const Arg part = f("aten::mul.Tensor", {y, sum_of_rows(f, weighted)});
  return std::vector{f.cast(f("aten::sub.Tensor", {weighted, part}), result.dtype)};
}
Replacement plain_softmax_backward(Fragment& f) { return softmax_backward(f, false); }
Replacement logarithm_of_softmax_backward(Fragment& f) { return softmax_backward(f, true); }

Replacement layer_norm(Fragment& f) {
  const CallValueInfo input = f.operand("input"), result = f.result(0);
  // Statistics that are rounded (those of 16-bit floats on the CPU) would not give the same result again.
  if (!is_floating(input.dtype) || f.result(1).dtype != accumulate_type(input.dtype)) return std::nullopt;
  const std::vector<Arg> norm = f.all("aten::native_layer_norm", {f["input"], f["normalized_shape"], f["weight"], f["bias"], f["eps"]});
  Arg found = f("aten::mul.Tensor", {f("aten::sub.Tensor", {f.wide(f["input"]), norm[1]}), norm[2]});
  if (f.has("weight")) found = f("aten::mul.Tensor", {found, f.wide(f["weight"])});
  if (f.has("bias")) found = f("aten::add.Tensor", {found, f.wide(f["bias"])});
  return std::vector{f.cast(found, result.dtype), norm[1], norm[2]};
}

// One dimension of a 2-d pool.
struct Window {
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;
  int64_t size = 0;     // of the input
  int64_t windows = 0;  // of the result
};

// Nothing where a number is symbolic.
std::optional<std::array<Window, 2>> windows_of(const Fragment& f) {
  const CallValueInfo self = f.operand("self"), indices = f.operand("indices");
  std::array<Window, 2> windows;
  const auto read = [&](const std::vector<sym::Expr>& numbers, int64_t Window::*member) {
    for (size_t d = 0; d < 2; ++d) {
      const sym::Expr number = d == 0 ? numbers.front() : numbers.back();
      if (!number.is_constant()) return false;
      windows[d].*member = number.constant();
    }
    return true;
  };
  const auto last_two = [](const std::vector<sym::Expr>& sizes) { return std::vector(sizes.end() - 2, sizes.end()); };
  const auto given = [&](const char* name) { return f.arguments().exprs(name); };
  const std::vector<sym::Expr> strides = given("stride").empty() ? given("kernel_size") : given("stride");
  if (self.sizes.size() < 2 || indices.sizes.size() < 2 || !read(given("kernel_size"), &Window::kernel) || !read(strides, &Window::stride) ||
      !read(given("padding"), &Window::padding) || !read(given("dilation"), &Window::dilation) || !read(last_two(self.sizes), &Window::size) ||
      !read(last_two(indices.sizes), &Window::windows))
    return std::nullopt;
  return windows;
}

// Number -> place in the window -> number, of the elements that a pool chose: between the two there is one byte per
// element.
class PoolIndices {
 public:
  PoolIndices(Fragment& f, const std::array<Window, 2>& windows) : f_(f), windows_(windows), first_rows_(first_places(0)), first_columns_(first_places(1)) {}

  Arg compressed(const Arg& indices) {
    const auto [rows, columns] = windows_;
    const Arg row = divided(indices, columns.size), column = remainder(indices, row, columns.size);
    const Arg down = divided(minus(row, first_rows_), rows.dilation);
    const Arg across = divided(minus(column, first_columns_), columns.dilation);
    return f_.cast(plus(times(down, columns.kernel), across), DType::I8);
  }
  Arg expanded(const Arg& places) {
    const auto [rows, columns] = windows_;
    const Arg place = f_.cast(places, DType::I64), down = divided(place, columns.kernel), across = remainder(place, down, columns.kernel);
    const Arg row = plus(times(down, rows.dilation), first_rows_), column = plus(times(across, columns.dilation), first_columns_);
    return plus(times(row, columns.size), column);
  }

 private:
  // Of each window.
  Arg first_places(size_t d) {
    const Window& window = windows_[d];
    Arg number = f_("aten::arange.start_step", {int64_t{0}, window.windows, int64_t{1}}, {{"dtype", DType::I64}, {"device", f_.operand("indices").device}});
    if (d == 0) number = f_("aten::view", {number, ArgList{window.windows, int64_t{1}}});
    return minus(times(number, window.stride), window.padding);
  }
  Arg divided(const Arg& number, int64_t by) { return by == 1 ? number : f_("aten::div.Tensor_mode", {number, by}, {{"rounding_mode", std::string("floor")}}); }
  Arg remainder(const Arg& number, const Arg& quotient, int64_t by) { return minus(number, times(quotient, by)); }
  Arg times(const Arg& a, const Arg& b) { return f_("aten::mul.Tensor", {a, b}); }
  Arg plus(const Arg& a, const Arg& b) { return f_("aten::add.Tensor", {a, b}); }
  Arg minus(const Arg& a, const Arg& b) { return f_("aten::sub.Tensor", {a, b}); }

  Fragment& f_;
  const std::array<Window, 2> windows_;
  const Arg first_rows_, first_columns_;
};

Replacement pool_backward(Fragment& f) {
  constexpr int64_t most_places = 127;  // of one byte
  const auto windows = windows_of(f);
  if (!windows || (*windows)[0].kernel * (*windows)[1].kernel > most_places) return std::nullopt;
  PoolIndices indices(f, *windows);
  const Arg again = indices.expanded(indices.compressed(f["indices"]));
  return std::vector{
      f("aten::max_pool2d_with_indices_backward", {f["grad_output"], f["self"], f["kernel_size"], f["stride"].is_none() ? Arg(ArgList()) : f["stride"],
                                                   f["padding"], f["dilation"], f["ceil_mode"], again})};
}

// The mask is drawn once. The product with it, in the compute type, is cheaper to make again than to keep.
Replacement dropout(Fragment& f) {
  const CallValueInfo input = f.operand("input");
  const double p = f.arguments().real(f["p"]);
  const bool is_training = f["train"].is_none() || f.arguments().boolean("train");
  if (!is_floating(input.dtype) || p <= 0 || p >= 1 || !is_training) return std::nullopt;
  const DType type = accumulate_type(input.dtype);
  const std::vector<Arg> drawn = f.all("aten::native_dropout", {f["input"], f["p"], f["train"]});
  // A kernel that divides in floats: aten/src/ATen/native/cuda/Dropout.cu.
  const bool in_floats = eager(input.device).dropout_scale_in_f32 && type == DType::F32;
  const double scale = in_floats ? static_cast<double>(1.0f / static_cast<float>(1 - p)) : 1 / (1 - p);
  const Arg kept = f("aten::mul.Tensor", {f.cast(f["input"], type), f.cast(drawn[1], type)});
  return std::vector{f.cast(f("aten::mul.Tensor", {kept, scale}), input.dtype), drawn[1]};
}

// Of a ReLU, where the operand was above 0: a byte in place of the operand. Other thresholds are compared in another type than `le` does.
Replacement threshold_backward(Fragment& f) {
  const CallValueInfo self = f.operand("self"), result = f.result(0);
  if (!is_floating(self.dtype) || f.dtype(f["grad_output"]) != self.dtype || result.strides != self.strides || f.arguments().real(f["threshold"]) != 0)
    return std::nullopt;
  const Arg is_below = f("aten::le.Scalar", {f["self"], int64_t{0}});
  const Arg zero = f.number(int64_t{0}, self.dtype, f["self"]);
  return std::vector{f("aten::where.self", {is_below, zero, f["grad_output"]})};
}

}  // namespace

void add_recompute_forms(DecomposeTable& table) {
  add_decompositions(table, {"aten::_softmax"}, plain_softmax);
  add_decompositions(table, {"aten::_log_softmax"}, logarithm_of_softmax);
  add_decompositions(table, {"aten::_softmax_backward_data"}, plain_softmax_backward);
  add_decompositions(table, {"aten::_log_softmax_backward_data"}, logarithm_of_softmax_backward);
  add_decompositions(table, {"aten::native_layer_norm"}, layer_norm);
  add_decompositions(table, {"aten::max_pool2d_with_indices_backward"}, pool_backward);
  add_decompositions(table, {"aten::native_dropout"}, dropout);
  add_decompositions(table, {"aten::threshold_backward"}, threshold_backward);
}

}  // namespace cxxinductor::model

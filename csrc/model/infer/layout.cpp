#include "model/infer/layout.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <ranges>

#include "ir/strides.h"

namespace cxxinductor::model {
namespace {

constexpr std::array<int, 4> channels_last_order = {1, 3, 2, 0};
constexpr std::array<int, 5> channels_last_3d_order = {1, 4, 3, 2, 0};

std::span<const int> order_of_channels_last(size_t rank) {
  if (rank == 4) return channels_last_order;
  if (rank == 5) return channels_last_3d_order;
  return {};
}

bool is_empty(const Exprs& sizes, SizeQuestions& questions) {
  return std::any_of(sizes.begin(), sizes.end(), [&](sym::Expr size) { return questions.are_equal(size, 0); });
}

// Dense in that order of dimensions, the innermost first.
template <class Order>
bool is_dense_in(const Order& order, const CallValueInfo& info, SizeQuestions& questions) {
  sym::Expr expected = 1;
  for (const auto d : order) {
    const auto dim = static_cast<size_t>(d);
    if (questions.are_equal(info.sizes[dim], 1)) continue;
    if (!questions.are_equal(info.strides[dim], expected)) return false;
    expected = expected * info.sizes[dim];
  }
  return true;
}

Exprs strides_in(std::span<const int> order, const Exprs& sizes) {
  Exprs strides(sizes.size());
  sym::Expr stride = 1;
  for (int d : order) {
    const auto dim = static_cast<size_t>(d);
    strides[dim] = stride;
    if (!sizes[dim].is_constant(0)) stride = stride * sizes[dim];
  }
  return strides;
}

// Whether strides read as channels-last, though there may be gaps. Ambiguous ones do not.
bool has_channels_last_strides(const CallValueInfo& info, SizeQuestions& questions) {
  const std::span<const int> order = order_of_channels_last(info.sizes.size());
  if (order.empty() || questions.are_equal(info.strides[1], 0)) return false;
  sym::Expr least = 0;
  for (int d : order) {
    const auto dim = static_cast<size_t>(d);
    if (questions.are_equal(info.sizes[dim], 0) || questions.is_less(info.strides[dim], least)) return false;
    if (d == 0 && questions.are_equal(least, info.strides[1])) return false;
    least = info.strides[dim] * info.sizes[dim];
  }
  return true;
}

// 1: the dimension `a` is outside of `b`; -1: inside; 0: not decided.
int compare_dimensions(const Exprs& sizes, std::span<const Exprs> operands, size_t a, size_t b, SizeQuestions& questions) {
  for (const Exprs& strides : operands) {
    const sym::Expr x = strides[a], y = strides[b];
    if (questions.are_equal(x, 0) || questions.are_equal(y, 0)) continue;
    if (questions.is_less(x, y)) return -1;
    if (questions.is_less(y, x)) return 1;
    if (!questions.are_equal(x, y)) {
      // They are equal only where a size is 1, and its stride does not matter.
      if (questions.is_less(x, y + 1)) return -1;
      if (questions.is_less(y, x + 1)) return 1;
    }
    if (questions.is_less(sizes[b], sizes[a])) return 1;
  }
  return 0;
}

}  // namespace

CallValueInfo new_tensor(DType dtype, Device device, Exprs sizes, Exprs strides) {
  CallValueInfo info;
  info.dtype = dtype;
  info.device = device;
  info.sizes = std::move(sizes);
  info.strides = std::move(strides);
  return info;
}

CallValueInfo contiguous(DType dtype, Device device, Exprs sizes) {
  Exprs strides = row_major_strides(sizes);
  return new_tensor(dtype, device, std::move(sizes), std::move(strides));
}

CallValueInfo contiguous_like(const CallValueInfo& like, Exprs sizes) { return contiguous(like.dtype, like.device, std::move(sizes)); }

CallValueInfo absent() {
  CallValueInfo info;
  info.kind = CallValueInfo::Kind::None;
  return info;
}

CallValueInfo size_value(sym::Expr e) {
  CallValueInfo info;
  info.kind = CallValueInfo::Kind::SymInt;
  info.symbol = e;
  return info;
}

Exprs channels_last_strides(const Exprs& sizes) { return strides_in(order_of_channels_last(sizes.size()), sizes); }

CallValueInfo in_format(DType dtype, Device device, Exprs sizes, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous) return contiguous(dtype, device, std::move(sizes));
  Exprs strides = channels_last_strides(sizes);
  return new_tensor(dtype, device, std::move(sizes), std::move(strides));
}

CallValueInfo empty_like(const CallValueInfo& like, MemoryFormat format, SizeQuestions& questions) {
  if (format != MemoryFormat::Preserve) return in_format(like.dtype, like.device, like.sizes, format);
  if (is_dense(like, questions)) return new_tensor(like.dtype, like.device, like.sizes, like.strides);
  return new_tensor(like.dtype, like.device, like.sizes, strides_in_order_of(like.sizes, {{like.strides}}, questions));
}

bool is_contiguous(const CallValueInfo& info, SizeQuestions& questions) {
  return is_dense_in(std::views::iota(size_t{0}, info.sizes.size()) | std::views::reverse, info, questions) || is_empty(info.sizes, questions);
}

bool is_channels_last_contiguous(const CallValueInfo& info, SizeQuestions& questions) {
  const std::span<const int> order = order_of_channels_last(info.sizes.size());
  return !order.empty() && is_dense_in(order, info, questions);
}

bool is_dense(const CallValueInfo& info, SizeQuestions& questions) {
  if (is_contiguous(info, questions) || is_channels_last_contiguous(info, questions)) return true;
  // Each dimension of more than one element is the next one of some order.
  std::vector<size_t> left;
  for (size_t d = 0; d < info.sizes.size(); ++d)
    if (!questions.are_equal(info.sizes[d], 1)) left.push_back(d);
  for (sym::Expr expected = 1; !left.empty();) {
    const auto next = std::find_if(left.begin(), left.end(), [&](size_t d) { return questions.are_equal(info.strides[d], expected); });
    if (next == left.end()) return false;
    expected = expected * info.sizes[*next];
    left.erase(next);
  }
  return true;
}

MemoryFormat suggested_format(const CallValueInfo& info, SizeQuestions& questions) {
  if (!has_channels_last_strides(info, questions)) return MemoryFormat::Contiguous;
  return info.sizes.size() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Exprs strides_in_order_of(const Exprs& sizes, std::span<const Exprs> operands, SizeQuestions& questions) {
  std::vector<int> order(sizes.size());  // from the innermost dimension
  std::iota(order.rbegin(), order.rend(), 0);
  for (size_t end = 1; end < order.size(); ++end) {
    size_t at = end;
    for (size_t before = end; before-- > 0;) {
      const int compared = compare_dimensions(sizes, operands, static_cast<size_t>(order[before]), static_cast<size_t>(order[at]), questions);
      if (compared < 0) break;
      if (compared == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  return strides_in(order, sizes);
}

Exprs pointwise_strides(const Exprs& sizes, std::span<const CallValueInfo* const> operands, bool has_numbers, SizeQuestions& questions) {
  const auto have_equal = [&](const Exprs& a, const Exprs& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](sym::Expr x, sym::Expr y) { return questions.are_equal(x, y); });
  };
  const auto all = [&](const auto& holds) { return std::all_of(operands.begin(), operands.end(), [&](const CallValueInfo* x) { return holds(*x); }); };
  if ((!has_numbers || sizes.empty()) && all([&](const CallValueInfo& x) { return have_equal(x.sizes, sizes); })) {
    if (all([&](const CallValueInfo& x) { return is_contiguous(x, questions); })) return row_major_strides(sizes);
    if (sizes.size() == 4 && all([&](const CallValueInfo& x) { return is_channels_last_contiguous(x, questions); })) return channels_last_strides(sizes);
    const Exprs& strides = operands.front()->strides;
    if (all([&](const CallValueInfo& x) { return have_equal(x.strides, strides) && is_dense(x, questions); })) return strides;
  }
  std::vector<Exprs> steps;
  for (const CallValueInfo* x : operands) {
    Exprs& step = steps.emplace_back(sizes.size());
    const size_t more = sizes.size() - x->sizes.size();
    for (size_t d = 0; d < x->sizes.size(); ++d) {
      const bool is_repeated = questions.are_equal(x->sizes[d], 1) && !questions.are_equal(sizes[more + d], 1);
      step[more + d] = is_repeated ? sym::Expr(0) : x->strides[d];
    }
  }
  return strides_in_order_of(sizes, steps, questions);
}

}  // namespace cxxinductor::model

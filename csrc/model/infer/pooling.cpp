// Pools; results have the format that their input's strides suggest.
#include <algorithm>

#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

sym::Expr at(const Exprs& values, size_t d) { return values.size() == 1 ? values.front() : values[d]; }

void require_numbers(const InferContext& c, const Exprs& values, size_t spatial, std::string_view what) {
  if (values.size() != 1 && values.size() != spatial) c.reject("expected 1 or {} numbers of '{}', found {}", spatial, what, print_expr_list(values));
}

void require_spatial(const InferContext& c, const CallValueInfo& input, size_t spatial) {
  if (input.sizes.size() != spatial + 1 && input.sizes.size() != spatial + 2)
    c.reject("expected an input of {} or {} dimensions, found {}", spatial + 1, spatial + 2, input.sizes.size());
}

Exprs window_sizes(const InferContext& c, const CallValueInfo& input, size_t spatial) {
  require_spatial(c, input, spatial);
  const Exprs kernel = c.exprs("kernel_size"), padding = c.exprs("padding");
  const Exprs stride = c.exprs("stride").empty() ? kernel : c.exprs("stride");
  const Exprs dilation = c.has("dilation") ? c.exprs("dilation") : Exprs{1};
  require_numbers(c, kernel, spatial, "kernel_size");
  require_numbers(c, stride, spatial, "stride");
  require_numbers(c, padding, spatial, "padding");
  require_numbers(c, dilation, spatial, "dilation");
  const bool ceil = c.boolean("ceil_mode");
  Exprs sizes = input.sizes;
  for (size_t d = 0; d < spatial; ++d) {
    sym::Expr& size = sizes[sizes.size() - spatial + d];
    const sym::Expr step = at(stride, d), pad = at(padding, d);
    if (c.sizes.is_less(at(kernel, d), pad * 2) && !c.has("dilation"))
      c.reject("expected paddings of at most half of {}, found {}", print_expr_list(kernel), print_expr_list(padding));
    const sym::Expr room = size + pad * 2 - at(dilation, d) * (at(kernel, d) - 1) - 1;
    sym::Expr count = sym::floor_div(ceil ? room + step - 1 : room, step) + 1;
    // The last window starts inside of the input, or its padding in front.
    if (ceil && c.sizes.is_less(size + pad - 1, (count - 1) * step))
      count = count - 1;
    else if (ceil && !c.sizes.is_less((count - 1) * step, size + pad))
      count = sym::min(count, sym::floor_div(size + pad - 1, step) + 1);
    if (c.sizes.is_less(count, 1)) c.reject("expected an input of at least the windows' size, found {}", print_expr_list(input.sizes));
    size = c.simplify(count);
  }
  return sizes;
}

CallValueInfo pooled(const InferContext& c, const CallValueInfo& input, Exprs sizes) {
  return in_format(input.dtype, input.device, std::move(sizes), suggested_format(input, c.sizes));
}

Rule pool(size_t spatial, bool with_indices) {
  return [=](InferContext& c) -> InferredResults {
    const CallValueInfo& input = c.tensor("self");
    Exprs sizes = window_sizes(c, input, spatial);
    const bool has_format = spatial == 2 || with_indices;  // other averages are contiguous
    const CallValueInfo result = has_format ? pooled(c, input, std::move(sizes)) : contiguous_like(input, std::move(sizes));
    std::vector<CallValueInfo> results(with_indices ? 2 : 1, result);
    if (with_indices) results.back().dtype = DType::I64;
    return results;
  };
}

Rule adaptive_pool(size_t spatial, bool with_indices) {
  return [=](InferContext& c) -> InferredResults {
    const CallValueInfo& input = c.tensor("self");
    require_spatial(c, input, spatial);
    const Exprs output = c.exprs("output_size");
    require_numbers(c, output, spatial, "output_size");
    Exprs sizes = input.sizes;
    for (size_t d = 0; d < spatial; ++d) sizes[sizes.size() - spatial + d] = at(output, d);
    const CallValueInfo result = spatial == 2 ? pooled(c, input, sizes) : contiguous_like(input, sizes);
    std::vector<CallValueInfo> results(with_indices ? 2 : 1, result);
    if (with_indices) results.back().dtype = DType::I64;
    return results;
  };
}

Rule unpool(size_t spatial) {
  return [spatial](InferContext& c) -> InferredResults {
    const CallValueInfo &self = c.tensor("self"), &indices = c.tensor("indices");
    require_spatial(c, self, spatial);
    c.require_rank(indices, self.sizes.size(), "indices");
    for (size_t d = 0; d < self.sizes.size(); ++d) c.require_equal(self.sizes[d], indices.sizes[d], "size of the indices");
    Exprs sizes(self.sizes.begin(), self.sizes.end() - static_cast<std::ptrdiff_t>(spatial));
    const Exprs output = c.exprs("output_size");
    require_numbers(c, output, spatial, "output_size");
    sizes.insert(sizes.end(), output.begin(), output.end());
    return std::vector{spatial == 2 ? pooled(c, self, sizes) : contiguous_like(self, sizes)};
  };
}

Rule fractional_pool(size_t spatial) {
  return [spatial](InferContext& c) -> InferredResults {
    const CallValueInfo& input = c.tensor("self");
    require_spatial(c, input, spatial);
    const Exprs output = c.exprs("output_size");
    Exprs sizes = input.sizes;
    for (size_t d = 0; d < spatial; ++d) sizes[sizes.size() - spatial + d] = at(output, d);
    CallValueInfo indices = contiguous_like(input, sizes);
    indices.dtype = DType::I64;
    return std::vector{contiguous_like(input, sizes), indices};
  };
}

}  // namespace

void add_pooling_rules(RuleTable& table) {
  add_rules(table, {"aten::max_pool2d_with_indices"}, pool(2, true));
  add_rules(table, {"aten::max_pool3d_with_indices"}, pool(3, true));
  add_rules(table, {"aten::avg_pool1d"}, pool(1, false));
  add_rules(table, {"aten::avg_pool2d"}, pool(2, false));
  add_rules(table, {"aten::avg_pool3d"}, pool(3, false));
  add_rules(table, {"aten::adaptive_avg_pool1d"}, adaptive_pool(1, false));
  add_rules(table, {"aten::_adaptive_avg_pool2d"}, adaptive_pool(2, false));
  add_rules(table, {"aten::_adaptive_avg_pool3d"}, adaptive_pool(3, false));
  add_rules(table, {"aten::adaptive_max_pool2d"}, adaptive_pool(2, true));
  add_rules(table, {"aten::adaptive_max_pool3d"}, adaptive_pool(3, true));
  add_rules(table, {"aten::fractional_max_pool2d"}, fractional_pool(2));
  add_rules(table, {"aten::fractional_max_pool3d"}, fractional_pool(3));
  add_rules(table, {"aten::max_unpool2d"}, unpool(2));
  add_rules(table, {"aten::max_unpool3d"}, unpool(3));
  add_rules(table,
            {"aten::max_pool2d_with_indices_backward", "aten::avg_pool2d_backward", "aten::max_pool3d_with_indices_backward",
             "aten::_adaptive_avg_pool2d_backward", "aten::adaptive_max_pool2d_backward"},
            suggested_as("self"));
  add_rules(table,
            {"aten::avg_pool3d_backward", "aten::_adaptive_avg_pool3d_backward", "aten::adaptive_max_pool3d_backward", "aten::fractional_max_pool2d_backward",
             "aten::fractional_max_pool3d_backward"},
            contiguous_as("self"));
}

}  // namespace cxxinductor::model

// Interpolations, and what moves elements between channels and positions.
#include <cmath>

#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

// Sizes of the spatial dimensions: given, or the input's times factors. None where a factor of a symbolic size has a
// fraction.
std::optional<Exprs> resized(const InferContext& c, const CallValueInfo& input, size_t spatial) {
  if (input.sizes.size() != spatial + 2) c.reject("expected {} dimensions, found {}", spatial + 2, input.sizes.size());
  Exprs sizes(input.sizes.begin(), input.sizes.begin() + 2);
  if (c.has("output_size")) {
    const Exprs given = c.exprs("output_size");
    if (given.size() != spatial) c.reject("expected {} sizes, found {}", spatial, print_expr_list(given));
    sizes.insert(sizes.end(), given.begin(), given.end());
    return sizes;
  }
  const Arg* factors = c.find("scale_factors");
  const auto* list = factors == nullptr ? nullptr : factors->as<ArgList>();
  if (list == nullptr || list->size() != spatial) c.reject("expected 'output_size' or {} factors", spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const sym::Expr size = input.sizes[d + 2];
    const double factor = c.real((*list)[d]);
    if (size.is_constant())
      sizes.push_back(static_cast<int64_t>(static_cast<double>(size.constant()) * factor));
    else if (std::trunc(factor) == factor)
      sizes.push_back(size * static_cast<int64_t>(factor));
    else
      return std::nullopt;
  }
  return sizes;
}

Rule interpolation(size_t spatial) {
  return [spatial](InferContext& c) -> InferredResults {
    const CallValueInfo& input = c.tensor(c.has("self") ? "self" : "input");
    const auto sizes = resized(c, input, spatial);
    if (!sizes) return std::nullopt;
    return std::vector{in_format(input.dtype, input.device, *sizes, suggested_format(input, c.sizes))};
  };
}

Rule gradient(bool has_format) {
  return [has_format](InferContext& c) -> InferredResults {
    const CallValueInfo& grad = c.tensor("grad_output");
    const MemoryFormat format = has_format ? suggested_format(grad, c.sizes) : MemoryFormat::Contiguous;
    return std::vector{in_format(grad.dtype, grad.device, c.exprs("input_size"), format)};
  };
}

// [batch, channels] of the input with the positions that the grid has.
InferredResults infer_grid_sampler(InferContext& c) {
  const CallValueInfo &input = c.tensor("input"), &grid = c.tensor("grid");
  if (grid.sizes.size() != input.sizes.size() || input.sizes.size() < 3)
    c.reject("expected a grid of {} dimensions, found {}", input.sizes.size(), grid.sizes.size());
  c.require_equal(input.sizes[0], grid.sizes[0], "batch of the grid");
  Exprs sizes(grid.sizes.begin(), grid.sizes.end() - 1);
  sizes.insert(sizes.begin() + 1, input.sizes[1]);
  return std::vector{contiguous_like(input, sizes)};
}

InferredResults infer_grid_sampler_backward(InferContext& c) {
  const CallValueInfo &input = c.tensor("input"), &grid = c.tensor("grid");
  const std::vector<bool> mask = c.booleans("output_mask");
  return std::vector{!mask.empty() && mask[0] ? contiguous_like(input, input.sizes) : absent(), contiguous_like(grid, grid.sizes)};
}

// Squares of positions become channels, or the reverse.
Rule pixel_shuffle(bool to_positions) {
  return [to_positions](InferContext& c) -> InferredResults {
    const CallValueInfo& self = c.tensor("self");
    const size_t rank = self.sizes.size();
    if (rank < 3) c.reject("expected at least 3 dimensions, found {}", rank);
    const sym::Expr factor = c.expr(to_positions ? "upscale_factor" : "downscale_factor");
    const auto divided = [&](sym::Expr e, sym::Expr by) { return c.simplify(sym::floor_div(e, by)); };
    Exprs sizes = self.sizes;
    sizes[rank - 3] = to_positions ? divided(sizes[rank - 3], factor * factor) : sizes[rank - 3] * factor * factor;
    for (size_t d = rank - 2; d < rank; ++d) sizes[d] = to_positions ? sizes[d] * factor : divided(sizes[d], factor);
    const MemoryFormat format = rank == 4 ? suggested_format(self, c.sizes) : MemoryFormat::Contiguous;
    return std::vector{in_format(self.dtype, self.device, sizes, format)};
  };
}

}  // namespace

void add_resize_rules(RuleTable& table) {
  struct Row {
    const char* name;
    size_t spatial;
    bool gradient_has_format = true;
  };
  const Row rows[] = {{"upsample_nearest1d", 1},        {"upsample_nearest2d", 2},        {"upsample_nearest3d", 3, false},
                      {"_upsample_nearest_exact1d", 1}, {"_upsample_nearest_exact2d", 2}, {"_upsample_nearest_exact3d", 3, false},
                      {"upsample_linear1d", 1},         {"upsample_bilinear2d", 2},       {"upsample_bicubic2d", 2, false},
                      {"upsample_trilinear3d", 3},      {"_upsample_bilinear2d_aa", 2},   {"_upsample_bicubic2d_aa", 2, false}};
  for (const Row& row : rows) {
    table.emplace(fmt::format("aten::{}", row.name), interpolation(row.spatial));
    table.emplace(fmt::format("aten::{}.vec", row.name), interpolation(row.spatial));
    table.emplace(fmt::format("aten::{}_backward", row.name), gradient(row.gradient_has_format));
  }
  add_rules(table, {"aten::grid_sampler_2d", "aten::grid_sampler_3d"}, infer_grid_sampler);
  add_rules(table, {"aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward"}, infer_grid_sampler_backward);
  add_rules(table, {"aten::pixel_shuffle"}, pixel_shuffle(true));
  add_rules(table, {"aten::pixel_unshuffle"}, pixel_shuffle(false));
  add_rules(table, {"aten::channel_shuffle"}, suggested_as("self"));
}

}  // namespace cxxinductor::model

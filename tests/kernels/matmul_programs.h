// Products as programs, shared by the tests under emulation, of NVRTC and on a GPU: two stored factors with their strides,
// prologues, an epilogue.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/matmul_tile.h"
#include "ir/plan/matmul.h"
#include "ir/plan/plan.h"
#include "support/error.h"

namespace cxxinductor::tests {

// How a factor of `rows` x k lies: along k, or along its rows; `padding` elements between rows.
struct FactorLayout {
  bool along_k = true;
  int padding = 0;
};

struct MatmulProgram {
  int m = 64, n = 64, k = 64, batch = 0;  // batch 0: none
  const char* dtype = "bf16";
  FactorLayout left = {}, right = {};
  // In these texts COORDS, SIZES, COLUMNS and DTYPE stand for what they say. The epilogue reads %sum, in f32, and stores.
  std::string epilogue = "%t = cast<DTYPE>(%sum)\n store @y[COORDS] = %t";
  std::string buffers = "output @y: DTYPE[SIZES]", inputs, outputs = "@y";
  std::string prologue;        // from %a and %b, the stored factors; gives %left and %right
  bool symbolic_rows = false;  // m is the symbol s0

  std::string text() const {
    const std::string b = batch ? "b, " : "", rows = symbolic_rows ? "s0" : std::to_string(m);
    const auto factor = [&](const char* name, const std::string& own, const FactorLayout& layout, const char* outer) {
      const std::string inner = layout.along_k ? std::to_string(k) : own, across = layout.along_k ? own : std::to_string(k);
      const std::string stride = layout.padding ? fmt::format("{} + {}", inner, layout.padding) : inner;
      std::string sizes = fmt::format("{}, {}", across, inner), strides = fmt::format("{}, 1", stride);
      if (batch) {
        sizes = fmt::format("{}, {}", batch, sizes);
        strides = fmt::format("({})*{}, {}", stride, across, strides);
      }
      const std::string coords = layout.along_k ? fmt::format("{}{}, k", b, outer) : fmt::format("{}k, {}", b, outer);
      return std::pair{fmt::format("@{}: DTYPE[{}] strides [{}]", name, sizes, strides), fmt::format("load @{}[{}]", name, coords)};
    };
    const auto [left_buffer, left_load] = factor("a", rows, left, "i");
    const auto [right_buffer, right_load] = factor("b", std::to_string(n), right, "j");
    std::string text =
        fmt::format(R"(program @product on DEVICE ({}, {}{}){} {{
  {}
  region @f0 over {}i < {}, j < {}, k < {} {{
    %a = {}
    %b = {}
    {}
    %wide_a = cast<f32>({})
    %wide_b = cast<f32>({})
    %product = mul(%wide_a, %wide_b)
    %sum = reduce<sum>(%product) over k
    {}
  }}
  return {}
}})",
                    left_buffer, right_buffer, inputs, symbolic_rows ? " where 1 <= s0 <= 4096" : "", buffers, batch ? fmt::format("b < {}, ", batch) : "",
                    rows, n, k, left_load, right_load, prologue, prologue.empty() ? "%a" : "%left", prologue.empty() ? "%b" : "%right", epilogue, outputs);
    const auto replace = [&text](std::string_view word, const std::string& with) {
      for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + with.size())) text.replace(at, word.size(), with);
    };
    replace("SIZES", fmt::format("{}{}, {}", batch ? fmt::format("{}, ", batch) : "", rows, n));
    replace("COORDS", b + "i, j");
    replace("DTYPE", dtype);
    replace("COLUMNS", std::to_string(n));
    return text;
  }
};

// gelu(product + bias) and that plus a residual, two outputs; eager's roundings.
inline MatmulProgram with_epilogue(MatmulProgram product) {
  product.inputs = ", @c: DTYPE[COLUMNS], @r: DTYPE[SIZES]";
  product.buffers = "output @y: DTYPE[SIZES]\n  output @z: DTYPE[SIZES]";
  product.outputs = "@y, @z";
  product.epilogue = R"(%t = cast<DTYPE>(%sum)
    %t.wide = cast<f32>(%t)
    %c = load @c[j]
    %c.wide = cast<f32>(%c)
    %biased = add(%t.wide, %c.wide)
    %rounded = cast<DTYPE>(%biased)
    %rounded.wide = cast<f32>(%rounded)
    %g = gelu(%rounded.wide)
    %y = cast<DTYPE>(%g)
    store @y[COORDS] = %y
    %y.wide = cast<f32>(%y)
    %r = load @r[COORDS]
    %r.wide = cast<f32>(%r)
    %z.wide = add(%y.wide, %r.wide)
    %z = cast<DTYPE>(%z.wide)
    store @z[COORDS] = %z)";
  return product;
}

// A bias added in f32, as addmm does, and the result kept in f32 as well.
inline MatmulProgram with_wide_epilogue(MatmulProgram product) {
  product.inputs = ", @c: DTYPE[COLUMNS]";
  product.buffers = "output @y: f32[SIZES]";
  product.epilogue = R"(%c = load @c[j]
    %c.wide = cast<f32>(%c)
    %biased = add(%sum, %c.wide)
    store @y[COORDS] = %biased)";
  return product;
}

// Factors that are computed: a relu of the left one, the right one scaled by a value for each k.
inline MatmulProgram with_prologue(MatmulProgram product) {
  product.inputs = ", @s: f32[" + std::to_string(product.k) + "]";
  product.prologue = R"(%a.wide = cast<f32>(%a)
    %a.positive = relu(%a.wide)
    %left = cast<DTYPE>(%a.positive)
    %s = load @s[k]
    %b.wide = cast<f32>(%b)
    %b.scaled = mul(%b.wide, %s)
    %right = cast<DTYPE>(%b.scaled))";
  return product;
}

// A plan of one product with another tile than the scheduler chose. most_blocks: of warp groups, whose blocks compute several tiles.
inline plan::Plan with_tile(plan::Plan plan, const MatmulTile& tile, std::optional<int> most_blocks = 3) {
  plan::Kernel& kernel = plan.kernels[plan::KernelId(0)];
  plan::Mapping& mapping = kernel.mapping;
  plan::set_tile(std::get<plan::Matmul>(mapping.shape), tile);
  sym::Expr blocks = 1;
  for (plan::VarId v : mapping.space) {
    const int size = v == plan::matmul_m(mapping) ? tile.m : v == plan::matmul_n(mapping) ? tile.n : 1;
    blocks = blocks * sym::ceil_div(kernel.region.vars[v].extent, size);
  }
  if (tile.warpgroups && most_blocks) blocks = sym::min(blocks, *most_blocks);
  for (plan::Step& step : plan.steps)
    if (auto* launch = std::get_if<plan::Launch>(&step)) launch->grid_x = blocks;
  return plan;
}

}  // namespace cxxinductor::tests

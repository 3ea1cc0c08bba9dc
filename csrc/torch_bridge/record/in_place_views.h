// Ops that change in place what a tensor shows of its memory, as the view that the tensor becomes.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <utility>

#include "torch_bridge/record/composites.h"

namespace cxxinductor::torch_bridge {

// By full name, "aten::t_". become(self, view): gives the tensor the metadata of its view. Null: the op is another one.
template <void (*become)(const at::Tensor& self, const at::Tensor& view)>
Composite find_in_place_view(std::string_view op) {
  static constexpr auto run = [](torch::jit::Stack& stack, const char* view, const char* overload) {
    const auto shown_as = c10::Dispatcher::singleton().findSchemaOrThrow(view, overload);
    const at::Tensor self = torch::jit::peek(stack, 0, shown_as.schema().arguments().size()).toTensor();
    shown_as.callBoxed(stack);
    become(self, stack.back().toTensor());
    stack.back() = self;
    return true;
  };
  using torch::jit::Stack;
  static constexpr auto rows = std::to_array<std::pair<std::string_view, Composite>>({
      {"aten::as_strided_", [](Stack& stack) { return run(stack, "aten::as_strided", ""); }},
      {"aten::squeeze_", [](Stack& stack) { return run(stack, "aten::squeeze", ""); }},
      {"aten::squeeze_.dim", [](Stack& stack) { return run(stack, "aten::squeeze", "dim"); }},
      {"aten::squeeze_.dims", [](Stack& stack) { return run(stack, "aten::squeeze", "dims"); }},
      {"aten::t_", [](Stack& stack) { return run(stack, "aten::t", ""); }},
      {"aten::transpose_", [](Stack& stack) { return run(stack, "aten::transpose", "int"); }},
      {"aten::unsqueeze_", [](Stack& stack) { return run(stack, "aten::unsqueeze", ""); }},
  });
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first == op; });
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace cxxinductor::torch_bridge

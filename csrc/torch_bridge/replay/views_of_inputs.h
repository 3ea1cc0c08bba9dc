// Outputs that show the memory of inputs that a graph writes. Calls without writes do not make them: they are made of
// the caller's tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include "model/call_graph.h"
#include "torch_bridge/input_symbols.h"

namespace cxxinductor::torch_bridge {

class ViewsOfInputs {
 public:
  struct View {
    uint32_t output = 0, input = 0;  // positions
    model::CallValueInfo shown;
    bool is_input = false;  // itself
  };

  ViewsOfInputs() = default;
  // Of calls that write, and whose values' storages are known.
  explicit ViewsOfInputs(const model::CallGraph& calls);

  const std::vector<View>& views() const { return views_; }
  // One tensor for each view.
  std::vector<at::Tensor> make(const std::vector<c10::IValue>& inputs) const;

 private:
  std::vector<View> views_;
  InputSymbols inputs_;
};

}  // namespace cxxinductor::torch_bridge

// Which nodes of TorchScript a region can hold: those that run on tensors without memory (interpret.h).
#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <set>

namespace cxxinductor::torch_bridge {

using NodeSet = std::set<const torch::jit::Node*>;

enum class Role : uint8_t {
  Compute,   // makes tensors that did not exist
  View,      // shows tensors in another way
  Helper,    // arithmetic on sizes, lists, texts and constants; control flow around it
  Boundary,  // reads elements, has effects that nobody records, or handles values that regions cannot take
};

// With those of the nodes in its blocks. excluded: nodes that are boundaries whatever they do.
Role role_of(torch::jit::Node* node, const NodeSet& excluded);

// Traces of PyTorch's own compute with sizes in tensors: what such a node gives is known without reading elements.
bool computes_size(const torch::jit::Node* node);
bool is_size_tensor(const torch::jit::Value* value);

// Lists and dictionaries that the node itself writes.
std::vector<torch::jit::Value*> written_containers(torch::jit::Node* node);
bool writes_container(torch::jit::Node* node);

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/record/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "support/error.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::autograd::Edge;
using torch::autograd::Node;
using torch::autograd::variable_list;

void require_no_hooks(const Node& node) {
  auto& seen = const_cast<Node&>(node);  // retains_grad_hooks has no const form
  if (!seen.tensor_pre_hooks().empty() || !seen.retains_grad_hooks().empty() || !node.pre_hooks().empty() || !node.post_hooks().empty())
    throw_unsupported("{}: a hook sees its gradient", node.name());
}

class BackwardWalk {
 public:
  BackwardWalk(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& output_gradients, const std::vector<at::Tensor>& inputs) {
    for (const at::Tensor& input : inputs) {
      inputs_.push_back(torch::autograd::impl::gradient_edge(input));
      ends_.insert(inputs_.back().function.get());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Edge edge = torch::autograd::impl::gradient_edge(outputs[i]);
      count_readers(edge.function.get());
      add(edge, output_gradients[i]);
    }
    for (const auto& [node, count] : readers_)
      if (count == 0) ready_.emplace(node->sequence_nr(), node);
  }

  std::vector<at::Tensor> run() {
    while (!ready_.empty()) {
      const auto last = std::prev(ready_.end());  // what was recorded last runs first, as in PyTorch's engine
      Node* node = last->second;
      ready_.erase(last);
      if (!ends_.contains(node)) run(*node);
    }
    std::vector<at::Tensor> found;
    for (const Edge& input : inputs_) {
      const auto buffer = buffers_.find(input.function.get());
      found.push_back(buffer == buffers_.end() || buffer->second.size() <= input.input_nr ? at::Tensor() : buffer->second[input.input_nr]);
    }
    return found;
  }

 private:
  // Of each node that is reached: how many edges lead to it.
  void count_readers(Node* from) {
    std::vector<Node*> open;
    if (readers_.emplace(from, 0).second) open.push_back(from);
    while (!open.empty()) {
      Node* node = open.back();
      open.pop_back();
      if (ends_.contains(node)) continue;
      for (const Edge& edge : node->next_edges()) {
        if (!edge.is_valid()) continue;
        const auto [reader, fresh] = readers_.emplace(edge.function.get(), 0);
        reader->second += 1;
        if (fresh) open.push_back(edge.function.get());
      }
    }
  }

  void add(const Edge& edge, const at::Tensor& gradient) {
    if (!gradient.defined()) return;
    variable_list& buffer = buffers_[edge.function.get()];
    buffer.resize(std::max<size_t>(edge.function->num_inputs(), edge.input_nr + 1));
    at::Tensor& sum = buffer[edge.input_nr];
    sum = sum.defined() ? at::add(sum, gradient) : gradient;
  }

  void run(Node& node) {
    require_no_hooks(node);
    variable_list& given = buffers_[&node];
    given.resize(node.num_inputs());
    const bool has_gradient = std::any_of(given.begin(), given.end(), [](const at::Tensor& one) { return one.defined(); });
    variable_list results(node.num_outputs());
    if (has_gradient) {
      results = node(std::move(given));
      torch::autograd::validate_outputs(node.next_edges(), results, [&](const std::string& message) { return node.name() + ": " + message; });
    }
    buffers_.erase(&node);
    for (size_t i = 0; i < node.num_outputs(); ++i) {
      const Edge& edge = node.next_edge(i);
      if (!edge.is_valid()) continue;
      add(edge, results[i]);
      if (--readers_[edge.function.get()] == 0) ready_.emplace(edge.function->sequence_nr(), edge.function.get());
    }
  }

  std::vector<Edge> inputs_;
  std::set<const Node*> ends_;
  std::map<Node*, size_t> readers_;  // edges from nodes that have not run
  std::map<Node*, variable_list> buffers_;
  std::set<std::pair<uint64_t, Node*>> ready_;
};

}  // namespace

std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& output_gradients,
                                  const std::vector<at::Tensor>& inputs) {
  const at::NoGradGuard no_history;
  return BackwardWalk(outputs, output_gradients, inputs).run();
}

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/record/gradient_form.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/effects.h"
#include "model/passes/functionalize.h"
#include "model/passes/split_gradients.h"
#include "support/error.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/dispatcher_schemas.h"

namespace cxxinductor::torch_bridge {
namespace {

using model::SplitGraphs;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// What calls of one form share.
struct GradientGraphs {
  std::shared_ptr<CompiledGraph> forward, backward;
  std::vector<SplitGraphs::Kept> kept;
  std::vector<at::Tensor> captured;
  size_t results = 0;
  int64_t kept_bytes = 0;
  std::vector<uint32_t> differentiable_inputs, differentiable_outputs;
};

// The backward pass of one call.
class BackwardNode final : public torch::autograd::Node {
 public:
  BackwardNode(std::shared_ptr<const GradientGraphs> graphs, torch::autograd::edge_list edges) : Node(std::move(edges)), graphs_(std::move(graphs)) {}

  std::string name() const override { return "CompiledFunctionBackward"; }

  // inputs: those of the forward graph; outputs: all that it returned, the results with their history.
  void keep(const std::vector<c10::IValue>& inputs, const std::vector<c10::IValue>& outputs) {
    for (const SplitGraphs::Kept& kept : graphs_->kept) {
      const bool is_input = kept.of == SplitGraphs::Kept::Of::Input;
      const c10::IValue& value = is_input ? inputs[kept.position] : outputs[kept.position];
      if (!value.isTensor()) {
        kept_.push_back({SavedVariable(), value});
        continue;
      }
      at::Tensor tensor = value.toTensor();
      if (!is_input && kept.position >= graphs_->results) share_version(tensor, outputs);
      const bool is_result = !is_input && kept.position < graphs_->results && tensor.grad_fn().get() == this;
      kept_.push_back({SavedVariable(tensor, is_result), {}});
    }
    for (uint32_t output : graphs_->differentiable_outputs) strides_.push_back(outputs[output].toTensor().strides().vec());
  }

  variable_list apply(variable_list&& gradients) override {
    if (at::GradMode::is_enabled()) throw_user_error("a compiled function has no gradients of gradients: call the function itself where create_graph is set");
    const std::lock_guard lock(mutex_);
    std::vector<c10::IValue> inputs;
    for (const Kept& kept : kept_) inputs.push_back(kept.number.isNone() ? c10::IValue(kept.tensor.unpack(shared_from_this())) : kept.number);
    for (size_t i = 0; i < gradients.size(); ++i) inputs.emplace_back(laid_out(i, std::move(gradients[i])));
    variable_list found;
    for (const c10::IValue& gradient : graphs_->backward->run(std::move(inputs))) found.push_back(gradient.isTensor() ? gradient.toTensor() : at::Tensor());
    return found;
  }

  void release_variables() override {
    const std::lock_guard lock(mutex_);
    for (Kept& kept : kept_) kept.tensor.reset_data();
  }

 private:
  struct Kept {
    SavedVariable tensor;
    c10::IValue number;
  };

  // What is kept may share memory with a result, which the caller may write to: autograd has to see it.
  void share_version(at::Tensor& tensor, const std::vector<c10::IValue>& outputs) const {
    for (size_t i = 0; i < graphs_->results; ++i)
      if (outputs[i].isTensor() && outputs[i].toTensor().defined() && outputs[i].toTensor().is_alias_of(tensor))
        torch::autograd::impl::set_version_counter(tensor, torch::autograd::impl::version_counter(outputs[i].toTensor()));
  }

  // As the backward graph was compiled for: of the output's strides.
  at::Tensor laid_out(size_t output, at::Tensor gradient) const {
    if (!gradient.defined()) gradient = input_metadata(output).zeros_like();
    gradient = gradient.resolve_conj().resolve_neg();
    if (gradient.strides() == at::IntArrayRef(strides_[output])) return gradient;
    return at::empty_strided(gradient.sizes(), strides_[output], gradient.options()).copy_(gradient);
  }

  const std::shared_ptr<const GradientGraphs> graphs_;
  std::vector<Kept> kept_;
  std::vector<std::vector<int64_t>> strides_;  // of the differentiable outputs
};

std::vector<c10::IValue> run(const std::shared_ptr<const GradientGraphs>& graphs, std::vector<c10::IValue> inputs) {
  std::vector<c10::IValue> all = inputs;
  all.insert(all.end(), graphs->captured.begin(), graphs->captured.end());
  std::vector<c10::IValue> outputs;
  {
    const at::NoGradGuard no_history;
    outputs = graphs->forward->run(std::move(inputs));
  }
  torch::autograd::edge_list edges;
  for (uint32_t input : graphs->differentiable_inputs) edges.push_back(torch::autograd::impl::gradient_edge(all[input].toTensor()));
  const auto node = std::shared_ptr<BackwardNode>(new BackwardNode(graphs, std::move(edges)), torch::autograd::deleteNode);
  for (uint32_t output : graphs->differentiable_outputs) torch::autograd::set_history(outputs[output].toTensor(), node);
  node->keep(all, outputs);
  outputs.resize(graphs->results);
  return outputs;
}

CompiledForm compile_gradients(GradientTrace traced, const CompileSettings& settings, const Options& options, const InterruptCheck& interrupted) {
  traced.trace.calls.frozen.clear();  // training changes what it captured
  SplitGraphs split =
      model::split_gradients(model::functionalize(traced.trace.calls, DispatcherSchemas()), traced.results, traced.output_gradients, DispatcherSchemas());
  auto graphs = std::make_shared<GradientGraphs>();
  graphs->kept_bytes = model::kept_bytes(split);
  graphs->forward = CompiledGraph::from_trace(std::move(split.forward), settings, options, interrupted);
  graphs->backward = CompiledGraph::from_trace(std::move(split.backward), settings, options, interrupted);
  graphs->forward->set_constants(traced.trace.captured);
  graphs->captured = std::move(traced.trace.captured);
  graphs->kept = std::move(split.kept);
  graphs->results = traced.results;
  graphs->differentiable_inputs = std::move(traced.differentiable_inputs);
  graphs->differentiable_outputs = std::move(traced.differentiable_outputs);
  CompiledForm form;
  form.run = [graphs](std::vector<c10::IValue> inputs) { return run(graphs, std::move(inputs)); };
  form.describe = [graphs](std::string_view title) {
    return fmt::format("{}\n{}\n{}: the backward pass keeps {} bytes\n", graphs->forward->describe(fmt::format("{}, forward", title)),
                       graphs->backward->describe(fmt::format("{}, backward", title)), title, graphs->kept_bytes);
  };
  form.reason = graphs->forward->fallback_reason().empty() ? graphs->backward->fallback_reason() : graphs->forward->fallback_reason();
  return form;
}

}  // namespace

Tracer gradient_tracer(std::string name, TracedFunction function, std::vector<bool> requires_gradient, Options options) {
  const Tracer inference = inference_tracer(name, function, options);
  return [=, name = std::move(name), function = std::move(function)](const CallPattern& pattern) {
    auto found = trace_with_gradients(name, function, pattern, requires_gradient);
    if (!found) return inference(pattern);
    const auto traced = std::make_shared<GradientTrace>(std::move(*found));
    TracedForm form;
    form.guards = traced->trace.guards;
    form.writes = !model::written_inputs(traced->trace.calls, DispatcherSchemas()).empty();
    form.captured = traced->trace.captured;
    form.compile = [traced, options](const CompileSettings& settings, const InterruptCheck& interrupted) {
      return compile_gradients(std::move(*traced), settings, options, interrupted);
    };
    return form;
  };
}

}  // namespace cxxinductor::torch_bridge

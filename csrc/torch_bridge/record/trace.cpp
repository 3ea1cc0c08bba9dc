#include "torch_bridge/record/trace.h"

#include <c10/util/Exception.h>

#include <set>
#include <utility>

#include "frontend/import.h"
#include "model/effects.h"
#include "support/error.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/gradients.h"
#include "torch_bridge/record/recorder.h"
#include "torch_bridge/record/size_node.h"

namespace cxxinductor::torch_bridge {
namespace {

Arg output_of(const c10::IValue& value, Recorder& recorder) {
  if (value.isNone()) return {};
  if (value.isTensor()) return value.toTensor().defined() ? Arg(OperandRef{recorder.value_of(value.toTensor())}) : Arg();
  if (value.isInt()) return value.toInt();
  if (value.isSymInt()) {
    const sym::Expr e = to_expr(value.toSymInt());
    return e.is_constant() ? Arg(e.constant()) : Arg(e);
  }
  throw_unsupported("results of type {}", value.tagKind());
}

// A function under way to becoming a graph.
class Tracing {
 public:
  Tracing(std::string name, const CallPattern& pattern) {
    traced_.calls.name = std::move(name);
    traced_.calls.assumptions = assumptions_of(pattern);
    sizes_ = std::make_shared<model::HintedSizes>(traced_.calls.assumptions, hints_of(pattern));
    recorder_.emplace(traced_.calls, sizes_, frontend::is_read_whole);
    recorder_->capture_tensors();
    for (const ArgumentPattern& argument : pattern.arguments()) add_argument(argument);
  }

  Recorder& recorder() { return *recorder_; }
  const std::vector<c10::IValue>& arguments() const { return arguments_; }

  model::CallValue add_input(const model::CallValueInfo& info, std::string_view name) {
    const model::CallValue value = recorder_->add_value(info, name);
    traced_.calls.inputs.push_back(value);
    traced_.calls.input_sources.emplace_back();
    return value;
  }
  void add_output(const c10::IValue& value) { traced_.calls.outputs.push_back(output_of(value, *recorder_)); }
  const model::CallGraph& calls() const { return traced_.calls; }

  Trace finish() {
    traced_.captured = recorder_->captured();
    traced_.guards = sizes_->guards();
    return std::move(traced_);
  }

 private:
  void add_argument(const ArgumentPattern& argument) {
    if (argument.kind == ArgumentPattern::Kind::Tensor) {
      arguments_.emplace_back(recorder_->tensor_of(add_input(info_of(argument), "x")));
    } else if (argument.is_symbol()) {
      const model::CallValueInfo info = info_of(argument);
      if (argument.is_input) add_input(info, "n");
      arguments_.emplace_back(to_symint(info.symbol, sizes_));
    } else {
      arguments_.push_back(argument.constant);
    }
  }

  Trace traced_;
  std::shared_ptr<model::HintedSizes> sizes_;
  std::optional<Recorder> recorder_;
  std::vector<c10::IValue> arguments_;
};

// Calls with metadata that does not say how they share memory with others are none that gradients flow through.
uint32_t storage_of(const model::CallGraph& calls, const Arg& output) {
  const auto* ref = output.as<OperandRef>();
  return ref ? calls.values[ref->operand].storage : 0;
}

// Autograd's record of such results is one of views and writes.
void require_own_memory(const GradientTrace& found, const model::CallGraph& calls) {
  std::set<uint32_t> storages;
  for (model::CallValue input : calls.inputs) storages.insert(calls.values[input].storage);
  for (uint32_t output : found.differentiable_outputs) {
    const uint32_t storage = storage_of(calls, calls.outputs[output]);
    if (storage != 0 && !storages.insert(storage).second)
      throw_unsupported("result {} shares memory with an argument or another result, and requires gradients", output);
  }
  const std::set<uint32_t> written = model::written_inputs(calls, DispatcherSchemas());
  for (uint32_t input : found.differentiable_inputs)
    if (written.contains(input)) throw_unsupported("a write to an argument that requires gradients");
}

}  // namespace

Trace trace(std::string name, const TracedFunction& function, const CallPattern& pattern) {
  Tracing tracing(std::move(name), pattern);
  try {
    const Recorder::Scope scope(tracing.recorder());
    for (const c10::IValue& output : function(tracing.arguments())) tracing.add_output(output);
  } catch (const c10::Error& error) {  // of a kernel that reads elements, say
    throw_unsupported("{}", error.what_without_backtrace());
  }
  return tracing.finish();
}

std::optional<GradientTrace> trace_with_gradients(std::string name, const TracedFunction& function, const CallPattern& pattern,
                                                  const std::vector<bool>& requires_gradient) {
  Tracing tracing(std::move(name), pattern);
  GradientTrace found;
  std::vector<at::Tensor> outputs, output_gradients, inputs;
  try {
    const Recorder::Scope scope(tracing.recorder(), Recorder::Scope::Autograd::Above);
    const at::AutoGradMode with_history(true);
    uint32_t position = 0;
    for (size_t i = 0; i < tracing.arguments().size(); ++i) {
      if (!pattern.arguments()[i].is_input) continue;
      if (requires_gradient[i]) {
        inputs.push_back(tracing.arguments()[i].toTensor().requires_grad_());
        found.differentiable_inputs.push_back(position);
      }
      ++position;
    }
    const std::vector<c10::IValue> results = function(tracing.arguments());
    for (const c10::IValue& result : results) {
      tracing.add_output(result);
      if (result.isTensor() && result.toTensor().defined() && result.toTensor().requires_grad()) {
        found.differentiable_outputs.push_back(static_cast<uint32_t>(found.results));
        outputs.push_back(result.toTensor());
      }
      ++found.results;
    }
    for (uint32_t captured = position; captured < tracing.calls().inputs.size(); ++captured) {
      found.captured_inputs.push_back(captured);
      const at::Tensor& tensor = tracing.recorder().captured()[captured - position];
      if (!tensor.requires_grad()) continue;
      inputs.push_back(tensor);
      found.differentiable_inputs.push_back(captured);
    }
    if (outputs.empty()) return std::nullopt;
    require_own_memory(found, tracing.calls());
    for (const at::Tensor& output : outputs) {
      model::CallValueInfo info = tracing.calls().values[tracing.recorder().value_of(output)];
      info.storage = 0;
      info.storage_offset = 0;
      found.output_gradients.push_back(static_cast<uint32_t>(tracing.calls().inputs.size()));
      output_gradients.push_back(tracing.recorder().tensor_of(tracing.add_input(info, "gradient")));
    }
    const size_t captured = tracing.calls().inputs.size();
    for (const at::Tensor& gradient : gradients(outputs, output_gradients, inputs)) tracing.add_output(gradient);
    for (size_t input = captured; input < tracing.calls().inputs.size(); ++input) found.captured_inputs.push_back(static_cast<uint32_t>(input));
  } catch (const c10::Error& error) {
    throw_unsupported("{}", error.what_without_backtrace());
  }
  found.trace = tracing.finish();
  return found;
}

}  // namespace cxxinductor::torch_bridge

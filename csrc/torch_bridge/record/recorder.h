// Records dispatcher calls on tensors without memory as a call graph. ATen's composites run as they are and make the
// calls that they consist of; an op that we know whole is one call, with the metadata that model/infer gives its
// results.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "model/call_graph.h"
#include "model/infer/infer.h"
#include "torch_bridge/record/size_node.h"

namespace cxxinductor::torch_bridge {

// Calls on tensors with the recording key, on threads that are in no Recorder::Scope, arrive at the handler: the recorded
// device's. Without one they are errors.
using CallHandler = void (*)(const c10::OperatorHandle& op, torch::jit::Stack& stack);
void handle_other_calls(CallHandler handler);

class Recorder {
 public:
  // keeps_whole: an op ("aten::gelu") is recorded as one call although it has a composite kernel.
  // graph: gets values and calls; its inputs are the caller's.
  Recorder(model::CallGraph& graph, SharedSizes sizes, std::function<bool(std::string_view op)> keeps_whole);
  ~Recorder();

  // A new value of the graph and the tensor that stands for it. A storage of 0 becomes a new one.
  model::CallValue add_value(model::CallValueInfo info, std::string_view name);
  at::Tensor tensor_of(model::CallValue value);
  // What the tensor of the value shows now: another value, where an op in place changed its sizes.
  model::CallValue latest(model::CallValue value);
  // Unsupported for tensors that have memory, unless they are captured: each becomes an input of the graph, behind
  // those that are there.
  model::CallValue value_of(const at::Tensor& tensor);
  void capture_tensors() { captures_ = true; }
  const std::vector<at::Tensor>& captured() const { return captured_; }

  // Of calls from here on. Without one, a call is named by its op alone.
  void set_origin(OriginId origin) { origin_ = origin; }
  // Of the list that the next call returns: how many tensors it has, where sizes leave that open.
  void set_list_length(size_t length) { list_length_ = length; }

  // Runs an op on fake tensors, which records it or what it consists of; the results lie on the stack then.
  void run(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  // Calls and values from here on are dropped by `roll_back`.
  struct Mark {
    size_t values = 0, calls = 0;
  };
  Mark mark() const;
  void roll_back(const Mark& mark);

  // While it lives, calls of this thread that have fake tensors among their arguments, and those of factories, arrive
  // at the recorder.
  class Scope {
   public:
    // Below: calls arrive as autograd makes them, which keeps no history. Above: autograd does, of composites in parts.
    enum class Autograd : uint8_t { Below, Above };
    explicit Scope(Recorder& recorder, Autograd autograd = Autograd::Below);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    struct Guards;
    std::unique_ptr<Guards> guards_;
    Recorder* outer_;
  };

 private:
  OriginId origin_of(const c10::OperatorName& op);
  model::Call make_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  const std::optional<model::OpRule>& rule_of(const c10::OperatorName& name);
  bool record_inferred(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void finish(model::Call call, const c10::OperatorHandle& op, torch::jit::Stack& stack, std::vector<model::CallValueInfo> results);
  std::string new_name(std::string_view wanted);

  model::CallGraph& graph_;
  SharedSizes sizes_;
  std::function<bool(std::string_view)> keeps_whole_;
  std::map<model::CallValue, at::Tensor> tensors_;
  std::map<uint32_t, c10::Storage> storages_;
  uint32_t last_storage_ = 0;
  bool captures_ = false;
  std::vector<at::Tensor> captured_;
  std::map<const void*, model::CallValue> captured_values_;  // by tensor
  std::map<const void*, uint32_t> captured_storages_;        // by storage: its number
  std::map<std::string, int, std::less<>> names_;            // how often a name was wanted
  std::unordered_map<c10::OperatorName, std::optional<model::OpRule>> rules_;
  OriginId origin_;
  std::unordered_map<c10::OperatorName, OriginId> origins_of_ops_;
  size_t list_length_ = 0;
};

}  // namespace cxxinductor::torch_bridge

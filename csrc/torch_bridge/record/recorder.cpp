#include "torch_bridge/record/recorder.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <atomic>
#include <utility>

#include "model/infer/infer.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/call_pattern.h"
#include "torch_bridge/record/composites.h"
#include "torch_bridge/record/fake_tensor.h"
#include "torch_bridge/record/make_call.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

using model::Call;
using model::CallValue;
using model::CallValueInfo;

namespace {

// What calls do that arrive while no recorder does; see handle_other_calls.
constinit std::atomic<CallHandler> other_calls{nullptr};

// Of this thread; a composite's kernel calls the dispatcher, which has no other way to reach us.
thread_local Recorder* current = nullptr;

void on_call(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  if (current != nullptr) return current->run(op, *stack);
  if (const CallHandler handler = other_calls.load(std::memory_order_acquire)) return handler(op, *stack);
  throw_unsupported("{}: a tensor without memory outlived its recording", c10::toString(op.operator_name()));
}

void register_fallback() {
  static constinit MadeOnce<torch::Library, ForkLock::Leaf> library;
  library.get([] {
    torch::Library made(torch::Library::IMPL, "_", recording_key, __FILE__, __LINE__);
    made.fallback(torch::CppFunction::makeFromBoxedFunction<&on_call>());
    return made;
  });
}

}  // namespace

void handle_other_calls(CallHandler handler) {
  register_fallback();
  other_calls.store(handler, std::memory_order_release);
}

Recorder::Recorder(model::CallGraph& graph, SharedSizes sizes, std::function<bool(std::string_view)> keeps_whole)
    : graph_(graph), sizes_(std::move(sizes)), keeps_whole_(std::move(keeps_whole)) {
  register_fallback();
}

Recorder::~Recorder() = default;

std::string Recorder::new_name(std::string_view wanted) {
  if (wanted.empty()) return {};
  int& count = names_[std::string(wanted)];
  std::string name = count++ == 0 ? std::string(wanted) : fmt::format("{}_{}", wanted, count - 1);
  return count > 1 ? new_name(name) : name;
}

CallValue Recorder::add_value(CallValueInfo info, std::string_view name) {
  info.name = new_name(name);
  if (info.storage == 0 && info.kind == CallValueInfo::Kind::Tensor) info.storage = last_storage_ + 1;
  last_storage_ = std::max(last_storage_, info.storage);
  graph_.values.push_back(std::move(info));
  return static_cast<CallValue>(graph_.values.size() - 1);
}

at::Tensor Recorder::tensor_of(CallValue value) {
  if (const auto found = tensors_.find(value); found != tensors_.end()) return found->second;
  const CallValueInfo& info = graph_.values[value];
  if (info.kind == CallValueInfo::Kind::None) return {};
  auto storage = storages_.find(info.storage);
  if (storage == storages_.end()) storage = storages_.emplace(info.storage, make_fake_storage(info.device)).first;
  const c10::InferenceMode no_autograd(false);
  at::Tensor tensor = at::detail::make_tensor<FakeTensor>(storage->second, info, value, sizes_);
  tensors_.emplace(value, tensor);
  return tensor;
}

CallValue Recorder::value_of(const at::Tensor& tensor) {
  if (const FakeTensor* fake = as_fake(tensor)) return fake->value();
  if (!captures_) throw_unsupported("a call of an op on a tensor that is no value of the model");
  const auto [value, fresh] = captured_values_.emplace(tensor.unsafeGetTensorImpl(), 0);
  if (!fresh) return value->second;
  CallValueInfo info = info_of(tensor);
  const auto [storage, first] = captured_storages_.emplace(tensor.storage().unsafeGetStorageImpl(), 0);
  info.storage = storage->second;
  value->second = add_value(std::move(info), "captured");
  storage->second = graph_.values[value->second].storage;
  graph_.frozen.insert(static_cast<uint32_t>(graph_.inputs.size()));
  graph_.inputs.push_back(value->second);
  graph_.input_sources.emplace_back();
  captured_.push_back(tensor);
  return value->second;
}

CallValue Recorder::latest(CallValue value) {
  const auto found = tensors_.find(value);
  return found == tensors_.end() ? value : value_of(found->second);
}

OriginId Recorder::origin_of(const c10::OperatorName& op) {
  if (origin_.valid()) return origin_;
  const auto [found, fresh] = origins_of_ops_.emplace(op, OriginId());
  if (fresh) {
    const size_t colons = op.name.find("::");
    const std::string overload = op.overload_name.empty() ? "default" : op.overload_name;
    found->second = graph_.origins.push_back({.call = fmt::format("{}.{}.{}", op.name.substr(0, colons), op.name.substr(colons + 2), overload)});
  }
  return found->second;
}

Call Recorder::make_call(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  Call call = torch_bridge::make_call(op, stack, [this](const at::Tensor& tensor) -> Arg { return OperandRef{value_of(tensor)}; });
  call.origin = origin_of(op.operator_name());
  return call;
}

void Recorder::finish(Call call, const c10::OperatorHandle& op, torch::jit::Stack& stack, std::vector<CallValueInfo> results) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string base = call.callee.substr(call.callee.rfind(':') + 1);
  std::map<std::string, at::Tensor> written;  // by alias set
  const auto arguments = torch::jit::last(stack, schema.arguments().size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && arguments[i].isTensor() && !alias->beforeSets().empty())
      written.emplace(alias->beforeSets().begin()->toUnqualString(), arguments[i].toTensor());
  }
  // A result that is a written argument is that tensor itself, for who goes on with it.
  const auto tensor_of_result = [&](size_t position, CallValue value) {
    const c10::AliasInfo* alias = schema.returns()[position].alias_info();
    if (alias != nullptr && alias->isWrite() && !alias->beforeSets().empty())
      if (const auto found = written.find(alias->beforeSets().begin()->toUnqualString()); found != written.end()) return found->second;
    return tensor_of(value);
  };
  call.result_is_list = returns_list(op);
  call.results.clear();
  for (CallValueInfo& info : results) {
    const bool is_none = info.kind == CallValueInfo::Kind::None;
    call.results.push_back(add_value(std::move(info), is_none ? std::string_view() : std::string_view(base)));
  }
  const std::vector<CallValue> values = call.results;
  graph_.calls.push_back(std::move(call));
  std::vector<c10::IValue> outputs;
  if (graph_.calls.back().result_is_list) {
    c10::List<at::Tensor> list;
    for (CallValue value : values) list.push_back(tensor_of(value));
    outputs.emplace_back(std::move(list));
  } else {
    for (size_t i = 0; i < values.size(); ++i) outputs.emplace_back(tensor_of_result(i, values[i]));
  }
  torch::jit::drop(stack, schema.arguments().size());
  for (c10::IValue& output : outputs) stack.push_back(std::move(output));
}

const std::optional<model::OpRule>& Recorder::rule_of(const c10::OperatorName& name) {
  auto found = rules_.find(name);
  if (found == rules_.end()) found = rules_.emplace(name, model::OpRule::find(name.name, name.overload_name, DispatcherSchemas())).first;
  return found->second;
}

bool Recorder::record_inferred(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const std::optional<model::OpRule>& rule = rule_of(op.operator_name());
  if (!rule) return false;
  Call call = make_call(op, stack);
  if (returns_list(op)) call.results.resize(list_length_);
  auto results = rule->infer(graph_, call, *sizes_);
  if (!results) return false;
  finish(std::move(call), op, stack, std::move(*results));
  return true;
}

void Recorder::run(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const std::string name = c10::toString(op.operator_name());
  if (const Composite composite = find_composite(name); composite != nullptr && composite(stack)) return;
  const bool is_composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if ((!is_composite || keeps_whole_(name)) && record_inferred(op, stack)) return;
  if (!is_composite) throw_unsupported("{}: nothing states the sizes of its results", name);
  op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, stack);
}

Recorder::Mark Recorder::mark() const { return {graph_.values.size(), graph_.calls.size()}; }

void Recorder::roll_back(const Mark& mark) {
  std::erase_if(tensors_, [&](const auto& entry) { return value_of(entry.second) >= mark.values; });
  graph_.values.resize(mark.values);
  graph_.calls.resize(mark.calls);
}

struct Recorder::Scope::Guards {
  explicit Guards(Autograd autograd) {
    if (autograd == Autograd::Below) below_autograd.emplace();
  }
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  c10::impl::IncludeDispatchKeyGuard recording{recording_key};
};

Recorder::Scope::Scope(Recorder& recorder, Autograd autograd) : guards_(std::make_unique<Guards>(autograd)), outer_(std::exchange(current, &recorder)) {}
Recorder::Scope::~Scope() { current = outer_; }

}  // namespace cxxinductor::torch_bridge

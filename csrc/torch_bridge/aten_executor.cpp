#include "torch_bridge/aten_executor.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <map>

#include "support/error.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

using frontend::Call;
using frontend::CallGraph;
using frontend::CallValue;
using frontend::CallValueInfo;

namespace {

void for_each_hole(const Arg& arg, const std::function<void(uint32_t)>& visit) {
  if (const auto* hole = arg.as<Hole>()) visit(hole->operand);
  if (const auto* list = arg.as<ArgList>()) {
    for (const Arg& item : *list) for_each_hole(item, visit);
  }
}

void for_each_hole(const Call& call, const std::function<void(uint32_t)>& visit) {
  for (const Arg& arg : call.args) for_each_hole(arg, visit);
  for (const auto& [name, arg] : call.kwargs) for_each_hole(arg, visit);
}

}  // namespace

struct AtenExecutor::Impl {
  CallGraph calls;
  std::vector<c10::OperatorHandle> callees;
  std::vector<std::vector<CallValue>> last_uses;  // for each call: values that nothing reads afterwards

  void find_last_uses();
};

void AtenExecutor::Impl::find_last_uses() {
  std::vector<size_t> last(calls.values.size(), 0);
  for (size_t i = 0; i < calls.calls.size(); ++i) {
    for_each_hole(calls.calls[i], [&](uint32_t value) { last.at(value) = i + 1; });
    for (CallValue result : calls.calls[i].results) last.at(result) = i + 1;
  }
  for (const Arg& output : calls.outputs) {
    for_each_hole(output, [&](uint32_t value) { last.at(value) = 0; });
  }
  last_uses.resize(calls.calls.size());
  for (CallValue value = 0; value < last.size(); ++value) {
    if (last[value] > 0) last_uses[last[value] - 1].push_back(value);
  }
}

AtenExecutor::AtenExecutor(CallGraph calls) : impl_(std::make_unique<Impl>()) {
  impl_->calls = std::move(calls);
  for (const Call& call : impl_->calls.calls) {
    auto handle = c10::Dispatcher::singleton().findSchema(
        {call.callee, call.overload == "default" ? std::string() : call.overload});
    if (!handle) throw_unsupported("{}.{} is not known to torch's dispatcher", call.callee, call.overload);
    impl_->callees.push_back(*handle);
  }
  impl_->find_last_uses();
}

AtenExecutor::~AtenExecutor() = default;

const CallGraph& AtenExecutor::calls() const { return impl_->calls; }

std::vector<c10::IValue> AtenExecutor::run(std::vector<c10::IValue> inputs) const {
  const CallGraph& graph = impl_->calls;
  if (inputs.size() != graph.inputs.size())
    throw_user_error("{} takes {} inputs, found {}", graph.name, graph.inputs.size(), inputs.size());
  std::vector<c10::IValue> values(graph.values.size());
  std::map<std::string, int64_t, std::less<>> symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const CallValueInfo& value = graph.values[graph.inputs[i]];
    if (inputs[i].isInt() && value.symbol.is_symbol()) symbols.emplace(value.symbol.name(), inputs[i].toInt());
    if (inputs[i].isTensor() && value.kind == CallValueInfo::Kind::Tensor) {
      for (size_t d = 0; d < value.sizes.size(); ++d) {
        if (value.sizes[d].is_symbol()) symbols.emplace(value.sizes[d].name(), inputs[i].toTensor().size(d));
      }
    }
    values[graph.inputs[i]] = std::move(inputs[i]);
  }
  inputs.clear();
  ArgResolver resolver;
  resolver.hole = [&](uint32_t operand) { return values.at(operand); };
  resolver.symbol = [&](sym::Expr e) {
    return sym::evaluate(e, [&](std::string_view name) {
      auto found = symbols.find(name);
      if (found == symbols.end()) throw_user_error("the symbol {} has no value", name);
      return found->second;
    });
  };
  at::AutoDispatchBelowADInplaceOrView guard;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Call& call = graph.calls[i];
    std::vector<c10::IValue> stack = build_stack(impl_->callees[i].schema(), call.args, call.kwargs, resolver);
    impl_->callees[i].callBoxed(&stack);
    if (call.result_is_list) {
      std::vector<at::Tensor> items = stack.at(0).toTensorVector();
      for (size_t r = 0; r < call.results.size(); ++r) values[call.results[r]] = items.at(r);
    } else {
      for (size_t r = 0; r < call.results.size() && r < stack.size(); ++r) {
        values[call.results[r]] = stack[r];
        const CallValueInfo& info = graph.values[call.results[r]];
        if (stack[r].isInt() && info.symbol.is_symbol()) symbols.emplace(info.symbol.name(), stack[r].toInt());
      }
    }
    for (CallValue value : impl_->last_uses[i]) values[value] = {};
  }
  std::vector<c10::IValue> outputs;
  for (const Arg& output : graph.outputs) {
    if (const auto* hole = output.as<Hole>())
      outputs.push_back(values.at(hole->operand));
    else if (const auto* expr = output.as<sym::Expr>())
      outputs.emplace_back(resolver.symbol(*expr));
    else if (const auto* integer = output.as<int64_t>())
      outputs.emplace_back(*integer);
    else
      outputs.emplace_back();
  }
  return outputs;
}

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/aten_executor.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/arg_expressions.h"
#include "support/error.h"
#include "torch_bridge/autocast_scope.h"
#include "torch_bridge/call_op.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

using model::Call;
using model::CallGraph;
using model::CallValue;
using model::CallValueInfo;

namespace {

// Reads the state at the time of each question.
ArgResolver resolver_of(const AtenExecutor::State& state) {
  ArgResolver resolver;
  resolver.operand = [&state](uint32_t operand) { return state.values.at(operand); };
  resolver.symbol = [&state](sym::Expr e) {
    return sym::evaluate(e, [&state](std::string_view name) {
      auto found = state.symbols.find(name);
      if (found == state.symbols.end()) throw_user_error("the symbol {} has no value", name);
      return found->second;
    });
  };
  return resolver;
}

// Calls visit with the symbols that a value of this declaration gives and the place of each: those that stand alone, as
// the integer itself (dim -1), as a size, or as the place in memory of a slice whose start is data (dim rank).
template <class Visit>
void for_each_given_symbol(const CallValueInfo& declared, Visit visit) {
  const auto rank = static_cast<int64_t>(declared.sizes.size());
  if (declared.symbol.is_symbol()) visit(declared.symbol.name(), -1);
  if (declared.kind != CallValueInfo::Kind::Tensor) return;
  for (int64_t d = 0; d < rank; ++d)
    if (declared.sizes[static_cast<size_t>(d)].is_symbol()) visit(declared.sizes[static_cast<size_t>(d)].name(), d);
  if (declared.storage_offset.is_symbol()) visit(declared.storage_offset.name(), rank);
}

// The first value that names a symbol counts, as everywhere.
void bind_symbols(const CallValueInfo& declared, const c10::IValue& value, AtenExecutor::State& state) {
  for_each_given_symbol(declared, [&](std::string_view symbol, int64_t dim) {
    if (dim < 0 && value.isInt()) state.symbols.emplace(symbol, value.toInt());
    if (dim < 0 && value.isBool()) state.symbols.emplace(symbol, int64_t{value.toBool()});
    if (dim < 0 || !value.isTensor() || value.toTensor().dim() < dim) return;
    const at::Tensor& tensor = value.toTensor();
    state.symbols.emplace(symbol, dim < tensor.dim() ? tensor.size(dim) : tensor.storage_offset());
  });
}

// An activation that a compiled forward graph saved may have strides of its own; views among the calls ask for the recorded ones.
void lay_out_as_recorded(const CallGraph& graph, uint32_t position, AtenExecutor::State& state) {
  const CallValue id = graph.inputs[position];
  if (!state.values[id].isTensor()) return;
  const ArgResolver resolver = resolver_of(state);
  std::vector<int64_t> strides;
  for (sym::Expr stride : graph.values[id].strides) strides.push_back(resolver.symbol(stride).guard_int(__FILE__, __LINE__));
  const at::Tensor given = state.values[id].toTensor();
  if (given.strides() != strides) state.values[id] = at::empty_strided(given.sizes(), strides, given.options()).copy_(given);
}

}  // namespace

struct AtenExecutor::Impl {
  CallGraph calls;
  std::vector<c10::OperatorHandle> callees;
  std::vector<std::vector<CallValue>> last_uses;  // for each call: values that nothing reads afterwards

  void find_last_uses();
  void check_symbols() const;
  std::vector<at::Tensor> updated_inputs(const std::vector<c10::IValue>& inputs) const;
};

// Every symbol that an argument or an output takes comes from an input or from the result of an earlier call.
void AtenExecutor::Impl::check_symbols() const {
  std::set<std::string, std::less<>> known;
  const auto learn = [&](CallValue value) { for_each_given_symbol(calls.values[value], [&](std::string_view symbol, int64_t) { known.emplace(symbol); }); };
  const auto need = [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (!known.contains(symbol.name())) throw_unsupported("no value gives the symbol {} of {}", symbol.name(), calls.name);
  };
  for (CallValue input : calls.inputs) learn(input);
  for (const Call& call : calls.calls) {
    for_each_expression(call, need);
    for (CallValue result : call.results) learn(result);
  }
  for (const Arg& output : calls.outputs) for_each_expression(output, need);
}

void AtenExecutor::Impl::find_last_uses() {
  std::vector<size_t> last(calls.values.size(), 0);
  for (size_t i = 0; i < calls.calls.size(); ++i) {
    for_each_operand_ref(calls.calls[i], [&](OperandRef value) { last.at(value.operand) = i + 1; });
    for (CallValue result : calls.calls[i].results) last.at(result) = i + 1;
  }
  for (const Arg& output : calls.outputs) {
    for_each_operand_ref(output, [&](OperandRef value) { last.at(value.operand) = 0; });
  }
  for (const auto& [input, value] : calls.mutations) last.at(value) = 0;
  last_uses.resize(calls.calls.size());
  for (CallValue value = 0; value < last.size(); ++value) {
    if (last[value] > 0) last_uses[last[value] - 1].push_back(value);
  }
}

// The caller's own tensors: calls may read copies in other strides.
std::vector<at::Tensor> AtenExecutor::Impl::updated_inputs(const std::vector<c10::IValue>& inputs) const {
  std::vector<at::Tensor> tensors;
  for (const auto& [input, value] : calls.mutations) tensors.push_back(inputs.at(input).toTensor());
  return tensors;
}

AtenExecutor::AtenExecutor(CallGraph calls) : impl_(std::make_unique<Impl>()) {
  impl_->calls = std::move(calls);
  for (const Call& call : impl_->calls.calls) {
    auto handle = c10::Dispatcher::singleton().findSchema({call.callee, call.overload == "default" ? std::string() : call.overload});
    if (!handle) throw_unsupported("{}.{} is not known to torch's dispatcher", call.callee, call.overload);
    impl_->callees.push_back(*handle);
  }
  for (const Arg& output : impl_->calls.outputs) {
    if (!output.is_none() && !output.as<OperandRef>() && !output.as<sym::Expr>() && !output.as<int64_t>())
      throw_unsupported("{} returns {}", impl_->calls.name, to_string(output));
  }
  impl_->check_symbols();
  impl_->find_last_uses();
}

AtenExecutor::~AtenExecutor() = default;

const CallGraph& AtenExecutor::calls() const { return impl_->calls; }

const c10::FunctionSchema& AtenExecutor::schema(size_t call) const { return impl_->callees[call].schema(); }

bool AtenExecutor::is_random(size_t call) const { return impl_->callees[call].hasTag(at::Tag::nondeterministic_seeded); }

AtenExecutor::State AtenExecutor::bind(std::vector<c10::IValue> inputs) const {
  const CallGraph& graph = impl_->calls;
  if (inputs.size() != graph.inputs.size()) throw_user_error("{} takes {} inputs, found {}", graph.name, graph.inputs.size(), inputs.size());
  State state{std::vector<c10::IValue>(graph.values.size()), {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    bind_symbols(graph.values[graph.inputs[i]], inputs[i], state);
    state.values[graph.inputs[i]] = std::move(inputs[i]);
  }
  for (const auto& [position, strides] : graph.input_strides) lay_out_as_recorded(graph, position, state);
  return state;
}

void AtenExecutor::run_call(size_t number, State& state) const {
  const Call& call = impl_->calls.calls[number];
  const c10::OperatorHandle& callee = impl_->callees[number];
  std::vector<c10::IValue> stack = build_stack(callee.schema(), call.args, call.kwargs, resolver_of(state));
  {
    const AutocastScope autocast(call.autocast);
    call_op(callee, stack);
  }
  if (call.result_is_list) {
    std::vector<at::Tensor> items = stack.at(0).toTensorVector();
    for (size_t r = 0; r < call.results.size(); ++r) state.values[call.results[r]] = items.at(r);
  } else {
    for (size_t r = 0; r < call.results.size() && r < stack.size(); ++r) state.values[call.results[r]] = std::move(stack[r]);
  }
  for (CallValue result : call.results) bind_symbols(impl_->calls.values[result], state.values[result], state);
}

namespace {

// Writes what inputs hold in the end, of calls that return what they would write. Afterwards values that were the last
// of an input are the input, and those that showed what it held before are copies.
// inputs: the caller's, by mutation.
void write_mutations(const CallGraph& graph, const std::vector<at::Tensor>& inputs, AtenExecutor::State& state) {
  std::vector<std::pair<at::Tensor, at::Tensor>> written;  // input, what it will hold
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const auto& [position, value] = graph.mutations[i]; value != graph.inputs[position]) written.emplace_back(inputs[i], state.values[value].toTensor());
  const auto is_overwritten = [&](const at::Tensor& tensor) {
    return tensor.defined() && std::any_of(written.begin(), written.end(), [&](const auto& pair) { return pair.first.is_alias_of(tensor); });
  };
  for (auto& [input, last] : written)
    if (is_overwritten(last)) last = last.clone();
  for (const Arg& output : graph.outputs)
    if (const auto* ref = output.as<OperandRef>())
      if (c10::IValue& value = state.values[ref->operand]; value.isTensor() && is_overwritten(value.toTensor())) value = value.toTensor().clone();
  for (const auto& [input, last] : written) input.copy_(last);
  for (size_t i = 0; i < inputs.size(); ++i) state.values[graph.mutations[i].second] = inputs[i];
}

}  // namespace

std::vector<c10::IValue> AtenExecutor::run(std::vector<c10::IValue> inputs) const {
  const CallGraph& graph = impl_->calls;
  const std::vector<at::Tensor> updated = impl_->updated_inputs(inputs);
  State state = bind(std::move(inputs));
  at::AutoDispatchBelowADInplaceOrView guard;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    run_call(i, state);
    for (CallValue value : impl_->last_uses[i]) state.values[value] = {};
  }
  if (!graph.mutations.empty()) write_mutations(graph, updated, state);
  const ArgResolver resolver = resolver_of(state);
  std::vector<c10::IValue> outputs;
  for (const Arg& output : graph.outputs) {
    if (const auto* ref = output.as<OperandRef>())
      outputs.push_back(state.values.at(ref->operand));
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

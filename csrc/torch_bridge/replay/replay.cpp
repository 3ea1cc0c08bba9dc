#include "torch_bridge/replay/replay.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "frontend/import.h"
#include "ir/callees.h"
#include "model/decompose/decompose.h"
#include "model/effects.h"
#include "model/passes/functionalize.h"
#include "support/error.h"
#include "torch_bridge/autocast_scope.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/fake_tensor.h"
#include "torch_bridge/record/recorder.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

using model::Call;
using model::CallGraph;
using model::CallValue;
using model::CallValueInfo;

namespace {

class Replay {
 public:
  Replay(const CallGraph& read, model::SizeHints hints)
      : read_(read),
        sizes_(std::make_shared<model::HintedSizes>(read.assumptions, std::move(hints))),
        recorder_(out_, sizes_, frontend::is_read_whole),
        values_(read.values.size()) {}

  Replayed run() {
    out_ = read_;
    out_.values.clear();
    out_.calls.clear();
    for (CallValue& input : out_.inputs) input = values_[input].emplace(add(input));
    {
      const Recorder::Scope scope(recorder_);
      for (const Call& call : read_.calls) replay(call);
    }
    for (Arg& output : out_.outputs) for_each_operand_ref(output, [this](OperandRef& ref) { ref.operand = value(ref.operand); });
    for (auto& [input, last] : out_.mutations) last = value(last);
    for (CallValue input : read_.inputs)
      if (!model::show_the_same(out_.values[value(input)], out_.values[*values_[input]]))
        throw_unsupported("an op in place that changes the sizes of input '{}'", read_.values[input].name);
    return {std::move(out_), sizes_->guards(), std::move(kept_)};
  }

 private:
  CallValue add(CallValue read) { return recorder_.add_value(read_.values[read], read_.values[read].name); }
  CallValue value(CallValue read) { return recorder_.latest(values_[read].value()); }
  bool is_tensor(CallValue read) const { return read_.values[read].kind == CallValueInfo::Kind::Tensor; }

  void replay(const Call& call) {
    recorder_.set_origin(call.origin);
    const auto op = c10::Dispatcher::singleton().findSchema({call.callee, call.overload});
    if (!op || is_opaque_callee(call.callee) || !takes_tensors_alone(call, op->schema())) return copy(call);
    std::vector<c10::IValue> stack = build_stack(op->schema(), call.args, call.kwargs, resolver_);
    recorder_.set_list_length(call.result_is_list ? call.results.size() : 0);
    const Recorder::Mark before = recorder_.mark();
    std::string reason;
    try {
      const AutocastScope autocast(call.autocast);
      if (call.autocast.is_on())
        op->callBoxed(stack);  // through autocast's kernels, to the recorder
      else
        recorder_.run(*op, stack);
    } catch (const Unsupported& error) {
      reason = error.what();
    } catch (const c10::Error& error) {  // of a composite that reads elements, or sizes as numbers
      reason = error.what_without_backtrace();
    }
    if (!reason.empty()) {
      recorder_.roll_back(before);
      kept_.emplace(full_name(call), reason);
      return copy(call);
    }
    bind(call, stack);
  }

  // Numbers that calls make of tensors, and their readers, stay as they were read; so do calls with a symbol where the
  // schema has a tensor, of which ATen would make a tensor.
  bool takes_tensors_alone(const Call& call, const c10::FunctionSchema& schema) const {
    bool alone = std::all_of(call.results.begin(), call.results.end(),
                             [this](CallValue result) { return is_tensor(result) || read_.values[result].kind == CallValueInfo::Kind::None; });
    for_each_operand_ref(call, [&](OperandRef ref) { alone = alone && is_tensor(ref.operand); });
    for (size_t i = 0; i < std::min(call.args.size(), schema.arguments().size()); ++i)
      alone = alone && !(call.args[i].as<sym::Expr>() && schema.arguments()[i].type()->kind() == c10::TypeKind::TensorType);
    return alone;
  }

  // As one call, with the metadata of the reader.
  void copy(Call call) {
    if (call.callee == "aten::item") call.callee = "aten::_local_scalar_dense";  // what it is made of
    for_each_operand_ref(call, [this](OperandRef& ref) { ref.operand = value(ref.operand); });
    for (CallValue& result : call.results) result = values_[result].emplace(add(result));
    share_storages(call);
    out_.calls.push_back(std::move(call));
  }

  // As the schema says; readers need not know.
  void share_storages(const Call& call) {
    const auto schema = DispatcherSchemas().find(call.callee, call.overload);
    if (!schema) return;
    const std::vector<int> alias_of = model::effects_of_call(call.args, call.kwargs, *schema, call.results.size()).alias_of;
    for (size_t r = 0; r < alias_of.size(); ++r)
      if (alias_of[r] >= 0) out_.values[call.results[r]].storage = out_.values[static_cast<CallValue>(alias_of[r])].storage;
  }

  void bind(const Call& call, const std::vector<c10::IValue>& stack) {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& item : stack) {
      if (item.isTensorList())
        for (const at::Tensor& tensor : item.toTensorVector()) tensors.push_back(tensor);
      else
        tensors.push_back(item.toTensor());
    }
    if (tensors.size() != call.results.size())
      throw_user_error("{}: expected {} results, found {}", describe(read_, call), tensors.size(), call.results.size());
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined()) values_[call.results[i]] = recorder_.value_of(tensors[i]);
  }

  const CallGraph& read_;
  CallGraph out_;
  SharedSizes sizes_;
  Recorder recorder_;
  std::vector<std::optional<CallValue>> values_;  // by value of read_
  std::map<std::string, std::string> kept_;
  const ArgResolver resolver_{
      .operand = [this](uint32_t operand) -> c10::IValue { return recorder_.tensor_of(value(operand)); },
      .symbol = [this](sym::Expr e) { return to_symint(e, sizes_); },
  };
};

}  // namespace

Replayed replay(const CallGraph& read, model::SizeHints hints) { return Replay(read, std::move(hints)).run(); }

void require_guards_on_inputs(const Replayed& replayed) {
  std::set<std::string, std::less<>> known;
  for (const CallValue input : replayed.calls.inputs) {
    const CallValueInfo& info = replayed.calls.values[input];
    if (info.kind == CallValueInfo::Kind::SymInt && info.symbol.is_symbol()) known.emplace(info.symbol.name());
    for (const sym::Expr size : info.sizes)
      if (size.is_symbol()) known.emplace(size.name());
  }
  for (const model::SizeGuard& guard : replayed.guards)
    for (const sym::Expr symbol : guard.expression.free_symbols())
      if (!known.contains(symbol.name())) throw_unsupported("its calls depend on a size that is data: {}", model::to_string(guard));
}

CallGraph functional_calls(const Replayed& replayed) {
  for (const Call& call : replayed.calls.calls)
    if (call.autocast.is_on()) throw_unsupported("{}: autocast decides its dtypes, and it stays one call", describe(replayed.calls, call));
  return model::decompose(model::functionalize(replayed.calls, DispatcherSchemas()), DispatcherSchemas());
}

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/extern_callee.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/clone.h>

#include <algorithm>

#include "ir/callees.h"
#include "model/schema.h"
#include "support/error.h"
#include "torch_bridge/call_op.h"
#include "torch_bridge/counters.h"
#include "torch_bridge/in_place_forms.h"
#include "torch_bridge/torch_host.h"
#include "torch_bridge/types.h"
#include "torch_bridge/view_tensor.h"

namespace cxxinductor::torch_bridge {
namespace {

bool is_constant(const Arg& arg) {
  if (arg.as<OperandRef>() || arg.as<Handle>()) return false;
  if (const auto* expr = arg.as<sym::Expr>()) return expr->is_constant();
  if (const auto* list = arg.as<ArgList>()) {
    for (const Arg& item : *list) {
      if (!is_constant(item)) return false;
    }
  }
  return true;
}

bool is_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::OptionalType) return is_tensor(*type.expectRef<c10::OptionalType>().getElementType());
  return type.kind() == c10::TypeKind::TensorType;
}

c10::OperatorHandle find_callee(const plan::CallExtern& call) {
  std::string overload = call.overload == "default" ? std::string() : call.overload;
  if (call.planned_out) overload = "out";
  auto handle = c10::Dispatcher::singleton().findSchema({call.callee, overload});
  if (!handle) throw_unsupported("{}.{} is not known to torch's dispatcher", call.callee, overload);
  return *handle;
}

class DispatcherCallee final : public runtime::ExternCallee {
 public:
  explicit DispatcherCallee(const plan::CallExtern& call)
      : handle_(find_callee(call)),
        planned_out_(call.planned_out),
        out_copies_(model::planned_form(call.callee) == model::PlannedForm::ByBackend),
        in_place_form_(call.planned_out ? find_in_place_form(call.callee) : nullptr),
        alias_of_(call.alias_of) {
    alias_of_.resize(call.results.size(), -1);
    const c10::FunctionSchema& schema = handle_.schema();
    ArgResolver constants;
    constants.operand = [](uint32_t) { return c10::IValue(); };
    constants.symbol = [](sym::Expr e) { return e.constant(); };
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& formal = schema.arguments()[i];
      const Arg* actual = i < call.args.size() ? &call.args[i] : nullptr;
      for (const auto& [name, value] : call.kwargs) {
        if (name == formal.name()) actual = &value;
      }
      if (formal.is_out()) {
        template_.emplace_back();
        out_positions_.push_back(i);
      } else if (actual == nullptr) {
        if (!formal.default_value()) throw_unsupported("{} needs an argument '{}'", schema.name(), formal.name());
        template_.push_back(*formal.default_value());
      } else if (is_constant(*actual)) {
        template_.push_back(to_ivalue(*actual, formal.real_type(), constants));
      } else {
        template_.emplace_back();
        patches_.push_back({i, *actual, formal.real_type(), is_tensor(*formal.real_type())});
      }
    }
    recordable_ = !is_opaque_callee(call.callee) && !uses_library_memory(call.callee) && !draws_numbers() && !handle_.hasTag(at::Tag::dynamic_output_shape) &&
                  !handle_.hasTag(at::Tag::data_dependent_output);
  }

  bool recordable() const override { return recordable_; }

  void call(runtime::Host&, std::span<const runtime::Operand> operands, std::span<const runtime::TensorView> destinations,
            std::span<runtime::TensorRef> results) const override {
    std::vector<c10::IValue> stack = template_;
    fill(stack, operands);
    for (size_t k = 0; k < out_positions_.size(); ++k) stack[out_positions_[k]] = view_tensor(destinations[k]);
    at::AutoDispatchBelowADInplaceOrView guard;
    if (!planned_out_) {
      call_op(handle_, stack);
      return take_results(stack, operands, results);
    }
    if (in_place_form_ != nullptr && in_place_form_(stack)) return;
    if (out_copies_ && stack[out_positions_.front()].toTensor().numel() > 0) counters().copied_results += 1;
    call_op(handle_, stack);
    check_destinations(stack, destinations);
  }

 private:
  struct Patch {
    size_t position;
    Arg arg;
    c10::TypePtr type;
    bool takes_tensor;  // a tensor, which may be optional
  };

  static c10::IValue operand_value(const runtime::Operand& operand) {
    switch (operand.kind) {
      case runtime::Operand::Kind::Tensor:
        return view_tensor(operand.tensor);
      case runtime::Operand::Kind::Integer:
        return operand.integer;
    }
    throw_unsupported("opaque arguments of extern calls");
  }

  void fill(std::vector<c10::IValue>& stack, std::span<const runtime::Operand> operands) const {
    ArgResolver resolver;
    resolver.operand = [&](uint32_t ref) { return operand_value(operands[ref]); };
    resolver.symbol = [](sym::Expr e) -> int64_t {
      if (e.is_constant()) return e.constant();
      throw_internal("a symbolic argument of an extern call was not made an operand: {}", sym::to_string(e));
    };
    for (const Patch& patch : patches_) {
      const auto* ref = patch.arg.as<OperandRef>();
      const bool tensor = ref && operands[ref->operand].kind == runtime::Operand::Kind::Tensor;
      // Integers may stand for tensors, and tensors of one element for numbers.
      if (tensor && patch.takes_tensor)
        stack[patch.position] = operand_value(operands[ref->operand]);
      else
        stack[patch.position] = to_ivalue(patch.arg, patch.type, resolver);
    }
  }

  // An op resizes a destination whose sizes are not those of its result: what was planned is then stale.
  void check_destinations(const std::vector<c10::IValue>& stack, std::span<const runtime::TensorView> destinations) const {
    for (size_t k = 0; k < std::min(stack.size(), destinations.size()); ++k) {
      const at::Tensor& written = stack[k].toTensor();
      if (!std::ranges::equal(written.sizes(), destinations[k].sizes) || (written.numel() > 0 && written.const_data_ptr() != destinations[k].data))
        throw_internal("{}: expected to write result {} where it was planned, found it resized", handle_.schema().name(), k);
    }
  }

  // Flattened: a list result gives one tensor an item; ints among the results give a ref without owner.
  void take_results(std::vector<c10::IValue>& stack, std::span<const runtime::Operand> operands, std::span<runtime::TensorRef> results) const {
    size_t next = 0;
    const auto take = [&](at::Tensor tensor) {
      if (next >= results.size()) return;
      const bool lent = alias_of_[next] < 0 && tensor.defined() && is_lent(tensor, operands);
      results[next] = to_ref(lent ? tensor.clone() : std::move(tensor));
    };
    for (c10::IValue& value : stack) {
      if (value.isTensor()) {
        take(std::move(value).toTensor());
        ++next;
      } else if (value.isTensorList()) {
        for (at::Tensor& item : value.toTensorVector()) {
          take(std::move(item));
          ++next;
        }
      } else {
        ++next;
      }
    }
  }

  // Some ops return an operand, though their schemas state no alias: what lies in the arena is not theirs to return.
  static bool is_lent(const at::Tensor& result, std::span<const runtime::Operand> operands) {
    const void* const memory = result.storage().data();
    return std::any_of(operands.begin(), operands.end(), [&](const runtime::Operand& operand) {
      return operand.kind == runtime::Operand::Kind::Tensor && operand.tensor.base == nullptr && operand.tensor.data == memory && memory != nullptr;
    });
  }

  // Random numbers come from the generator of each call; attention without dropout draws none.
  bool draws_numbers() const {
    if (!handle_.hasTag(at::Tag::nondeterministic_seeded)) return false;
    const auto& formals = handle_.schema().arguments();
    for (size_t i = 0; i < formals.size(); ++i)
      if (formals[i].name() == "dropout_p") return !template_[i].isDouble() || template_[i].toDouble() != 0;
    return true;
  }

  c10::OperatorHandle handle_;
  bool planned_out_;
  bool recordable_ = false;
  bool out_copies_;            // calls without an in-place form compute their results elsewhere
  InPlaceForm in_place_form_;  // null: the op has none
  std::vector<int> alias_of_;
  std::vector<c10::IValue> template_;
  std::vector<Patch> patches_;
  std::vector<size_t> out_positions_;
};

}  // namespace

std::unique_ptr<runtime::ExternCallee> make_extern_callee(const plan::CallExtern& call) { return std::make_unique<DispatcherCallee>(call); }

}  // namespace cxxinductor::torch_bridge

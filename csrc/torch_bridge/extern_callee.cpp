#include "torch_bridge/extern_callee.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "support/error.h"
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

c10::OperatorHandle find_callee(const plan::CallExtern& call) {
  std::string overload = call.overload == "default" ? std::string() : call.overload;
  if (call.planned_out) overload = "out";
  auto handle = c10::Dispatcher::singleton().findSchema({call.callee, overload});
  if (!handle) throw_unsupported("{}.{} is not known to torch's dispatcher", call.callee, overload);
  return *handle;
}

class DispatcherCallee final : public runtime::ExternCallee {
 public:
  explicit DispatcherCallee(const plan::CallExtern& call) : handle_(find_callee(call)), planned_out_(call.planned_out) {
    const c10::FunctionSchema& schema = handle_.schema();
    const c10::TypePtr optional_tensor = c10::OptionalType::ofTensor();
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
        patches_.push_back({i, *actual, formal.real_type(), formal.real_type()->isSubtypeOf(*optional_tensor)});
      }
    }
  }

  void call(runtime::Host&, std::span<const runtime::Operand> operands, std::span<const runtime::TensorView> destinations,
            std::span<runtime::TensorRef> results) const override {
    std::vector<c10::IValue> stack = template_;
    fill(stack, operands);
    for (size_t k = 0; k < out_positions_.size(); ++k) stack[out_positions_[k]] = view_tensor(destinations[k]);
    at::AutoDispatchBelowADInplaceOrView guard;
    handle_.callBoxed(&stack);
    if (!planned_out_) take_results(stack, results);
  }

 private:
  struct Patch {
    size_t position;
    Arg arg;
    c10::TypePtr type;
    bool takes_tensor;
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
      if (ref && patch.takes_tensor && operands[ref->operand].kind == runtime::Operand::Kind::Tensor)
        stack[patch.position] = view_tensor(operands[ref->operand].tensor);
      else
        stack[patch.position] = to_ivalue(patch.arg, patch.type, resolver);
    }
  }

  // Flattened: a list result gives one tensor an item; ints among the results give a ref without owner.
  static void take_results(std::vector<c10::IValue>& stack, std::span<runtime::TensorRef> results) {
    size_t next = 0;
    for (c10::IValue& value : stack) {
      if (value.isTensor()) {
        if (next < results.size()) results[next] = to_ref(std::move(value).toTensor());
        ++next;
      } else if (value.isTensorList()) {
        for (at::Tensor& item : value.toTensorVector()) {
          if (next < results.size()) results[next] = to_ref(std::move(item));
          ++next;
        }
      } else {
        ++next;
      }
    }
  }

  c10::OperatorHandle handle_;
  bool planned_out_;
  std::vector<c10::IValue> template_;
  std::vector<Patch> patches_;
  std::vector<size_t> out_positions_;
};

}  // namespace

std::unique_ptr<runtime::ExternCallee> make_extern_callee(const plan::CallExtern& call) {
  return std::make_unique<DispatcherCallee>(call);
}

}  // namespace cxxinductor::torch_bridge

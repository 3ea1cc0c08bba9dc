// Ops that write into tensors which the caller gives: as the op that makes its results, and copies.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>

namespace cxxinductor::torch_bridge {

// Of an op whose last arguments are written and are its results: the op without them ("aten::add.out":
// "aten::add.Tensor").
std::optional<c10::OperatorHandle> functional_form(const c10::OperatorHandle& op);

// Calls the functional form and copies its results. False, with the stack as it was: the tensors given have other sizes
// or dtypes than the results, which PyTorch's kernel changes or refuses, or share memory with operands in another form.
bool write_out(const c10::OperatorHandle& op, const c10::OperatorHandle& functional, torch::jit::Stack& stack);

}  // namespace cxxinductor::torch_bridge

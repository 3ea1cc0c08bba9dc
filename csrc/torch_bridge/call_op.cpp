#include "torch_bridge/call_op.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "support/error.h"

namespace cxxinductor::torch_bridge {

void call_op(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  static constexpr std::array<std::string_view, 2> assertions{"aten::_assert_async", "aten::_assert_scalar"};
  try {
    op.callBoxed(&stack);
  } catch (const c10::Error& error) {
    if (std::ranges::find(assertions, op.operator_name().name) == assertions.end()) throw;
    throw FailedAssertion(error.what_without_backtrace());
  }
}

}  // namespace cxxinductor::torch_bridge

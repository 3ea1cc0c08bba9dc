// Library ops that passes, scheduler and interpreters know by what they compute: one row each in library_ops.def. Passes find the row of a call and
// its arguments by role; names of ops and positions of arguments stand in the table alone. Effects of ops that the compiler knows nothing else of:
// ir/callees.h.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/call_args.h"
#include "support/error.h"

namespace cxxinductor {

enum class OpFamily : uint8_t {
  Matmul,               // Left times Right, of matrices or of batches of them; with an Addend, which is scaled as the product is
  Convolution,
  ConvolutionGradient,  // three results, each of which may be left out
  Attention,
  AttentionGradient,
  Pooling,
  Clone,
  Conversion,           // to another dtype, device or layout
  RunningSum,
  ScalarRead,           // defines a symbol as the one element of the Input
  Assertion,            // raises with the Message where the Condition is 0
  RandomState,          // states of torch's generator: Numbers for each of the Counts
};

enum class ArgRole : uint8_t {
  None,
  Left, Right, Addend, AddendScale, ProductScale,
  Input, Weight, Bias, Stride, Padding, Dilation, Transposed, OutputPadding, Groups,
  OutputGradient, OutputMask,
  Query, Key, Mask, Dropout, IsCausal,  // query and key: sizes [.., length, channels]
  NonBlocking,
  Condition, Message,
  Counts, Numbers, Device,
};

// Of images and what has their rank.
enum class LayoutPreference : uint8_t {
  None,          // the strides that eager has
  ChannelsLast,  // operands and results channels-last where kernels for the dtype exist
  FollowsInput,  // results are laid out as the Input is
};

constexpr int by_keyword = -1;
struct OpArgument {
  ArgRole role = ArgRole::None;
  int position = 0;
  std::string_view name;
};

struct LibraryOp {
  std::string_view name;
  std::string_view overload = {};  // that has these arguments too, besides the default overload
  OpFamily family;
  LayoutPreference layout = LayoutPreference::None;
  std::array<OpArgument, 9> arguments = {};  // those behind the last one have role None

  // Null where the op has no such argument.
  const OpArgument* find(ArgRole role) const;
};

std::span<const LibraryOp> library_ops();

// Null for ops without a row.
const LibraryOp* library_op(std::string_view callee, std::string_view overload);

// The op of a family that has one.
const LibraryOp& only_op(OpFamily family);

// Arguments of a call of the op, in the schema's order. The roles are those of all its first arguments, in any order.
struct RoleValue {
  ArgRole role;
  Arg value;
};
std::vector<Arg> positional_arguments(const LibraryOp& op, std::initializer_list<RoleValue> values);

// Call: has callee, overload, args and kwargs.
template <class Call>
const LibraryOp* library_op(const Call& call) {
  return library_op(call.callee, call.overload);
}
template <class Call>
bool is_call_of(const Call& call, OpFamily family) {
  const LibraryOp* op = library_op(call);
  return op && op->family == family;
}

// Null where the call is of no row's op, the op has no argument of this role, or the call leaves it out.
template <class Call>
auto* find_argument(Call& call, ArgRole role) {
  decltype(&call.args[0]) found = nullptr;
  const LibraryOp* op = library_op(call);
  const OpArgument* argument = op ? op->find(role) : nullptr;
  if (argument == nullptr) return found;
  if (argument->position == by_keyword) {
    for (auto& [name, value] : call.kwargs)
      if (name == argument->name) found = &value;
  } else if (static_cast<size_t>(argument->position) < call.args.size()) {
    found = &call.args[static_cast<size_t>(argument->position)];
  }
  return found;
}
// The same where it is an operand reference.
template <class Call>
auto* find_operand_ref(Call& call, ArgRole role) {
  auto* argument = find_argument(call, role);
  return argument ? std::get_if<OperandRef>(&argument->value) : nullptr;
}
// Sets an argument of a call that has all before it.
template <class Call>
void set_argument(Call& call, ArgRole role, Arg value) {
  if (Arg* found = find_argument(call, role)) {
    *found = std::move(value);
    return;
  }
  const LibraryOp* op = library_op(call);
  const OpArgument* argument = op ? op->find(role) : nullptr;
  CXXI_CHECK(argument, "{} has no argument of this role", call.callee);
  if (argument->position == by_keyword) {
    call.kwargs.emplace_back(argument->name, std::move(value));
  } else {
    CXXI_CHECK(static_cast<size_t>(argument->position) == call.args.size(), "{} lacks arguments before {}", call.callee, argument->name);
    call.args.push_back(std::move(value));
  }
}

// A call of the op's default overload, whose operands and results are the caller's to state.
template <class Call>
Call make_call(const LibraryOp& op, std::initializer_list<RoleValue> values) {
  Call call;
  call.callee = op.name;
  call.args = positional_arguments(op, values);
  return call;
}

}  // namespace cxxinductor

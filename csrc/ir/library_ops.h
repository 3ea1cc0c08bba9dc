// Library ops that passes, scheduler and interpreters know by what they compute: one row each in library_ops.def. Passes find the row of a call and
// its arguments by role; names of ops and positions of arguments stand in the table alone. Effects of ops that the compiler knows nothing else of:
// ir/callees.h.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "ir/call.h"

namespace cxxinductor {

enum class OpFamily : uint8_t {
  Matmul,  // Left times Right, of matrices or of batches of them; with an Addend, which is scaled as the product is
  Convolution,
  ConvolutionGradient,  // three results, each of which may be left out
  Attention,
  AttentionGradient,
  Pooling,
  Clone,
  Conversion,  // to another dtype, device or layout
  RunningSum,
  ScalarRead,   // defines a symbol as the one element of the Input
  Assertion,    // raises with the Message where the Condition is 0
  RandomState,  // states of torch's generator: Numbers for each of the Counts
};

enum class ArgRole : uint8_t {
  None,
  Left,
  Right,
  Addend,
  AddendScale,
  ProductScale,
  Input,
  Weight,
  Bias,
  Stride,
  Padding,
  Dilation,
  Transposed,
  OutputPadding,
  Groups,
  OutputGradient,
  OutputMask,
  Query,
  Key,
  Mask,
  Dropout,
  IsCausal,  // query and key: sizes [.., length, channels]
  NonBlocking,
  Condition,
  Message,
  Counts,
  Numbers,
  Device,
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
const LibraryOp* library_op(const Call& call);
bool is_call_of(const Call& call, OpFamily family);

// The op of a family that has one.
const LibraryOp& only_op(OpFamily family);

// Null where the call is of no row's op, the op has no argument of this role, or the call leaves it out.
const Arg* find_argument(const Call& call, ArgRole role);
Arg* find_argument(Call& call, ArgRole role);
// The same where it is an operand reference.
const OperandRef* find_operand_ref(const Call& call, ArgRole role);
// Sets an argument of a call that has all before it.
void set_argument(Call& call, ArgRole role, Arg value);

// A call of the op's default overload, whose aliases and results are the caller's to state. The roles are those of all the first arguments, in any
// order.
struct RoleValue {
  ArgRole role;
  Arg value;
};
Call make_call(const LibraryOp& op, std::initializer_list<RoleValue> values);

}  // namespace cxxinductor

// In-place forms: how calls write results into memory that the plan provides, where torch's out= overload computes the
// result elsewhere and copies it, or is slower than another op. A form decides by the arguments of each call, as eager
// does.
#pragma once

#include <ATen/core/stack.h>

#include <string_view>

namespace cxxinductor::torch_bridge {

// Writes the destination, which the last of the arguments is; they are those of the op's out= overload. False: these
// arguments have no such form, and nothing has been done. Elements are those that the op gives in eager, bit by bit,
// but for the sums of split products.
using InPlaceForm = bool (*)(const torch::jit::Stack& arguments);

// Null: the op has none, its out= overload is called.
InPlaceForm find_in_place_form(std::string_view callee);

}  // namespace cxxinductor::torch_bridge

#include "ir/library_ops.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "support/error.h"

namespace cxxinductor {
namespace {

constexpr LibraryOp library_rows[] = {
#define LIBRARY_OP(...) LibraryOp{__VA_ARGS__},
#include "ir/library_ops.def"
#undef LIBRARY_OP
};

// AnyCall: Call or const Call.
template <class AnyCall>
auto* find_in(AnyCall& call, ArgRole role) {
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

}  // namespace

const OpArgument* LibraryOp::find(ArgRole role) const {
  const auto found = std::ranges::find(arguments, role, &OpArgument::role);
  return found == arguments.end() ? nullptr : &*found;
}

std::span<const LibraryOp> library_ops() { return library_rows; }

const LibraryOp* library_op(std::string_view callee, std::string_view overload) {
  const auto found = std::ranges::find(library_rows, callee, &LibraryOp::name);
  if (found == std::end(library_rows)) return nullptr;
  return overload.empty() || overload == "default" || overload == found->overload ? &*found : nullptr;
}

const LibraryOp& only_op(OpFamily family) {
  CXXI_CHECK(std::ranges::count(library_rows, family, &LibraryOp::family) == 1, "a family of several ops, or of none");
  return *std::ranges::find(library_rows, family, &LibraryOp::family);
}

const LibraryOp* library_op(const Call& call) { return library_op(call.callee, call.overload); }

bool is_call_of(const Call& call, OpFamily family) {
  const LibraryOp* op = library_op(call);
  return op && op->family == family;
}

const Arg* find_argument(const Call& call, ArgRole role) { return find_in(call, role); }
Arg* find_argument(Call& call, ArgRole role) { return find_in(call, role); }

const OperandRef* find_operand_ref(const Call& call, ArgRole role) {
  const Arg* argument = find_argument(call, role);
  return argument ? argument->as<OperandRef>() : nullptr;
}

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

Call make_call(const LibraryOp& op, std::initializer_list<RoleValue> values) {
  std::vector<std::optional<Arg>> placed(values.size());
  for (const RoleValue& value : values) {
    const OpArgument* argument = op.find(value.role);
    const size_t position = argument && argument->position != by_keyword ? static_cast<size_t>(argument->position) : placed.size();
    CXXI_CHECK(position < placed.size() && !placed[position], "{}: expected its first {} arguments, once each", op.name, placed.size());
    placed[position] = value.value;
  }
  Call call;
  call.callee = op.name;
  for (std::optional<Arg>& arg : placed) call.args.push_back(std::move(*arg));
  return call;
}

}  // namespace cxxinductor

#include "ir/library_ops.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "support/error.h"

namespace cxxinductor {
namespace {

constexpr LibraryOp rows[] = {
#define LIBRARY_OP(...) LibraryOp{__VA_ARGS__},
#include "ir/library_ops.def"
#undef LIBRARY_OP
};

}  // namespace

const OpArgument* LibraryOp::find(ArgRole role) const {
  const auto found = std::ranges::find(arguments, role, &OpArgument::role);
  return found == arguments.end() ? nullptr : &*found;
}

std::span<const LibraryOp> library_ops() { return rows; }

const LibraryOp* library_op(std::string_view callee, std::string_view overload) {
  const auto found = std::ranges::find(rows, callee, &LibraryOp::name);
  if (found == std::end(rows)) return nullptr;
  return overload.empty() || overload == "default" || overload == found->overload ? &*found : nullptr;
}

const LibraryOp& only_op(OpFamily family) {
  CXXI_CHECK(std::ranges::count(rows, family, &LibraryOp::family) == 1, "a family of several ops, or of none");
  return *std::ranges::find(rows, family, &LibraryOp::family);
}

std::vector<Arg> positional_arguments(const LibraryOp& op, std::initializer_list<RoleValue> values) {
  std::vector<std::optional<Arg>> placed(values.size());
  for (const RoleValue& value : values) {
    const OpArgument* argument = op.find(value.role);
    const size_t position = argument && argument->position != by_keyword ? static_cast<size_t>(argument->position) : placed.size();
    CXXI_CHECK(position < placed.size() && !placed[position], "{}: expected its first {} arguments, once each", op.name, placed.size());
    placed[position] = value.value;
  }
  std::vector<Arg> args;
  for (std::optional<Arg>& arg : placed) args.push_back(std::move(*arg));
  return args;
}

}  // namespace cxxinductor

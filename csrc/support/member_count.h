// How many members an aggregate has: tables that list the members of structs check with it that none is left out.
#pragma once

#include <cstddef>

namespace cxxinductor {
namespace detail {

struct AnyMember {
  template <class T>
  operator T() const;  // NOLINT: stands for a member of any type, never evaluated
};
template <class Aggregate, class... Members>
constexpr size_t count_members() {
  if constexpr (requires { Aggregate{Members{}..., AnyMember{}}; }) return count_members<Aggregate, Members..., AnyMember>();
  return sizeof...(Members);
}

}  // namespace detail

template <class Aggregate>
constexpr size_t member_count = detail::count_members<Aggregate>();

}  // namespace cxxinductor

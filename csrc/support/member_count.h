// How many members an aggregate has: for lists of members that must not leave one out.
#pragma once

#include <cstddef>

namespace cxxinductor {

namespace detail {
struct AnyMember {
  template <class T>
  constexpr operator T() const;  // NOLINT: stands for a member of any type, never evaluated
};
}  // namespace detail

template <class Aggregate, class... Members>
constexpr size_t member_count() {
  if constexpr (requires { Aggregate{Members()..., detail::AnyMember()}; })
    return member_count<Aggregate, Members..., detail::AnyMember>();
  else
    return sizeof...(Members);
}

}  // namespace cxxinductor

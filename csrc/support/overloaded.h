// One visitor for std::visit made of several lambdas, one per alternative.
#pragma once

namespace cxxinductor {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace cxxinductor

// A symbol whose value only a call makes known: how many elements nonzero found, what a tensor's one element is.
//
// Calls of all three IRs hold such definitions. What stands before the call cannot use the symbol, and its value is
// checked against the program's assumptions when it becomes known: the assumptions may be relied upon.
#pragma once

#include <string>

namespace cxxinductor {

struct Definition {
  std::string symbol;
  int result = -1;  // -1: the one element of the call's operand, as an integer
  int dim = 0;      // of a result: d: sizes[d]; rank + d: strides[d]
  friend bool operator==(const Definition&, const Definition&) = default;
};

}  // namespace cxxinductor

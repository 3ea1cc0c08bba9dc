// How many allocations this program has made: work that can be counted, where time on a shared machine can't be
// compared.
#pragma once
#include <cstdint>

namespace cxxinductor::testing {

// Calls of operator new since the program began, of all its threads.
uint64_t allocations();

}  // namespace cxxinductor::testing

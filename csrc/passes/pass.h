// A pass is a value: it takes an IR and the options, says whether it changed anything, reads no environment and prints
// nothing. pipelines.cpp lists them; pass_manager alone runs, times, verifies and skips them.
#pragma once

#include <string_view>

#include "support/options.h"

namespace cxxinductor::passes {

template <class IR>
struct Pass {
  std::string_view name;  // as in options.skip_passes
  std::string_view doc;   // one line
  bool (*function)(IR&, const Options&);
  bool spends_memory = false;  // to save time: left out where the plan would hold more than eager
};

}  // namespace cxxinductor::passes

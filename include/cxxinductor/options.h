// How models are compiled; docs/options.md says what each option does. What a program sets is what it gets:
// environment variables count only where it asks for them (options_from_environment).
#pragma once

#include <cstdint>
#include <string>

namespace cxxinductor {

struct Options {
#define OPTION(name, type, default_value, decides, accepts, doc) type name = default_value;  // NOLINT
#include <cxxinductor/options.def>
#undef OPTION
  bool eager_numerics() const { return numerics == "eager"; }
};

// The defaults, but that calls do not wait for the compiler (Options::wait).
inline Options without_waiting() {
  Options options;
  options.wait = false;
  return options;
}

}  // namespace cxxinductor

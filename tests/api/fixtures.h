#pragma once

#include <string>

namespace cxxinductor::tests {

// The path of an exported model of tests/data/pt2.
inline std::string fixture(const std::string& name) { return CXXINDUCTOR_SOURCE_DIR "/tests/data/pt2/" + name; }

}  // namespace cxxinductor::tests

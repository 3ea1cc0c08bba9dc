// Where a fuzzer begins: with the same programs in each run, so that a change fails for its own sake.
// CXXINDUCTOR_FUZZ_SEED is a number to repeat, or "random" to look for what nobody has seen yet.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>

namespace cxxinductor::fuzz {

inline uint64_t first_seed() {
  const char* given = std::getenv("CXXINDUCTOR_FUZZ_SEED");
  if (given == nullptr) return 20261121;
  static const uint64_t seed = std::string_view(given) == "random" ? std::random_device()() : std::strtoull(given, nullptr, 10);
  return seed;
}

}  // namespace cxxinductor::fuzz

// Random edits of a valid text: a parser must accept the result or throw a UserError, and nothing else.
#pragma once

#include <functional>
#include <random>
#include <string>

#include "support/error.h"
#include "unit/catch.h"

inline void fuzz_text(const std::string& valid, const std::function<void(std::string_view)>& parse, int rounds = 3000) {
  constexpr unsigned seed = 20240607;
  std::mt19937 random(seed);
  auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  const std::string alphabet = "%@$[](){}<>=,.;:\"|+-*0123456789abfsxz \n\\";
  for (int round = 0; round < rounds; ++round) {
    std::string text = valid;
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
      size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(12));
      switch (below(5)) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text[at] = alphabet[below(alphabet.size())];
          break;
        case 2:
          text.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), length));
          break;
        default:
          text.resize(at);
          break;
      }
    }
    try {
      parse(text);
    } catch (const cxxinductor::UserError&) {
    } catch (const std::exception& error) {
      FAIL("seed " << seed << ", round " << round << ": " << error.what() << "\n" << text);
    }
  }
}

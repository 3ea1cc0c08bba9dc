// Substring checks that work with both major versions of Catch2.
#pragma once

#include <string_view>

#include "unit/catch.h"

inline void check_contains(std::string_view text, std::string_view part) {
  INFO("in: " << text << "\nexpected: " << part);
  CHECK(text.find(part) != text.npos);
}

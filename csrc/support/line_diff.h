// The lines in which two texts differ, for people.
#pragma once

#include <string>
#include <string_view>

namespace cxxinductor {

// Lines with "- " (of before alone), "+ " (of after alone) or "  " in front, the last being up to `context` lines around a change; "..."
// stands for lines that are left out. Empty where the texts are equal. The fewest changes, but for long texts that differ in many lines.
std::string line_diff(std::string_view before, std::string_view after, size_t context = 2);

}  // namespace cxxinductor

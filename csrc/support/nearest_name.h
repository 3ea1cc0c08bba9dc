// Suggestions in errors about unknown names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cxxinductor {

// The candidate with the fewest characters to insert, delete or replace; of equal ones the first. There is at least one.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace cxxinductor

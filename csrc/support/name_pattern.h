// Names in tables: an entry that ends in * stands for all names that begin so.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace cxxinductor {

inline bool matches(std::string_view entry, std::string_view name) {
  return entry.ends_with('*') ? name.starts_with(entry.substr(0, entry.size() - 1)) : name == entry;
}

inline bool matches_any(std::span<const std::string_view> entries, std::string_view name) {
  return std::ranges::any_of(entries, [&](std::string_view entry) { return matches(entry, name); });
}

}  // namespace cxxinductor

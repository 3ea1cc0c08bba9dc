// What tests put in the places that their texts leave open.
#pragma once

#include <string>
#include <string_view>

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

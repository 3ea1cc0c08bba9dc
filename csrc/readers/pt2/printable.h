// Text of a file as a message may quote it: cut, and without bytes that are not printable ASCII.
#pragma once

#include <string>
#include <string_view>

namespace cxxinductor::readers {

inline std::string printable(std::string_view text) {
  constexpr size_t max_shown = 160;
  std::string out(text.substr(0, max_shown));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return text.size() > max_shown ? out + "..." : out;
}

}  // namespace cxxinductor::readers

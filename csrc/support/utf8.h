// Text from outside (compilers, libraries of users) for messages, which Python reads as UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace cxxinductor {

// The text with '?' for each byte that belongs to no character of UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace cxxinductor

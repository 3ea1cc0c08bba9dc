#include "support/utf8.h"

#include <cstdint>

namespace cxxinductor {
namespace {

// Bytes of the character that the text begins with; 0: it begins with none.
size_t character_size(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >> 5 == 0b110 ? 2 : first >> 4 == 0b1110 ? 3 : first >> 3 == 0b11110 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if (byte(i) >> 6 != 0b10) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};  // longer forms of smaller codes are not UTF-8
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code >= least[size] && code <= 0x10ffff && !is_surrogate ? size : 0;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0)
      out += '?';
    else
      out += text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

}  // namespace cxxinductor

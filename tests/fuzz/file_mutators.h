// Edits of files, each of a kind that knows the structure: bytes of a zip archive or of a package's table, values of a JSON tree, words of a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "unit/readers/archives.h"

namespace cxxinductor::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(engine_); }
  bool one_in(size_t count) { return below(count) == 0; }
  uint64_t bits() { return engine_(); }
  template <class List>
  const auto& pick(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  std::mt19937_64 engine_;
};

// A field of a local header, a directory record or the directory's end; a byte anywhere; the length; a directory of many records.
void mutate_zip(std::string& zip, Random& random);
// Names, bytes, order and number of entries.
void mutate_entries(std::vector<readers::ZipEntry>& entries, Random& random);
// Values, keys, types, nesting.
void mutate_json(nlohmann::json& root, Random& random);
// JSON that no tree can hold: of many levels, with keys twice, cut off.
void mutate_json_text(std::string& text, Random& random);
// Words and lines of calls, graphs and plans. other: a text to take words from.
void mutate_text(std::string& text, const std::string& other, Random& random);
// A field of the header or of the table, a byte anywhere, or the length.
void mutate_package(std::string& package, Random& random);

}  // namespace cxxinductor::fuzz

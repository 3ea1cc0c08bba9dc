// The directory of a zip archive in memory: where each entry's bytes lie. Entries have to be stored, as torch writes
// them, so that they are mapped and nothing is ever inflated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor::readers {

struct ArchiveEntry {
  size_t offset = 0;  // of its first byte in the file
  size_t size = 0;
  uint32_t crc = 0;
};

class Archive {
 public:
  // `file` must outlive this. UserError: not a zip archive; an entry is compressed, encrypted, named twice, outside of
  // the file, or overlaps another one; entries are not all in one folder.
  explicit Archive(std::span<const std::byte> file);

  // Names are relative to the archive's one folder: "models/model.json".
  const ArchiveEntry* find(std::string_view name) const;
  const ArchiveEntry& get(std::string_view name) const;  // UserError if missing
  std::string_view text(std::string_view name) const;    // its bytes, once their CRC is checked; UserError
  std::vector<std::string> names_in(std::string_view folder) const;

 private:
  void check_overlaps() const;

  std::span<const std::byte> file_;
  std::map<std::string, ArchiveEntry, std::less<>> entries_;
};

// Of a file that may be no archive of the kind above: as far as its zip directory can be read, names without their first folder.
std::vector<std::string> entry_names(std::span<const std::byte> file);

}  // namespace cxxinductor::readers

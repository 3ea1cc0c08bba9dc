#include "readers/pt2/archive.h"

#include <minizip/unzip.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "readers/pt2/printable.h"
#include "support/error.h"

namespace cxxinductor::readers {
namespace {

constexpr size_t max_entries = 200000;
constexpr size_t max_name = 1024;

// A memory range as the file that minizip reads.
struct Stream {
  std::span<const std::byte> bytes;
  uint64_t position = 0;
};

Stream& stream_of(voidpf stream) { return *static_cast<Stream*>(stream); }

uLong read_stream(voidpf, voidpf stream, void* out, uLong size) {
  Stream& s = stream_of(stream);
  const size_t count = std::min<size_t>(size, s.bytes.size() - s.position);
  if (count > 0) std::memcpy(out, s.bytes.data() + s.position, count);
  s.position += count;
  return static_cast<uLong>(count);
}

long seek_stream(voidpf, voidpf stream, ZPOS64_T offset, int origin) {
  Stream& s = stream_of(stream);
  const uint64_t base = origin == ZLIB_FILEFUNC_SEEK_SET ? 0 : origin == ZLIB_FILEFUNC_SEEK_CUR ? s.position : s.bytes.size();
  uint64_t position = 0;
  if (__builtin_add_overflow(base, offset, &position) || position > s.bytes.size()) return -1;
  s.position = position;
  return 0;
}

zlib_filefunc64_def functions_over(Stream& stream) {
  zlib_filefunc64_def functions{};
  functions.zopen64_file = [](voidpf opaque, const void*, int) { return opaque; };
  functions.zread_file = read_stream;
  functions.ztell64_file = [](voidpf, voidpf s) -> ZPOS64_T { return stream_of(s).position; };
  functions.zseek64_file = seek_stream;
  functions.zclose_file = [](voidpf, voidpf) { return 0; };
  functions.zerror_file = [](voidpf, voidpf) { return 0; };
  functions.opaque = &stream;
  return functions;
}

struct CloseZip {
  void operator()(void* zip) const { unzClose(zip); }
};
using Zip = std::unique_ptr<void, CloseZip>;

std::string read_name(void* zip, unz_file_info64& info) {
  std::array<char, max_name + 1> name{};
  if (unzGetCurrentFileInfo64(zip, &info, name.data(), max_name, nullptr, 0, nullptr, 0) != UNZ_OK) throw_user_error("zip directory: an entry cannot be read");
  const size_t length = info.size_filename;
  if (length == 0 || length > max_name) throw_user_error("zip directory: expected entry names of 1 to {} characters, found {}", max_name, length);
  if (std::memchr(name.data(), 0, length) != nullptr) throw_user_error("zip directory: an entry's name has a zero byte");
  return std::string(name.data(), length);
}

// Of the current entry, whose local header minizip compares with the directory.
ArchiveEntry locate(void* zip, const std::string& name, const unz_file_info64& info, size_t file_size) {
  if ((info.flag & 1) != 0) throw_user_error("{}: expected an entry that is not encrypted", printable(name));
  if (info.compression_method != 0) throw_user_error("{}: expected a stored entry, found compression method {}", printable(name), info.compression_method);
  if (info.compressed_size != info.uncompressed_size)
    throw_user_error("{}: expected equal sizes of a stored entry, found {} and {}", printable(name), info.compressed_size, info.uncompressed_size);
  int method = 0, level = 0;
  if (unzOpenCurrentFile2(zip, &method, &level, 1) != UNZ_OK)
    throw_user_error("{}: the entry's header is not in the file or contradicts the zip directory", printable(name));
  const uint64_t offset = unzGetCurrentFileZStreamPos64(zip);
  unzCloseCurrentFile(zip);
  if (offset > file_size || info.uncompressed_size > file_size - offset)
    throw_user_error("{}: expected an entry inside of the file of {} bytes, found {} bytes at {}", printable(name), file_size, info.uncompressed_size, offset);
  return {static_cast<size_t>(offset), static_cast<size_t>(info.uncompressed_size), static_cast<uint32_t>(info.crc)};
}

}  // namespace

Archive::Archive(std::span<const std::byte> file) : file_(file) {
  Stream stream{file};
  zlib_filefunc64_def functions = functions_over(stream);
  const Zip zip(unzOpen2_64("", &functions));
  if (!zip) throw_user_error("expected a zip archive, found {} bytes without a zip directory", file.size());
  std::string root;
  int status = unzGoToFirstFile(zip.get());
  for (; status == UNZ_OK; status = unzGoToNextFile(zip.get())) {
    if (entries_.size() >= max_entries) throw_user_error("zip directory: expected at most {} entries", max_entries);
    unz_file_info64 info{};
    const std::string name = read_name(zip.get(), info);
    const ArchiveEntry entry = locate(zip.get(), name, info, file.size());
    const size_t slash = name.find('/');
    if (slash == name.npos) throw_user_error("{}: expected an entry inside of the archive's folder", printable(name));
    if (root.empty()) root = name.substr(0, slash + 1);
    if (!name.starts_with(root)) throw_user_error("{}: expected an entry in the folder {}", printable(name), printable(root));
    if (!entries_.emplace(name.substr(root.size()), entry).second) throw_user_error("{}: the archive has two such entries", printable(name));
  }
  if (status != UNZ_END_OF_LIST_OF_FILE) throw_user_error("zip directory: damaged after {} entries", entries_.size());
  check_overlaps();
}

std::vector<std::string> entry_names(std::span<const std::byte> file) {
  std::vector<std::string> names;
  Stream stream{file};
  zlib_filefunc64_def functions = functions_over(stream);
  const Zip zip(unzOpen2_64("", &functions));
  if (!zip) return names;
  for (int status = unzGoToFirstFile(zip.get()); status == UNZ_OK && names.size() < max_entries; status = unzGoToNextFile(zip.get())) {
    unz_file_info64 info{};
    const std::string name = read_name(zip.get(), info);
    names.push_back(name.substr(name.find('/') + 1));
  }
  return names;
}

void Archive::check_overlaps() const {
  using Named = std::pair<const std::string, ArchiveEntry>;
  std::vector<const Named*> sorted;
  for (const Named& named : entries_)
    if (named.second.size > 0) sorted.push_back(&named);
  std::sort(sorted.begin(), sorted.end(), [](const Named* a, const Named* b) { return a->second.offset < b->second.offset; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const ArchiveEntry& before = sorted[i - 1]->second;
    if (before.offset + before.size > sorted[i]->second.offset)
      throw_user_error("{}: the entry overlaps {}", printable(sorted[i]->first), printable(sorted[i - 1]->first));
  }
}

const ArchiveEntry* Archive::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const ArchiveEntry& Archive::get(std::string_view name) const {
  const ArchiveEntry* entry = find(name);
  if (entry == nullptr) throw_user_error("{}: the archive has no such entry", printable(name));
  return *entry;
}

std::string_view Archive::text(std::string_view name) const {
  const ArchiveEntry& entry = get(name);
  const auto bytes = file_.subspan(entry.offset, entry.size);
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != entry.crc) throw_user_error("{}: expected the checksum {:08x}, found {:08x}", printable(name), entry.crc, crc);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> Archive::names_in(std::string_view folder) const {
  std::vector<std::string> names;
  for (auto found = entries_.lower_bound(folder); found != entries_.end() && found->first.starts_with(folder); ++found)
    names.push_back(found->first.substr(folder.size()));
  return names;
}

}  // namespace cxxinductor::readers

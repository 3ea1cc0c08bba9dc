#include "package/container.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/files.h"

namespace cxxinductor::package_file {
namespace {

constexpr std::array<char, 8> magic{'c', 'x', 'x', 'i', 'p', 'k', 'g', '\n'};
constexpr uint32_t format_version = 2;  // of the container and of the texts in it
constexpr uint32_t most_sections = 1 << 16;
constexpr std::string_view signed_prefix = "cxxinductor package 1\n";

// Both are written and compared as bytes: little-endian, no padding.
struct Header {
  // The digest covers this and the table.
  std::array<char, 8> magic = package_file::magic;
  uint32_t version = format_version;
  uint32_t section_count = 0;
  uint64_t file_size = 0;
  uint64_t reserved = 0;
  // From here on it does not.
  Digest digest{};
  PublicKey signer{};  // zeros: not signed
  Signature signature{};
};
static_assert(sizeof(Header) == 160);
constexpr size_t digested_header = 32;

struct Entry {
  uint32_t kind = 0;
  uint32_t reserved = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  Digest digest{};
  std::array<char, longest_name> name{};  // zeros behind it
};
static_assert(sizeof(Entry) == 128);

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}

size_t aligned(size_t size) { return (size + section_alignment - 1) / section_alignment * section_alignment; }

std::vector<std::byte> signed_message(const Digest& digest) {
  std::vector<std::byte> message;
  for (char c : signed_prefix) message.push_back(static_cast<std::byte>(c));
  message.insert(message.end(), digest.begin(), digest.end());
  return message;
}

Digest table_digest(const Header& header, std::span<const std::byte> table) {
  Hasher hasher;
  hasher.add(bytes_of(header).first(digested_header));
  hasher.add(table);
  return hasher.finish();
}

bool is_kind(uint32_t kind) { return kind >= static_cast<uint32_t>(SectionKind::Manifest) && kind <= static_cast<uint32_t>(SectionKind::Weights); }

std::string describe(const Section& section) { return fmt::format("section {} '{}'", to_string(section.kind), section.name); }

void require_zeros(std::span<const std::byte> bytes, size_t offset) {
  const auto found = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  if (found != bytes.end())
    throw_user_error("package: expected zeros between sections, found byte {} at {}", static_cast<int>(*found),
                     offset + static_cast<size_t>(found - bytes.begin()));
}

Section read_entry(const Entry& entry, size_t index) {
  const std::string_view name(entry.name.data(), strnlen(entry.name.data(), entry.name.size()));
  const auto fail = [&](std::string_view field, std::string_view expected, const auto& found) {
    throw_user_error("package: table entry {} ({}): {}: expected {}, found {}", index, readers::printable(name), field, expected, found);
  };
  if (!is_kind(entry.kind)) fail("kind", "1 to 6", entry.kind);
  if (entry.reserved != 0) fail("reserved", "0", entry.reserved);
  if (name.empty() || readers::printable(name) != name) fail("name", "printable text", fmt::format("{} bytes", name.size()));
  if (std::any_of(entry.name.begin() + static_cast<std::ptrdiff_t>(name.size()), entry.name.end(), [](char c) { return c != 0; }))
    fail("name", "zeros behind it", "other bytes");
  return {static_cast<SectionKind>(entry.kind), std::string(name), entry.offset, entry.size, entry.digest};
}

// A file that gets its name when all of it is there.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), temporary_(path + ".XXXXXX") {
    file_ = Descriptor(::mkostemp(temporary_.data(), O_CLOEXEC));
    if (!file_.open()) fail();
    ::fchmod(file_.get(), 0644);
  }
  ~NewFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  void write(std::span<const std::byte> bytes) {
    if (!write_all(file_.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) fail();
  }
  void finish() {
    if (!file_.close() || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    temporary_.clear();
  }

 private:
  [[noreturn]] void fail() const { throw_user_error("{}: {}", path_, std::strerror(errno)); }
  std::string path_, temporary_;
  Descriptor file_;
};

}  // namespace

std::string_view to_string(SectionKind kind) {
  switch (kind) {
    case SectionKind::Manifest:
      return "manifest";
    case SectionKind::Calls:
      return "calls";
    case SectionKind::Plan:
      return "plan";
    case SectionKind::Source:
      return "source";
    case SectionKind::Code:
      return "code";
    case SectionKind::Weights:
      return "weights";
  }
  return "?";
}

bool is_package(std::span<const std::byte> file) { return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0; }

Container::Container(std::span<const std::byte> file) : file_(file) {
  Header header;
  if (!is_package(file)) throw_user_error("package: expected a file that begins with \"cxxipkg\", found something else");
  if (file.size() < sizeof header) throw_user_error("package: header: expected {} bytes, found {}", sizeof header, file.size());
  std::memcpy(&header, file.data(), sizeof header);
  if (header.version != format_version)
    throw_unsupported("package: header: expected format version {}, found {}; make the package again with this version", format_version, header.version);
  if (header.reserved != 0) throw_user_error("package: header: reserved: expected 0, found {}", header.reserved);
  if (header.file_size != file.size()) throw_user_error("package: expected {} bytes, as its header says, found {}", header.file_size, file.size());
  if (header.section_count > most_sections) throw_user_error("package: header: expected at most {} sections, found {}", most_sections, header.section_count);
  const size_t table_size = header.section_count * sizeof(Entry);
  if (table_size > file.size() - sizeof header)
    throw_user_error("package: table: {} sections need {} bytes, found {}", header.section_count, table_size, file.size() - sizeof header);
  const std::span<const std::byte> table = file.subspan(sizeof header, table_size);
  for (size_t i = 0; i < header.section_count; ++i) {
    Entry entry;
    std::memcpy(&entry, table.data() + i * sizeof entry, sizeof entry);
    sections_.push_back(read_entry(entry, i));
  }
  check_layout();
  if (table_digest(header, table) != header.digest) throw_user_error("package: table: its digest does not match: the file is damaged");
  if (header.signer == PublicKey{} && header.signature == Signature{}) return;
  if (!is_signed(signed_message(header.digest), header.signature, header.signer))
    throw_user_error("package: header: the signature does not match key {}: the file is damaged", to_hex(header.signer));
  signer_ = header.signer;
}

// One after another in the order of the table, each at the next multiple of the alignment: there are no overlaps and no gaps.
void Container::check_layout() const {
  std::set<std::pair<SectionKind, std::string_view>> names;
  size_t end = sizeof(Header) + sections_.size() * sizeof(Entry);
  for (const Section& section : sections_) {
    const size_t begin = aligned(end);
    if (section.offset != begin)
      throw_user_error("package: {}: offset: expected {}, the next multiple of {} behind what comes before, found {}", describe(section), begin,
                       section_alignment, section.offset);
    if (begin > file_.size() || section.size > file_.size() - begin)
      throw_user_error("package: {}: length: expected at most the file's {} bytes, found {} bytes from byte {}", describe(section), file_.size(), section.size,
                       section.offset);
    if (!names.emplace(section.kind, section.name).second) throw_user_error("package: {}: expected a name once, found it twice", describe(section));
    require_zeros(file_.subspan(end, begin - end), end);
    end = begin + section.size;
  }
  if (end != file_.size()) throw_user_error("package: expected the end of the file at byte {}, found {} more", end, file_.size() - end);
}

const Section* Container::find(SectionKind kind, std::string_view name) const {
  const auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.kind == kind && s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

const Section& Container::get(SectionKind kind, std::string_view name) const {
  const Section* found = find(kind, name);
  if (!found) throw_user_error("package: expected a section {} '{}', found none", to_string(kind), readers::printable(name));
  return *found;
}

void Container::check_digest(const Section& section, const Digest& found) const {
  if (found != section.digest) throw_user_error("package: {}: its digest does not match: the file is damaged", describe(section));
}

std::string Container::read(const Section& section) const {
  const std::span<const std::byte> bytes = file_.subspan(section.offset, section.size);
  std::string copy(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  check_digest(section, section_digest(std::as_bytes(std::span(copy))));
  return copy;
}

std::span<const std::byte> Container::map(const Section& section, const ParallelFor& parallel_for) const {
  const std::span<const std::byte> bytes = file_.subspan(section.offset, section.size);
  check_digest(section, section_digest(bytes, parallel_for));
  return bytes;
}

namespace {

// Calls write(bytes) with everything that a container of the sections has, in order.
template <class Write>
void put_container(std::span<const NewSection> sections, const SigningKey* key, const Write& write) {
  CXXI_CHECK(sections.size() <= most_sections, "{} sections", sections.size());
  std::vector<Entry> table(sections.size());
  size_t end = sizeof(Header) + table.size() * sizeof(Entry);
  for (size_t i = 0; i < table.size(); ++i) {
    Entry& entry = table[i];
    const NewSection& section = sections[i];
    CXXI_CHECK(!section.name.empty() && section.name.size() <= entry.name.size(), "a section's name of {} bytes", section.name.size());
    entry.kind = static_cast<uint32_t>(section.kind);
    std::copy(section.name.begin(), section.name.end(), entry.name.begin());
    entry.offset = aligned(end);
    SectionHasher hasher;
    for (const std::span<const std::byte> piece : section.pieces) {
      hasher.add(piece);
      entry.size += piece.size();
    }
    entry.digest = hasher.finish();
    end = entry.offset + entry.size;
  }
  Header header;
  header.section_count = static_cast<uint32_t>(table.size());
  header.file_size = end;
  const std::span<const std::byte> table_bytes = std::as_bytes(std::span(table));
  header.digest = table_digest(header, table_bytes);
  if (key) {
    header.signer = key->public_key();
    header.signature = key->sign(signed_message(header.digest));
  }
  write(bytes_of(header));
  write(table_bytes);
  static constexpr std::array<std::byte, section_alignment> zeros{};
  size_t written = sizeof(Header) + table_bytes.size();
  for (size_t i = 0; i < table.size(); ++i) {
    write(std::span(zeros).first(table[i].offset - written));
    for (const std::span<const std::byte> piece : sections[i].pieces) write(piece);
    written = table[i].offset + table[i].size;
  }
}

}  // namespace

void write_container(const std::string& path, std::span<const NewSection> sections, const SigningKey* key) {
  NewFile file(path);
  put_container(sections, key, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.finish();
}

std::vector<std::byte> container_bytes(std::span<const NewSection> sections, const SigningKey* key) {
  std::vector<std::byte> all;
  put_container(sections, key, [&](std::span<const std::byte> bytes) { all.insert(all.end(), bytes.begin(), bytes.end()); });
  return all;
}

void write_pieces(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  NewFile file(path);
  for (const std::span<const std::byte> piece : pieces) file.write(piece);
  file.finish();
}

}  // namespace cxxinductor::package_file

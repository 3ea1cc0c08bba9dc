// The file that a package is: sections of bytes, each with a kind, a name and a digest, made to be mapped.
// docs/design/package.md has the layout.
//
// Files are untrusted. Opening one checks its structure and the digest of the table, which covers the header; what a section holds
// is compared with its digest when it is read. Errors are UserErrors that name the place, what was expected and what was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "package/digest.h"

namespace cxxinductor::package_file {

// Numbers are those of the file.
enum class SectionKind : uint32_t {
  Manifest = 1,  // JSON: what manifest.h reads
  Calls = 2,     // text of the model's calls (model/text.h)
  Plan = 3,      // text of a plan (ir/plan/text.h)
  Source = 4,    // text of a kernel, for people
  Code = 5,      // machine code: a cubin or a shared object
  Weights = 6,   // storages, each at a multiple of 64 bytes
};
std::string_view to_string(SectionKind kind);

constexpr size_t section_alignment = 4096;
constexpr size_t storage_alignment = 64;
constexpr size_t longest_name = 72;  // of a section

// Whether the bytes begin as a package does.
bool is_package(std::span<const std::byte> file);

struct Section {
  SectionKind kind = SectionKind::Manifest;
  std::string name;  // printable ASCII; two sections of a kind have different names
  size_t offset = 0, size = 0;
  Digest digest{};
};

class Container {
 public:
  // `file` must outlive this.
  explicit Container(std::span<const std::byte> file);

  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(SectionKind kind, std::string_view name) const;
  const Section& get(SectionKind kind, std::string_view name) const;  // UserError if missing
  // A copy of the section's bytes, whose digest was compared: later changes of a mapped file do not reach it.
  std::string read(const Section& section) const;
  // The bytes themselves, once their digest was compared.
  std::span<const std::byte> map(const Section& section, const ParallelFor& parallel_for = {}) const;
  // Of a package that is signed: the key, whose signature was checked. Whether to trust it is the caller's decision.
  const std::optional<PublicKey>& signer() const { return signer_; }

 private:
  void check_layout() const;
  void check_digest(const Section& section, const Digest& found) const;
  std::span<const std::byte> file_;
  std::vector<Section> sections_;
  std::optional<PublicKey> signer_;
};

// A section to be written: its bytes are the pieces one after another, which must outlive the call.
struct NewSection {
  SectionKind kind = SectionKind::Manifest;
  std::string name;
  std::vector<std::span<const std::byte>> pieces;
};
// Writes a file under a new name and renames it: `path` has the whole package or what it had before. UserError when it cannot.
void write_container(const std::string& path, std::span<const NewSection> sections, const SigningKey* key);
// The same in memory, for a container inside of another file.
std::vector<std::byte> container_bytes(std::span<const NewSection> sections, const SigningKey* key);
// A file of the pieces alone, in the same way.
void write_pieces(const std::string& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace cxxinductor::package_file

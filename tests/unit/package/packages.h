// Packages as bytes, for tests that take them apart.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "package/container.h"
#include "support/error.h"

namespace cxxinductor::package_file {

// Of RFC 8032, section 7.1, test 1, as OpenSSL writes it.
constexpr const char* test_key_pem =
    "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
constexpr const char* test_public_key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

struct TestSection {
  SectionKind kind;
  std::string name, bytes;
};
// What write_container makes of them.
std::string package_of(const std::vector<TestSection>& sections, bool is_signed = false);
// Manifest, calls, two pieces of code and weights: a package as far as the container goes.
std::vector<TestSection> usual_sections();

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Fields of the header and of an entry of the table, by their offset in the file.
constexpr size_t header_size = 160, entry_size = 128;
constexpr size_t entry_at(size_t index) { return header_size + index * entry_size; }
template <class T>
void put(std::string& package, size_t at, T value) {
  for (size_t i = 0; i < sizeof value; ++i) package.at(at + i) = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
}
// Writes the digest of the table anew, after a change.
void renew_digest(std::string& package);

// The error of opening the package and reading each section, or "read".
std::string error_of(const std::string& package);

}  // namespace cxxinductor::package_file

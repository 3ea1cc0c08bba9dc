// The file format of packages: round trips, and files that are wrong in one way each.
#include "package/container.h"

#include <limits>

#include "unit/catch.h"
#include "unit/package/packages.h"

namespace cxxinductor::package_file {
namespace {

template <class T>
std::string with_field(size_t at, T value) {
  std::string package = package_of(usual_sections());
  put(package, at, value);
  renew_digest(package);
  return error_of(package);
}

}  // namespace

TEST_CASE("what is written is read") {
  const auto sections = usual_sections();
  for (const bool is_signed : {false, true}) {
    const std::string package = package_of(sections, is_signed);
    CHECK(is_package(bytes_of(package)));
    const Container container(bytes_of(package));
    REQUIRE(container.sections().size() == sections.size());
    for (const TestSection& section : sections) {
      const Section& found = container.get(section.kind, section.name);
      CHECK(found.offset % section_alignment == 0);
      CHECK(container.read(found) == section.bytes);
      CHECK(container.map(found).size() == section.bytes.size());
    }
    CHECK(container.signer().has_value() == is_signed);
    if (is_signed) CHECK(to_hex(*container.signer()) == test_public_key);
    CHECK(container.find(SectionKind::Code, "third") == nullptr);
    CHECK_THROWS_WITH(container.get(SectionKind::Plan, "x86-64"), "package: expected a section plan 'x86-64', found none");
  }
  CHECK(error_of(package_of({})) == "read");
}

TEST_CASE("digests do not depend on how the bytes come") {
  std::string bytes(2'500'000, 'a');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 1000);
  const std::span<const std::byte> all = bytes_of(bytes);
  const Digest digest = section_digest(all);
  SectionHasher hasher;
  for (size_t begin = 0, size = 1; begin < all.size(); begin += size, size = size * 3 + 1) {
    size = std::min(size, all.size() - begin);
    hasher.add(all.subspan(begin, size));
  }
  CHECK(hasher.finish() == digest);
  std::vector<size_t> calls;
  const ParallelFor backwards = [&](size_t count, const std::function<void(size_t)>& work) {
    for (size_t i = count; i-- > 0;) {
      work(i);
      calls.push_back(i);
    }
  };
  CHECK(section_digest(all, backwards) == digest);
  CHECK(calls == std::vector<size_t>{2, 1, 0});
  for (size_t at : {size_t{0}, size_t{1048575}, size_t{1048576}, bytes.size() - 1}) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    CHECK(section_digest(bytes_of(changed)) != digest);
  }
  CHECK(section_digest(all.first(1048576)) != section_digest(all.first(1048577)));
}

TEST_CASE("every byte counts") {
  for (const bool is_signed : {false, true}) {
    const std::string package = package_of(usual_sections(), is_signed);
    REQUIRE(error_of(package) == "read");
    for (size_t at = 0; at < package.size(); at += at < 900 ? 1 : 13) {
      std::string changed = package;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      INFO("byte " << at);
      CHECK(error_of(changed) != "read");
    }
  }
}

TEST_CASE("every length counts") {
  const std::string package = package_of(usual_sections());
  for (size_t size = 0; size < package.size(); size += size < 900 ? 1 : 97) CHECK(error_of(package.substr(0, size)) != "read");
  CHECK_THAT(error_of(package + '\0'), mentions("as its header says, found"));
}

TEST_CASE("headers that are wrong are errors") {
  CHECK_THAT(error_of(""), mentions("expected a file that begins with"));
  CHECK_THAT(error_of("cxxipkg\n"), mentions("header: expected 160 bytes, found 8"));
  CHECK_THAT(with_field<uint32_t>(8, 1), mentions("expected format version 2, found 1"));
  CHECK_THAT(with_field<uint64_t>(24, 1), mentions("header: reserved: expected 0, found 1"));
  CHECK_THAT(with_field<uint64_t>(16, 4096), mentions("expected 4096 bytes, as its header says"));
  CHECK_THAT(with_field<uint32_t>(12, 65536), mentions("table: 65536 sections need"));
  CHECK_THAT(with_field<uint32_t>(12, std::numeric_limits<uint32_t>::max()), mentions("expected at most 65536 sections"));
  CHECK_THAT(with_field<uint32_t>(12, 4), mentions("expected zeros between sections"));
}

TEST_CASE("entries of the table that are wrong are errors") {
  constexpr size_t kind = 0, reserved = 4, offset = 8, size = 16, name = 56;
  CHECK_THAT(with_field<uint32_t>(entry_at(0) + kind, 7), mentions("table entry 0 (manifest): kind: expected 1 to 6, found 7"));
  CHECK_THAT(with_field<uint32_t>(entry_at(0) + kind, 0), mentions("kind: expected"));
  CHECK_THAT(with_field<uint32_t>(entry_at(1) + reserved, 1), mentions("table entry 1 (calls): reserved"));
  CHECK_THAT(with_field<uint64_t>(entry_at(2) + offset, 4096), mentions("section code 'first': offset: expected"));   // overlaps
  CHECK_THAT(with_field<uint64_t>(entry_at(2) + offset, 16385), mentions("section code 'first': offset: expected"));  // not aligned
  CHECK_THAT(with_field<uint64_t>(entry_at(4) + offset, 1 << 30), mentions("section weights 'weights': offset"));
  CHECK_THAT(with_field<uint64_t>(entry_at(4) + size, 1 << 30), mentions("section weights 'weights': length: expected at most"));
  CHECK_THAT(with_field<uint64_t>(entry_at(4) + size, std::numeric_limits<uint64_t>::max() - 4095), mentions("length"));
  CHECK_THAT(with_field<uint64_t>(entry_at(4) + size, 4095), mentions("expected the end of the file"));
  CHECK_THAT(with_field<uint64_t>(entry_at(1) + size, 3), mentions("section code 'first': offset"));
  CHECK_THAT(with_field<char>(entry_at(0) + name, '\n'), mentions("name: expected printable text"));
  CHECK_THAT(with_field<char>(entry_at(0) + name, 0), mentions("name: expected"));
  CHECK_THAT(with_field<char>(entry_at(0) + name + 60, 'x'), mentions("name: expected zeros behind it"));
  std::vector<TestSection> twice = usual_sections();
  twice[3].name = "first";
  CHECK_THAT(error_of(package_of(twice)), mentions("section code 'first': expected a name once"));
}

TEST_CASE("sections are compared with their digests when they are read") {
  std::string package = package_of(usual_sections());
  package.back() = 'x';
  const Container container(bytes_of(package));
  CHECK_NOTHROW(container.read(container.get(SectionKind::Code, "first")));
  CHECK_THROWS_WITH(container.map(container.get(SectionKind::Weights, "weights")),
                    "package: section weights 'weights': its digest does not match: the file is damaged");
}

TEST_CASE("signatures are checked, whoever made them") {
  std::string package = package_of(usual_sections(), true), other = package_of({{SectionKind::Manifest, "manifest", "{ }"}}, true);
  package.replace(96, 64, other, 96, 64);
  CHECK_THAT(error_of(package), mentions("the signature does not match key d75a98"));
  package.replace(64, 96, 96, '\0');  // taken off
  CHECK(error_of(package) == "read");
  CHECK_FALSE(Container(bytes_of(package)).signer().has_value());
}

TEST_CASE("keys that are none are errors") {
  CHECK_THROWS_WITH(SigningKey("-----BEGIN PRIVATE KEY-----\nx\n", "key.pem"), mentions("key.pem: expected an Ed25519 private key"));
  CHECK_THROWS_WITH(SigningKey("", "key.pem"), mentions("key.pem"));
  const std::string pem = test_key_pem, no_key = "key.pem: expected an Ed25519 private key";
  const auto changed = [&pem](std::string_view part, std::string_view other) { return std::string(pem).replace(pem.find(part), part.size(), other); };
  CHECK_THROWS_WITH(SigningKey(changed("K2Vw", "K2Vx"), "key.pem"), mentions(no_key));  // of Ed448
  CHECK_THROWS_WITH(SigningKey(changed("rn9g", "rn8="), "key.pem"), mentions(no_key));  // a byte short
  CHECK_THROWS_WITH(SigningKey(changed("rn9g", "rn9gAAAA"), "key.pem"), mentions(no_key));
  CHECK_THROWS_WITH(SigningKey(changed("rn9g", "rn*g"), "key.pem"), mentions(no_key));
  CHECK_THROWS_WITH(SigningKey(changed("-----END", "---- END"), "key.pem"), mentions(no_key));
  CHECK_THROWS_WITH(SigningKey(changed("BEGIN PRIVATE", "BEGIN ENCRYPTED PRIVATE"), "key.pem"), mentions(no_key));
  CHECK(to_hex(SigningKey("a comment\n" + pem, "key").public_key()) == test_public_key);
  CHECK(to_hex(parse_public_key(test_public_key, "key")) == test_public_key);
  CHECK(to_hex(SigningKey(test_key_pem, "key").public_key()) == test_public_key);
  CHECK_THROWS_WITH(parse_public_key("d75a", "trusted_keys"), mentions("trusted_keys: expected the 64 hexadecimal digits"));
  CHECK_THROWS_WITH(parse_public_key(std::string(64, 'g'), "trusted_keys"), mentions("64 hexadecimal digits"));
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK_THROWS_WITH(write_container("/no/such/folder/package", {}, nullptr), mentions("/no/such/folder/package: "));
}

}  // namespace cxxinductor::package_file

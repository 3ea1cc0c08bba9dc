#include "unit/package/packages.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "support/files.h"

namespace cxxinductor::package_file {

std::string package_of(const std::vector<TestSection>& sections, bool is_signed) {
  std::vector<NewSection> written;
  for (const TestSection& section : sections) written.push_back({section.kind, section.name, {bytes_of(section.bytes)}});
  const PrivateFolder folder(temporary_folder());
  const std::string path = join_path(folder.path(), "package");
  const SigningKey key(test_key_pem, "key");
  write_container(path, written, is_signed ? &key : nullptr);
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<TestSection> usual_sections() {
  return {{SectionKind::Manifest, "manifest", "{}"},
          {SectionKind::Calls, "calls", std::string(5000, 'c')},
          {SectionKind::Code, "first", "machine code"},
          {SectionKind::Code, "second", ""},
          {SectionKind::Weights, "weights", std::string(4096, 'w')}};
}

void renew_digest(std::string& package) {
  if (package.size() < header_size) return;
  uint32_t count = 0;
  std::memcpy(&count, package.data() + 12, sizeof count);
  const size_t table = std::min(count * entry_size, package.size() - header_size);
  Hasher hasher;
  hasher.add(bytes_of(package).first(32));
  hasher.add(bytes_of(package).subspan(header_size, table));
  const Digest digest = hasher.finish();
  std::memcpy(package.data() + 32, digest.data(), digest.size());
}

std::string error_of(const std::string& package) {
  try {
    const Container container(bytes_of(package));
    for (const Section& section : container.sections()) {
      (void)container.read(section);
      (void)container.map(section);
    }
  } catch (const UserError& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "read";
}

}  // namespace cxxinductor::package_file

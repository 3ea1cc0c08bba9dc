#include "runtime/loaded_library.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "support/files.h"
#include "support/fork_locks.h"

namespace cxxinductor::runtime {
namespace {

// Of a segment of notes: each is a header, a name and a description, the latter two padded to four bytes (ELF specification).
std::string build_id_of_notes(const std::byte* notes, size_t size) {
  const auto padded = [](size_t bytes) { return (bytes + 3) / 4 * 4; };
  constexpr std::string_view gnu{"GNU", 4};  // with its zero
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes + at, sizeof header);
    const size_t name = at + sizeof header, description = name + padded(header.n_namesz);
    if (description + header.n_descsz > size) return {};
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == gnu.size() && std::memcmp(notes + name, gnu.data(), gnu.size()) == 0) {
      std::string id;
      for (size_t i = 0; i < header.n_descsz; ++i) id += fmt::format("{:02x}", static_cast<unsigned>(notes[description + i]));
      return id;
    }
    at = description + padded(header.n_descsz);
  }
  return {};
}

std::string build_id_of(const dl_phdr_info& object) {
  std::string id;
  for (size_t i = 0; i < object.dlpi_phnum && id.empty(); ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type == PT_NOTE) id = build_id_of_notes(reinterpret_cast<const std::byte*>(object.dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return id;
}

// The loader gives the program itself no name.
std::string path_of(const dl_phdr_info& object) { return resolved_path(object.dlpi_name && object.dlpi_name[0] ? object.dlpi_name : "/proc/self/exe"); }

struct Search {
  uintptr_t address;
  std::string (*answer)(const dl_phdr_info&);
  std::string found;
};

int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  bool holds = false;
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    holds |= segment.p_type == PT_LOAD && search.address >= start && search.address - start < segment.p_memsz;
  }
  if (holds) search.found = search.answer(*object);
  return holds;
}

// What `answer` says of the library or program that `address` lies in; empty if it is in none.
std::string ask(const void* address, std::string (*answer)(const dl_phdr_info&)) {
  Search search{reinterpret_cast<uintptr_t>(address), answer, {}};
  const ForkGuard guard(ForkLock::Loader);  // it holds a lock of the loader's, which a child forked meanwhile would find held for ever
  dl_iterate_phdr(visit, &search);
  return search.found;
}

}  // namespace

std::string build_id(const void* address) { return ask(address, build_id_of); }

std::string library_path(const void* address) { return ask(address, path_of); }

}  // namespace cxxinductor::runtime

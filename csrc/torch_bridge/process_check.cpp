#include "torch_bridge/process_check.h"

#include <cxxinductor/c.h>
#include <dlfcn.h>
#include <link.h>
#include <torch/headeronly/version.h>

#include <string_view>

#include "runtime/loaded_library.h"
#include "support/error.h"
#include "support/files.h"

// What the PyTorch of the process says of itself; null in versions that do not.
extern "C" __attribute__((weak)) uint64_t aoti_torch_abi_version();

namespace cxxinductor::torch_bridge {
namespace {

std::string version_text(uint64_t version) {
  const auto byte = [version](int index) { return (version >> (8 * index)) & 0xff; };
  return version == 0 ? "an unknown version" : fmt::format("{}.{}.{}", byte(7), byte(6), byte(5));
}

std::string own_path() { return runtime::library_path(reinterpret_cast<const void*>(&check_process)); }

std::string version_of(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return "an unknown version";
  const auto version = reinterpret_cast<decltype(&cxxinductor_version)>(dlsym(library, "cxxinductor_version"));
  std::string text = version ? version() : "an unknown version";
  dlclose(library);
  return text;
}

}  // namespace

std::string torch_version_error(uint64_t built, uint64_t found) {
  constexpr int minor = 48;  // versions that differ in what is below have one ABI
  if (built >> minor == found >> minor) return {};
  return fmt::format("cxxinductor {} was built for PyTorch {}, but this process has loaded {}; install the PyTorch that it was built for, or build it again",
                     cxxinductor_version(), version_text(built), version_text(found));
}

std::vector<std::string> other_copies() {
  std::vector<std::string> copies;
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* found) {
        const std::string_view path = library->dlpi_name ? library->dlpi_name : "";
        if (path.substr(path.rfind('/') + 1).starts_with("libcxxinductor.so")) static_cast<std::vector<std::string>*>(found)->emplace_back(path);
        return 0;
      },
      &copies);
  const std::string own = own_path();
  std::erase_if(copies, [&](const std::string& path) { return resolved_path(path) == own; });
  return copies;
}

void check_process() {
  const std::string error = torch_version_error(TORCH_ABI_VERSION, aoti_torch_abi_version ? aoti_torch_abi_version() : 0);
  if (!error.empty()) throw UserError(error);
  for (const std::string& other : other_copies())
    throw_user_error("two copies of cxxinductor are loaded: {} ({}) and {} ({}); a process may hold one: load both users of the library from one installation",
                     own_path(), cxxinductor_version(), other, version_of(other));
}

}  // namespace cxxinductor::torch_bridge

#include "targets/cuda/dynamic_library.h"

#include <dlfcn.h>

#include "support/error.h"

namespace cxxinductor::targets {

DynamicLibrary::DynamicLibrary(const std::vector<std::string>& names, const std::string& missing) {
  std::string messages;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      path_ = name;
      return;
    }
    const char* message = dlerror();
    messages += fmt::format("\n  {}", message ? message : name);
  }
  throw_user_error("{}; none of these opens:{}", missing, messages);
}

void DynamicLibrary::open_beside(const std::string& name) const {
  if (const size_t folder = path_.rfind('/'); folder != std::string::npos) dlopen((path_.substr(0, folder + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* DynamicLibrary::find_optional(const char* symbol) const { return dlsym(handle_, symbol); }

void* DynamicLibrary::find(const char* symbol) const {
  void* address = dlsym(handle_, symbol);
  if (!address) throw_user_error("{} has no function {}: it is another library, or too old", path_, symbol);
  return address;
}

}  // namespace cxxinductor::targets

#include "targets/cpu/shared_object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "support/error.h"
#include "support/files.h"
#include "support/fork_locks.h"

namespace cxxinductor::targets {
namespace {

// The loader takes an object of a name that it knows for the one that it has, so each load of the process has a name of its
// own: a folder's random name could come back.
std::string fresh_name() {
  static constinit std::atomic<uint64_t> count = 0;
  return fmt::format("unit{}.so", count.fetch_add(1, std::memory_order_relaxed));
}

// Null with the reason.
void* load(const std::string& path, std::string& reason) {
  const ForkGuard guard(ForkLock::Loader);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* message = ::dlerror();
    reason = message ? message : path + ": unknown reason";
  }
  return handle;
}

void* load_from(const std::string& parent, std::string_view bytes, std::string& reason) {
  const PrivateFolder folder(parent);
  if (folder.path().empty()) {
    reason = fmt::format("no file can be made in {}: {}", parent, std::strerror(errno));
    return nullptr;
  }
  const std::string path = join_path(folder.path(), fresh_name());
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
  if (!file.open() || !write_all(file.get(), bytes) || !file.close()) {
    reason = fmt::format("{} cannot be written: {}", path, std::strerror(errno));
    return nullptr;
  }
  return load(path, reason);
}

void* load_from_memory(std::string_view bytes, Descriptor& memory, std::string& reason) {
  memory = Descriptor(::memfd_create("cxxinductor", MFD_CLOEXEC));
  if (!memory.open() || !write_all(memory.get(), bytes)) {
    reason = fmt::format("no memory that has the name of a file: {}", std::strerror(errno));
    return nullptr;
  }
  return load(fmt::format("/proc/self/fd/{}", memory.get()), reason);
}

}  // namespace

SharedObject::SharedObject(std::string_view bytes, std::span<const std::string> folders) {
  std::string reasons, reason;
  for (const std::string& folder : folders) {
    handle_ = load_from(folder, bytes, reason);
    if (handle_) return;
    reasons += "\n  " + reason;
  }
  handle_ = load_from_memory(bytes, memory_, reason);
  if (!handle_) throw_internal("compiled kernels cannot be loaded from any of {} folders, nor from memory:{}\n  {}", folders.size(), reasons, reason);
}

SharedObject::~SharedObject() {
  const ForkGuard guard(ForkLock::Loader);
  ::dlclose(handle_);
}

void* SharedObject::find(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

}  // namespace cxxinductor::targets

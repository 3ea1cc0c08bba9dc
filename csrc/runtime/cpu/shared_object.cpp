#include "runtime/cpu/shared_object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string loader_message() {
  const char* message = ::dlerror();
  return message ? message : "unknown reason";
}

}  // namespace

SharedObject::SharedObject(std::string_view bytes, const std::string& temporary_folder) {
  file_ = ::memfd_create("cxxinductor", MFD_CLOEXEC);
  if (file_ >= 0 && write_all(file_, bytes)) {
    handle_ = ::dlopen(fmt::format("/proc/self/fd/{}", file_).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  std::string reason;
  if (!handle_) {
    reason = file_ >= 0 ? loader_message() : std::strerror(errno);
    std::string path = temporary_folder + "/cxxinductor-XXXXXX";
    const int file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file >= 0) {
      if (write_all(file, bytes)) handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!handle_) reason = loader_message();
      ::unlink(path.c_str());
      ::close(file);
    }
  }
  if (handle_) return;
  if (file_ >= 0) ::close(file_);
  throw_internal("compiled kernels cannot be loaded: {}", reason);
}

SharedObject::~SharedObject() {
  ::dlclose(handle_);
  if (file_ >= 0) ::close(file_);
}

void* SharedObject::find(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

}  // namespace cxxinductor::runtime

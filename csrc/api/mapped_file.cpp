#include "api/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::api {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

}  // namespace

Bytes map_file(const std::string& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number < 0 || fstat(file.number, &status) != 0) throw_user_error("{}: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw_user_error("{}: expected a file, found something else", path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) throw_user_error("{}: the file is empty", path);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.number, 0);
  if (data == MAP_FAILED) throw_user_error("{}: {}", path, std::strerror(errno));
  return {std::shared_ptr<void>(data, [size](void* mapped) { munmap(mapped, size); }), {static_cast<std::byte*>(data), size}};
}

Bytes copy_bytes(const void* data, size_t size) {
  constexpr size_t alignment = 64;
  void* copy = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, data, size);
  return {std::shared_ptr<void>(copy, std::free), {static_cast<std::byte*>(copy), size}};
}

}  // namespace cxxinductor::api

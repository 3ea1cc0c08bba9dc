#include "support/files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

namespace cxxinductor {
namespace {

struct Freed {
  void operator()(char* text) const { std::free(text); }
  void operator()(DIR* folder) const { ::closedir(folder); }
};

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}

int Descriptor::release() { return std::exchange(descriptor_, -1); }

bool Descriptor::close() { return descriptor_ < 0 || ::close(release()) == 0; }

bool read_exactly(int file, void* to, size_t size) {
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = ::read(file, out, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path += name;
}

std::string parent_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

bool make_folders(const std::string& path, unsigned mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      // If the parent is not writable, mkdir may report that instead of an existing folder.
      if (!is_folder(part)) return false;
    }
    if (slash == std::string::npos) return is_folder(path);
  }
}

std::vector<std::string> file_names(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Freed> open(::opendir(folder.c_str()));
  if (!open) return names;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

std::string resolved_path(const std::string& path) {
  const std::unique_ptr<char, Freed> resolved(::realpath(path.c_str(), nullptr));
  return resolved ? resolved.get() : "";
}

std::string describe_file(const std::string& path) {
  const std::string resolved = resolved_path(path);
  struct stat info {};
  if (resolved.empty() || ::stat(resolved.c_str(), &info) != 0) return {};
  return fmt::format("{} {} bytes {}.{}", resolved, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && is_folder(named) ? named : "/tmp";
}

PrivateFolder::PrivateFolder(const std::string& parent) : path_(join_path(parent, "cxxinductor-XXXXXX")) {
  if (!::mkdtemp(path_.data())) path_.clear();
}

PrivateFolder::~PrivateFolder() {
  if (path_.empty()) return;
  for (const std::string& name : file_names(path_)) ::unlink(join_path(path_, name).c_str());
  ::rmdir(path_.c_str());
}

}  // namespace cxxinductor

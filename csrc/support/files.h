// Files and folders without std::filesystem, whose symbols other libraries of the process export in other versions.
// Paths are plain text; failures set errno unless stated otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor {

// Closes a descriptor at the end of a scope.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }
  bool open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  int release();
  bool close();  // true when the kernel reports no write error

 private:
  int descriptor_ = -1;
};

bool read_exactly(int file, void* to, size_t size);  // false at an early end too
bool write_all(int file, std::string_view bytes);

std::string join_path(std::string_view folder, std::string_view name);
// The part before the last slash: "/a/b" -> "/a", "/a" -> "/", "a" -> ".".
std::string parent_path(std::string_view path);
// Creates a folder and the missing ones above it. True when the folder exists afterwards.
bool make_folders(const std::string& path, unsigned mode = 0700);
std::vector<std::string> file_names(const std::string& folder);  // without . and ..; empty if the folder cannot be read
// The path with links and dots resolved; empty if the file does not exist.
std::string resolved_path(const std::string& path);
// The file behind links, with its size and time of change, which show that it was replaced; empty if there is none.
std::string describe_file(const std::string& path);
// TMPDIR if it names a folder, else /tmp.
std::string temporary_folder();

// A folder for files of one operation, of mode 0700 and of a new name, removed with the files in it.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& parent);  // path() is empty if the folder cannot be created
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace cxxinductor

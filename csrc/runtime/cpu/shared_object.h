// A shared object loaded from bytes: nothing executable is left on disk. Unloaded with the last reference.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cxxinductor::runtime {

class SharedObject {
 public:
  // The object is written to a file in a private folder under the first of `folders` that it can be loaded from (a file
  // system may forbid to execute), and the file is removed at once. InternalError with a reason per folder.
  SharedObject(std::string_view bytes, std::span<const std::string> folders);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  void* find(const std::string& name) const;  // null when there is no such symbol

 private:
  void* handle_ = nullptr;
};

}  // namespace cxxinductor::runtime

// A shared object loaded from bytes: nothing executable is left on disk. Unloaded with the last reference.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "support/files.h"

namespace cxxinductor::targets {

class SharedObject {
 public:
  // The object is written to a file in a private folder under the first of `folders` that it can be loaded from (a file
  // system may forbid to execute), and the file is removed at once; to memory that has the name of a file where there is no such
  // folder, as in a container without one to write to. InternalError with a reason for each.
  SharedObject(std::string_view bytes, std::span<const std::string> folders);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  void* find(const std::string& name) const;  // null when there is no such symbol

 private:
  void* handle_ = nullptr;
  Descriptor memory_;  // the loader knows the object by this number, which must not come back while it is loaded
};

}  // namespace cxxinductor::targets

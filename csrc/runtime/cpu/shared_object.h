// A shared object loaded from bytes: nothing executable is left on disk. Unloaded with the last reference.
#pragma once

#include <string>
#include <string_view>

namespace cxxinductor::runtime {

class SharedObject {
 public:
  // Throws InternalError with the loader's message. temporary_folder: used where memory files cannot be executed.
  SharedObject(std::string_view bytes, const std::string& temporary_folder);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  void* find(const std::string& name) const;  // null when there is no such symbol

 private:
  void* handle_ = nullptr;
  int file_ = -1;  // open as long as the object is loaded: the loader knows it by the descriptor's number
};

}  // namespace cxxinductor::runtime

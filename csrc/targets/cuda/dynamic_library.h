// A library that may or may not be on the machine, opened with dlopen and kept open for the life of the process.
#pragma once

#include <string>
#include <vector>

namespace cxxinductor::targets {

class DynamicLibrary {
 public:
  // The first of these names or paths that opens. UserError when none does: `missing`, a sentence that says what cannot
  // be done without the library and what can, then all the loader's messages.
  DynamicLibrary(const std::vector<std::string>& names, const std::string& missing);
  void* find(const char* symbol) const;           // UserError when the library lacks it
  void* find_optional(const char* symbol) const;  // null when it does
  const std::string& path() const { return path_; }
  // Opens a library from the folder that this one was opened from, so that a later dlopen by its name alone finds it.
  // No matter if it is not there, or if this one was found by the system.
  void open_beside(const std::string& name) const;

 private:
  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace cxxinductor::targets

// The identity of the machine code that runs.
#pragma once

#include <string>

namespace cxxinductor::runtime {

// The linker's build ID, a hash of all code and data, of the library or program that `address` lies in: hexadecimal digits. Read from
// memory, not from the file, which may have been replaced since. Empty where it was linked without one.
std::string build_id(const void* address);

}  // namespace cxxinductor::runtime

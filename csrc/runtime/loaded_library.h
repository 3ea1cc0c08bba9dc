// Libraries of this process, by an address in their code or data.
#pragma once

#include <string>

namespace cxxinductor::runtime {

// The linker's build ID, a hash of all code and data, of the library or program that `address` lies in: hexadecimal digits. Read from
// memory, not from the file, which may have been replaced since. Empty where it was linked without one.
std::string build_id(const void* address);

// The file of the library or program that `address` lies in, links resolved; empty if it is in none or the file is gone. Unlike dladdr, looks
// at no symbols, of which PyTorch's libraries have more than a hundred thousand.
std::string library_path(const void* address);

}  // namespace cxxinductor::runtime

// Whether this process is one that the library can work in. Asked before models are loaded, and when Python imports the module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cxxinductor::torch_bridge {

// UserError where PyTorch is of another version than the library was built against, whose classes may be laid out otherwise, or where
// another copy of libcxxinductor is loaded: the two would register for the same hooks and may call each other's functions.
void check_process();

// Paths of the process's libraries that are called libcxxinductor.so, whatever follows, but for the one that this code is in.
std::vector<std::string> other_copies();

// The error about PyTorch's version; empty where there is none. Versions as TORCH_ABI_VERSION has them; found 0: unknown.
std::string torch_version_error(uint64_t built, uint64_t found);

}  // namespace cxxinductor::torch_bridge

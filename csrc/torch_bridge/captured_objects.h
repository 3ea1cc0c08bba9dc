// What CUDA graphs that the program captured replay with.
#pragma once

#include <memory>

namespace cxxinductor::torch_bridge {

// It stays until the process ends: nobody says when such a graph does. Takes no lock.
void keep_for_captured_graphs(std::shared_ptr<const void> object);

}  // namespace cxxinductor::torch_bridge

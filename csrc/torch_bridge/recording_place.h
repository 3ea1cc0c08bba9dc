// Where the runtime records CUDA graphs: for each stream that replays run on a stream of ours, and a private pool of torch's
// allocator for what library calls allocate while they are recorded.
#pragma once

#include <memory>

#include "runtime/host.h"

namespace cxxinductor::torch_bridge {

// Null where this LibTorch has no CUDA allocator. The same place for all graphs of the process.
std::shared_ptr<runtime::RecordingPlace> recording_place(Device device, void* stream);

}  // namespace cxxinductor::torch_bridge

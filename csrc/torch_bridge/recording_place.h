// Where the runtime records CUDA graphs: for each stream that replays run on a stream of ours, and a private pool of torch's
// allocator for what library calls allocate while they are recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/host.h"

namespace cxxinductor::torch_bridge {

// Null where this LibTorch has no CUDA allocator. The same place for all graphs of the process.
std::shared_ptr<runtime::RecordingPlace> recording_place(Device device, void* stream);

// Memory of torch's allocator: a segment that the places' library calls use.
struct RecordingSegment {
  Device device;
  uint64_t address = 0;
  int64_t bytes = 0;
};
std::vector<RecordingSegment> recording_segments();  // of all places. Thread-safe.
// Scratch memory of all places, which replays on a stream use one after the other: allocations, for the life of the process. Thread-safe.
std::vector<RecordingSegment> recording_scratch();

}  // namespace cxxinductor::torch_bridge

// Arguments of kernels of a CUDA graph that the graph updates itself. A kernel in front reads the addresses of this replay from
// memory of the host and writes them into the nodes behind it (device-updatable nodes, CUDA 12.4). The host writes each address once, and calls
// nothing: patching nodes one by one costs it 0.6 us each, this kernel costs the GPU about 3 us. Includes cuda.h: only for sources of this folder.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "targets/cuda/driver.h"
#include "targets/cuda/graph.h"
#include "targets/cuda/node_update_table.h"

namespace cxxinductor::targets {

// Where the addresses of the last replays lie. It outlives the graph that used it, for another one: what is queued may still read it.
struct AddressRing {
  uint32_t number = 0;                  // of replays[] in update_nodes.cuh
  uint32_t ranges = 0;                  // at most
  uint32_t launched = 0;                // replays, modulo 2^32
  volatile uint32_t* done = nullptr;    // those whose addresses the GPU has read
  volatile uint64_t* begins = nullptr;  // by slot and range
  void *done_on_device = nullptr, *begins_on_device = nullptr;
};

// What a device has for all of its graphs. Thread-safe.
class NodeUpdateKernels {
 public:
  static constexpr uint32_t slots = 16, most_rings = 4096;

  // cubin: of update_nodes.cuh. InternalError where the driver does not take it.
  NodeUpdateKernels(CudaDriver& driver, int device, const std::string& cubin);
  // Compiled for the architecture "sm_90".
  static std::string source();  // what cubin is compiled from

  CudaFunction function() const { return function_; }
  // Null where all are in use.
  std::unique_ptr<AddressRing> take_ring(size_t ranges);
  void give_back(std::unique_ptr<AddressRing> ring);

 private:
  CudaContext context_;
  const CudaFunction function_;
  uint32_t made_ = 0;  // both are guarded by ForkLock::Leaf
  std::vector<std::unique_ptr<AddressRing>> free_;
};

// Of a graph that was not made executable yet.
class NodeUpdates {
 public:
  explicit NodeUpdates(NodeUpdateKernels& kernels) : kernels_(kernels) {}
  ~NodeUpdates();
  NodeUpdates(const NodeUpdates&) = delete;
  NodeUpdates& operator=(const NodeUpdates&) = delete;

  // A word of a node that make_updatable took: the address of range `range`, and so many bytes; `argument`: where the kernel sees it.
  struct Word {
    CUgraphDeviceNode node = nullptr;
    uint32_t argument = 0, range = 0;
    int64_t offset = 0;
  };
  // None where the driver refuses.
  static std::optional<CUgraphDeviceNode> make_updatable(const CudaDriver::Functions& cuda, CUgraphNode node);
  // Puts kernels in front of the graph that write the words. False where these have too many ranges, or no ring is free. UserError where
  // the driver refuses.
  bool add_to(const CudaDriver::Functions& cuda, CUgraph graph, std::span<const Word> words);

  // Before a launch: the addresses of all ranges of the graph. Waits for the GPU where it is `slots` replays behind; InternalError where it has
  // failed.
  void write(const CudaDriver::Functions& cuda, std::span<void* const> begins, CUstream stream);
  void launched() { ++ring_->launched; }

 private:
  NodeUpdateKernels& kernels_;
  std::unique_ptr<AddressRing> ring_;
  std::vector<uint32_t> ranges_;  // those of the words, in the order in which a slot has them
};

}  // namespace cxxinductor::targets

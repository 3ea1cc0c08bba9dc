#include "targets/cuda/node_updates.h"

#include <algorithm>
#include <thread>

#include "codegen/templates.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "targets/cuda/driver_functions.h"

namespace cxxinductor::targets {
namespace {
constexpr unsigned threads = 256;
constexpr size_t least_ranges = 16;  // of a ring
constexpr const char* what = "updating addresses in a CUDA graph";
}  // namespace

NodeUpdateKernels::NodeUpdateKernels(CudaDriver& driver, int device, const std::string& cubin)
    : context_(driver, device), function_(context_.load(cubin, "update_nodes", {})) {}

std::string NodeUpdateKernels::source() { return std::string(codegen::template_text("cuda/update_nodes.cuh")); }

std::unique_ptr<AddressRing> NodeUpdateKernels::take_ring(size_t ranges) {
  auto ring = std::make_unique<AddressRing>();
  {
    const ForkGuard guard(ForkLock::Leaf);
    const auto found = std::ranges::find_if(free_, [ranges](const auto& each) { return each->ranges >= ranges && *each->done == each->launched; });
    if (found != free_.end()) {
      ring = std::move(*found);
      free_.erase(found);
      return ring;
    }
    if (made_ == most_rings) return nullptr;
    ring->number = made_++;
  }
  ring->ranges = static_cast<uint32_t>(std::max(least_ranges, ranges));
  constexpr size_t head = 16;  // ints, of which `done` is the first
  const CudaContext::Mapped memory = context_.allocate_mapped(head + 2 * slots * ring->ranges, "addresses of a CUDA graph");
  ring->done = reinterpret_cast<uint32_t*>(memory.host);
  ring->done_on_device = memory.device;
  ring->begins = reinterpret_cast<uint64_t*>(memory.host + head);
  ring->begins_on_device = static_cast<int*>(memory.device) + head;
  return ring;
}

void NodeUpdateKernels::give_back(std::unique_ptr<AddressRing> ring) {
  const ForkGuard guard(ForkLock::Leaf);
  free_.push_back(std::move(ring));
}

NodeUpdates::~NodeUpdates() {
  if (ring_) kernels_.give_back(std::move(ring_));
}

std::optional<CUgraphDeviceNode> NodeUpdates::make_updatable(const CudaDriver::Functions& cuda, CUgraphNode node) {
  CUlaunchAttributeValue value{};
  value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  if (cuda.set_node_attribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) != CUDA_SUCCESS) return std::nullopt;
  return value.deviceUpdatableKernelNode.devNode;
}

bool NodeUpdates::add_to(const CudaDriver::Functions& cuda, CUgraph graph, std::span<const Word> words) {
  for (const Word& word : words) ranges_.push_back(word.range);
  std::ranges::sort(ranges_);
  const auto repeated = std::ranges::unique(ranges_);
  ranges_.erase(repeated.begin(), repeated.end());
  if (ranges_.empty() || ranges_.size() > NodeUpdateTable::ranges_at_most) return false;
  ring_ = kernels_.take_ring(ranges_.size());
  if (!ring_) return false;

  size_t count = 0;
  cuda.check(cuda.root_nodes(graph, nullptr, &count), "cuGraphGetRootNodes", what);
  std::vector<CUgraphNode> roots(count);
  if (count > 0) cuda.check(cuda.root_nodes(graph, roots.data(), &count), "cuGraphGetRootNodes", what);
  const auto table = std::make_unique<NodeUpdateTable>();
  table->begins = static_cast<uint64_t*>(ring_->begins_on_device);
  table->done = static_cast<uint32_t*>(ring_->done_on_device);
  table->ring = ring_->number;
  table->slots = NodeUpdateKernels::slots;
  table->ranges = static_cast<uint32_t>(ranges_.size());
  void* argument = table.get();
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = static_cast<CUfunction>(kernels_.function());
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.blockDimX = threads;
  parameters.kernelParams = &argument;
  CUgraphNode last = nullptr;
  while (!words.empty()) {
    const std::span<const Word> some = words.first(std::min(words.size(), NodeUpdateTable::words_at_most));
    words = words.subspan(some.size());
    table->words = static_cast<uint32_t>(some.size());
    table->is_last = words.empty();
    for (size_t i = 0; i < some.size(); ++i) {
      table->nodes[i] = some[i].node;
      table->offsets[i] = some[i].offset;
      table->arguments[i] = static_cast<uint16_t>(some[i].argument);
      table->range_of[i] = static_cast<uint16_t>(std::ranges::lower_bound(ranges_, some[i].range) - ranges_.begin());
    }
    CUgraphNode node = nullptr;
    cuda.check(cuda.add_kernel_node(&node, graph, last ? &last : nullptr, last ? 1 : 0, &parameters), "cuGraphAddKernelNode", what);
    last = node;
  }
  for (const CUgraphNode root : roots) cuda.check(cuda.add_dependencies(graph, &last, &root, nullptr, 1), "cuGraphAddDependencies", what);
  return true;
}

void NodeUpdates::write(const CudaDriver::Functions& cuda, std::span<void* const> begins, CUstream stream) {
  while (ring_->launched - *ring_->done >= NodeUpdateKernels::slots) {
    const BesideCapture scope(cuda);
    const CUresult state = cuda.query_stream(stream);
    const bool is_stuck = state == CUDA_SUCCESS && ring_->launched - *ring_->done >= NodeUpdateKernels::slots;
    if (is_stuck || (state != CUDA_SUCCESS && state != CUDA_ERROR_NOT_READY))
      throw_internal("the GPU does not read the addresses of {} replays of a CUDA graph: {}", NodeUpdateKernels::slots, cuda.describe(state));
    std::this_thread::yield();
  }
  volatile uint64_t* const slot = ring_->begins + ring_->launched % NodeUpdateKernels::slots * ranges_.size();
  for (size_t i = 0; i < ranges_.size(); ++i) slot[i] = reinterpret_cast<uintptr_t>(begins[ranges_[i]]);
}

}  // namespace cxxinductor::targets

#include "targets/cuda/graph.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "support/error.h"
#include "targets/cuda/driver_functions.h"
#include "targets/cuda/executable_graph.h"

namespace cxxinductor::targets {
namespace {

using runtime::MemoryRange;
using runtime::ReplacedMemory;

// The nodes of a step that no other of them waits for, and those that wait for no other; what they wait for in steps before.
struct StepNodes {
  std::set<CUgraphNode> first, last, after;
};

class CudaRecorder final : public runtime::GraphRecorder {
 public:
  CudaRecorder(const CudaContext& context, NodeUpdateSource updates, CUstream stream, std::function<bool(const void*)> own)
      : context_(context), cuda_(context.driver().functions()), updates_(std::move(updates)), stream_(stream), own_(std::move(own)) {
    const CurrentContext current(cuda_, context_.state().context);
    // Of this mode: a call of this thread that would not be recorded is an error. Other threads go on as they like.
    cuda_.check(cuda_.begin_capture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture", "a CUDA graph");
    recording_ = true;
  }
  ~CudaRecorder() override {
    if (!recording_) return;
    if (const CUgraph graph = end()) cuda_.destroy_graph(graph);
  }
  CudaRecorder(const CudaRecorder&) = delete;
  CudaRecorder& operator=(const CudaRecorder&) = delete;

  // Where the capture is over, note says so.
  size_t position() override {
    find_queued();
    return queued_.size();
  }

  void note(std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced, size_t address_words) override {
    if (!find_queued()) throw_unsupported("it does what CUDA does not record");
    while (nodes_.size() < queued_.size()) add(queued_[nodes_.size()], ranges, replaced, address_words);
    ++steps_;
    begins_.resize(std::max(begins_.size(), ranges.size()));
    for (size_t r = 0; r < ranges.size(); ++r) begins_[r] = ranges[r].begin;
  }

  std::vector<bool> uses_of_own_memory() override {
    find_own_words();
    std::vector<bool> uses(steps_);
    for (const Node& node : nodes_)
      if (!node.own.empty()) uses[node.step] = true;
    return uses;
  }

  std::unique_ptr<runtime::DeviceGraph> finish(const runtime::Dependencies* order) override {
    find_own_words();
    recording_ = false;
    const CUgraph graph = end();
    if (graph == nullptr) throw_unsupported("it does what CUDA does not record");
    if (order) {
      try {
        replace_order(graph, *order);
      } catch (...) {
        cuda_.destroy_graph(graph);
        throw;
      }
    }
    return std::make_unique<CudaGraph>(context_, updates_, graph, std::move(nodes_), std::move(words_), std::move(begins_),
                                       order ? *order : runtime::Dependencies());
  }

 private:
  // Adds what was queued since the last call to queued_. False where the capture was invalidated.
  bool find_queued() {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    size_t count = 0;
    if (cuda_.capture_info(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr) != CUDA_SUCCESS) return false;
    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || cuda_.graph_nodes(graph, nullptr, &count) != CUDA_SUCCESS) return false;
    if (count == queued_.size()) return true;
    std::vector<CUgraphNode> all(count);
    if (cuda_.graph_nodes(graph, all.data(), &count) != CUDA_SUCCESS) return false;
    for (const CUgraphNode handle : all)
      if (number_of_.emplace(handle, queued_.size()).second) queued_.push_back(handle);
    return true;
  }

  // Null where the capture was invalidated.
  CUgraph end() const {
    CUgraph graph = nullptr;
    return cuda_.end_capture(stream_, &graph) == CUDA_SUCCESS ? graph : nullptr;
  }

  void add(CUgraphNode handle, std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced, size_t address_words) {
    Node node;
    node.handle = handle;
    node.step = steps_;
    cuda_.check(cuda_.node_type(handle, &node.type), "cuGraphNodeGetType", "a CUDA graph");
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        read_kernel(node);
        break;
      case CU_GRAPH_NODE_TYPE_MEMSET:
        cuda_.check(cuda_.memset_node(handle, &node.fill), "cuGraphMemsetNodeGetParams", "a CUDA graph");
        if (node.fill.width == 0 || node.fill.height == 0) throw_unsupported("it fills no memory");
        node.arguments = {node.fill.dst};
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        cuda_.check(cuda_.memcpy_node(handle, &node.copy), "cuGraphMemcpyNodeGetParams", "a CUDA graph");
        if (node.copy.srcMemoryType != CU_MEMORYTYPE_DEVICE || node.copy.dstMemoryType != CU_MEMORYTYPE_DEVICE)
          throw_unsupported("it copies memory between the GPU and the host");
        // cuGraphExecMemcpyNodeSetParams takes others not.
        if (node.copy.WidthInBytes == 0 || node.copy.Height > 1 || node.copy.Depth > 1) throw_unsupported("it copies what is not one piece of memory");
        node.arguments = {node.copy.srcDevice, node.copy.dstDevice};
        break;
      case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
      default:
        throw_unsupported("it queues what is neither a kernel nor a copy (node type {})", static_cast<int>(node.type));
    }
    const auto number = static_cast<uint32_t>(nodes_.size());
    node.address_words = std::min(node.arguments.size(), address_words);
    for (size_t word = 0; word < node.address_words; ++word) find(node, number, static_cast<uint32_t>(word * 8), ranges, replaced);
    nodes_.push_back(std::move(node));
  }

  void read_kernel(Node& node) {
    cuda_.check(cuda_.kernel_node(node.handle, &node.kernel), "cuGraphKernelNodeGetParams", "a CUDA graph");
    const CUDA_KERNEL_NODE_PARAMS& kernel = node.kernel;
    const std::byte* const buffer = kernel.kernelParams == nullptr ? argument_buffer(kernel.extra) : nullptr;
    for (size_t i = 0;; ++i) {
      size_t offset = 0, bytes = 0;
      const CUresult found = kernel.func ? cuda_.function_parameter(kernel.func, i, &offset, &bytes) : cuda_.kernel_parameter(kernel.kern, i, &offset, &bytes);
      if (found == CUDA_ERROR_INVALID_VALUE) break;  // there are no more
      if (found != CUDA_SUCCESS) throw_unsupported("it launches a kernel whose parameters the driver does not tell: {}", cuda_.describe(found));
      const void* const value = kernel.kernelParams ? kernel.kernelParams[i] : buffer ? buffer + offset : nullptr;
      if (value == nullptr) throw_unsupported("it launches a kernel whose arguments the driver does not tell");
      const size_t start = node.arguments.size() * 8;
      node.parameters.push_back({static_cast<uint32_t>(start), static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)});
      node.arguments.resize(node.arguments.size() + (bytes + 7) / 8);
      if (bytes > 0) std::memcpy(node.argument(static_cast<uint32_t>(start)), value, bytes);
    }
    node.kernel.kernelParams = nullptr;
    node.kernel.extra = nullptr;
  }

  // Where a launch gave all arguments in one block of memory.
  static const std::byte* argument_buffer(void** extra) {
    for (size_t i = 0; extra != nullptr && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) return static_cast<const std::byte*>(extra[i + 1]);
    return nullptr;
  }

  // Addresses are whole words of parameters, at multiples of 8.
  void find(const Node& node, uint32_t number, uint32_t at, std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced) {
    const uint64_t value = node.arguments[at / 8];
    if (value == 0) return;
    const auto offset_in = [value](const MemoryRange& memory) -> std::optional<int64_t> {
      const auto begin = reinterpret_cast<uintptr_t>(memory.begin);
      if (memory.bytes <= 0 || value < begin || value >= begin + static_cast<uint64_t>(memory.bytes)) return std::nullopt;
      return static_cast<int64_t>(value - begin);
    };
    for (const ReplacedMemory& result : replaced)
      if (const auto offset = offset_in(result.memory); offset && number >= result.position)
        return words_.push_back({number, at, static_cast<uint32_t>(result.range), result.offset + *offset});
    for (size_t r = 0; r < ranges.size(); ++r)
      if (const auto offset = offset_in(ranges[r])) return words_.push_back({number, at, static_cast<uint32_t>(r), *offset});
  }

  void find_own_words() {
    if (std::exchange(found_own_words_, true)) return;
    auto word = words_.begin();  // in the order of nodes, then of places
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (uint32_t at = 0; at < nodes_[n].address_words * 8; at += 8) {
        while (word != words_.end() && (word->node < n || (word->node == n && word->at < at))) ++word;
        if (word != words_.end() && word->node == n && word->at == at) continue;
        const uint64_t value = nodes_[n].arguments[at / 8];
        if (value != 0 && own_(reinterpret_cast<const void*>(value))) nodes_[n].own.push_back(at);
      }
    }
  }

  // A capture has each step wait for the one before. Here: for those of `order`.
  void replace_order(CUgraph graph, const runtime::Dependencies& order) {
    CXXI_CHECK(order.size() == steps_, "an order of {} steps, of which {} were recorded", order.size(), steps_);
    std::vector<StepNodes> steps(order.size());
    for (const Node& node : nodes_) {
      StepNodes& step = steps.at(node.step);
      step.first.insert(node.handle);
      step.last.insert(node.handle);
    }
    size_t count = 0;
    cuda_.check(cuda_.graph_edges(graph, nullptr, nullptr, nullptr, &count), "cuGraphGetEdges", "a CUDA graph");
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> kinds(count);
    if (count > 0) cuda_.check(cuda_.graph_edges(graph, from.data(), to.data(), kinds.data(), &count), "cuGraphGetEdges", "a CUDA graph");
    for (size_t e = 0; e < count; ++e) {
      StepNodes& step = steps[nodes_[number_of_.at(from[e])].step];
      if (&step == &steps[nodes_[number_of_.at(to[e])].step]) {
        step.first.erase(to[e]);
        step.last.erase(from[e]);
      } else {
        cuda_.check(cuda_.remove_dependencies(graph, &from[e], &to[e], &kinds[e], 1), "cuGraphRemoveDependencies", "a CUDA graph");
      }
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      StepNodes& step = steps[s];
      for (const uint32_t earlier : order[s]) {
        const StepNodes& waited_for = steps[earlier];
        // A step without nodes, as a kernel over no elements: what it waits for.
        step.after.insert(waited_for.last.begin(), waited_for.last.end());
        if (waited_for.last.empty()) step.after.insert(waited_for.after.begin(), waited_for.after.end());
      }
      for (const CUgraphNode node : step.first)
        for (const CUgraphNode earlier : step.after)
          cuda_.check(cuda_.add_dependencies(graph, &earlier, &node, nullptr, 1), "cuGraphAddDependencies", "a CUDA graph");
    }
  }

  const CudaContext& context_;
  const CudaDriver::Functions& cuda_;
  const NodeUpdateSource updates_;
  const CUstream stream_;
  const std::function<bool(const void*)> own_;
  bool recording_ = false, found_own_words_ = false;
  size_t steps_ = 0;                                   // calls of note
  std::vector<CUgraphNode> queued_;                    // in the order in which they were found
  std::unordered_map<CUgraphNode, size_t> number_of_;  // their places there
  std::vector<Node> nodes_;                            // of them, those that note has seen
  std::vector<Word> words_;
  std::vector<void*> begins_;
};

}  // namespace

std::unique_ptr<runtime::GraphRecorder> CudaGraphDevice::record(void* stream, std::function<bool(const void*)> own) {
  return std::make_unique<CudaRecorder>(context_, updates_, static_cast<CUstream>(stream), std::move(own));
}

}  // namespace cxxinductor::targets

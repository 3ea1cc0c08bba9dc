#include "targets/cuda/graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <unordered_map>

#include "targets/cuda/driver_functions.h"

namespace cxxinductor::targets {
namespace {

using runtime::MemoryRange;
using runtime::ReplacedMemory;

// A word of a node's arguments: an address inside of a range.
struct Word {
  uint32_t node = 0, at = 0;  // bytes from the beginning of the node's arguments
  uint32_t range = 0;
  int64_t offset = 0;
  bool operator==(const Word&) const = default;
};

// One kernel, memset or copy. What `arguments` holds depends on the kind: the parameters of a kernel one after the other, each at a
// multiple of 8; the address of a memset; the addresses that a copy reads and writes.
struct Node {
  CUgraphNode handle = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUDA_KERNEL_NODE_PARAMS kernel{};
  CUDA_MEMSET_NODE_PARAMS fill{};
  CUDA_MEMCPY3D copy{};
  std::vector<uint64_t> arguments;
  std::vector<uint32_t> starts, bytes;  // of a kernel's parameters
  std::vector<uint32_t> own;            // words that are addresses of the recording's own memory

  std::byte* argument(uint32_t at) { return reinterpret_cast<std::byte*>(arguments.data()) + at; }
};

// All that two recordings of the same work have in common, the values of arguments aside.
bool same_kind(const Node& a, const Node& b) {
  if (a.type != b.type || a.starts != b.starts || a.bytes != b.bytes || a.own != b.own) return false;
  const CUDA_KERNEL_NODE_PARAMS &j = a.kernel, &k = b.kernel;
  const auto shape = [](const CUDA_KERNEL_NODE_PARAMS& p) {
    return std::array<unsigned, 7>{p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes};
  };
  if (j.func != k.func || j.kern != k.kern || shape(j) != shape(k)) return false;
  const auto fill = [](const CUDA_MEMSET_NODE_PARAMS& p) {
    return std::array<size_t, 5>{p.pitch, p.value, p.elementSize, p.width, p.height};
  };
  const auto copy = [](const CUDA_MEMCPY3D& p) {
    return std::array<size_t, 15>{p.srcXInBytes, p.srcY, p.srcZ, p.srcLOD, static_cast<size_t>(p.srcMemoryType), p.srcPitch, p.srcHeight, p.dstXInBytes,
                                  p.dstY, p.dstZ, static_cast<size_t>(p.dstMemoryType), p.dstPitch, p.WidthInBytes, p.Height, p.Depth};
  };
  return fill(a.fill) == fill(b.fill) && copy(a.copy) == copy(b.copy);
}

class CudaGraph final : public runtime::DeviceGraph {
 public:
  CudaGraph(const CudaContext& context, CUgraph graph, std::vector<Node> nodes, std::vector<Word> words, std::vector<void*> begins,
            runtime::Dependencies order)
      : cuda_(context.driver().functions()),
        context_(context.state().context),
        graph_(graph),
        nodes_(std::move(nodes)),
        words_(std::move(words)),
        begins_(std::move(begins)),
        order_(std::move(order)),
        changed_(nodes_.size(), true) {
    std::ranges::stable_sort(words_, {}, &Word::range);
    const CurrentContext current(cuda_, context_);
    const BesideCapture scope(cuda_);
    const CUresult made = cuda_.instantiate(&executable_, graph_, 0);
    if (made != CUDA_SUCCESS) cuda_.destroy_graph(graph_);
    cuda_.check(made, "cuGraphInstantiate", "a CUDA graph");
    // The first launch writes all words: those of replaced memory hold other addresses yet.
    for (const Word& word : words_) write(word, begins_[word.range]);
  }
  // At the end of the process the driver may be gone already: failures here have no consequence.
  ~CudaGraph() override {
    const BesideCapture scope(cuda_);
    if (cuda_.push_current(context_) != CUDA_SUCCESS) return;
    if (executable_) cuda_.destroy_executable_graph(executable_);
    cuda_.destroy_graph(graph_);
    CUcontext popped = nullptr;
    cuda_.pop_current(&popped);
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  size_t nodes() const override { return nodes_.size(); }

  bool is_same_work(const runtime::DeviceGraph& other_graph) const override {
    const auto& other = static_cast<const CudaGraph&>(other_graph);
    if (nodes_.size() != other.nodes_.size() || words_ != other.words_ || order_ != other.order_) return false;
    std::vector<std::vector<uint64_t>> mine, others;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!same_kind(nodes_[n], other.nodes_[n])) return false;
      mine.push_back(nodes_[n].arguments);
      others.push_back(other.nodes_[n].arguments);
      for (const uint32_t at : nodes_[n].own) mine[n][at / 8] = others[n][at / 8] = 0;
    }
    for (const Word& word : words_) mine[word.node][word.at / 8] = others[word.node][word.at / 8] = 0;
    return mine == others;
  }

  size_t launch(std::span<void* const> begins, void* stream) override {
    size_t first = 0;
    for (size_t range = 0; range < begins.size(); ++range) {
      size_t last = first;
      while (last < words_.size() && words_[last].range == range) ++last;
      if (begins[range] != begins_[range]) {
        begins_[range] = begins[range];
        for (size_t w = first; w < last; ++w) {
          write(words_[w], begins[range]);
          changed_[words_[w].node] = any_changed_ = true;
        }
      }
      first = last;
    }
    const CurrentContext current(cuda_, context_);
    const size_t patched = any_changed_ ? patch() : 0;
    cuda_.check_kernel(cuda_.launch_graph(executable_, static_cast<CUstream>(stream)), "cuGraphLaunch", "of a CUDA graph");
    return patched;
  }

 private:
  void write(const Word& word, void* begin) {
    const auto value = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(word.offset));
    std::memcpy(nodes_[word.node].argument(word.at), &value, sizeof value);
  }

  // Hands the nodes that changed to the executable graph.
  size_t patch() {
    size_t patched = 0;
    std::vector<void*> parameters;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      if (!changed_[n]) continue;
      changed_[n] = false;
      Node& node = nodes_[n];
      ++patched;
      if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
        parameters.clear();
        for (const uint32_t start : node.starts) parameters.push_back(node.argument(start));
        node.kernel.kernelParams = parameters.data();
        cuda_.check_kernel(cuda_.set_kernel_node(executable_, node.handle, &node.kernel), "cuGraphExecKernelNodeSetParams", "of a CUDA graph");
      } else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
        node.fill.dst = node.arguments[0];
        cuda_.check_kernel(cuda_.set_memset_node(executable_, node.handle, &node.fill, context_), "cuGraphExecMemsetNodeSetParams", "of a CUDA graph");
      } else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        node.copy.srcDevice = node.arguments[0];
        node.copy.dstDevice = node.arguments[1];
        cuda_.check_kernel(cuda_.set_memcpy_node(executable_, node.handle, &node.copy, context_), "cuGraphExecMemcpyNodeSetParams", "of a CUDA graph");
      }
    }
    any_changed_ = false;
    return patched;
  }

  const CudaDriver::Functions& cuda_;
  const CUcontext context_;
  const CUgraph graph_;
  CUgraphExec executable_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<Word> words_;    // by range
  std::vector<void*> begins_;  // of the ranges, as the arguments have them
  const runtime::Dependencies order_;
  std::vector<bool> changed_;  // by node: the executable graph has other arguments
  bool any_changed_ = true;
};

// The nodes of a step that no other of them waits for, and those that wait for no other; what they wait for in steps before.
struct StepNodes {
  std::set<CUgraphNode> first, last, after;
  bool uses_own_memory = false;
};

class CudaRecorder final : public runtime::GraphRecorder {
 public:
  CudaRecorder(const CudaContext& context, CUstream stream, std::function<bool(const void*)> own)
      : context_(context), cuda_(context.driver().functions()), stream_(stream), own_(std::move(own)) {
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

  void note(std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced) override {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = nullptr;
    const CUresult asked = cuda_.capture_info(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr);
    if (asked != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_ACTIVE) throw_unsupported("it does what CUDA does not record");
    size_t count = 0;
    cuda_.check(cuda_.graph_nodes(graph, nullptr, &count), "cuGraphGetNodes", "a CUDA graph");
    std::vector<CUgraphNode> all(count);
    if (count > 0) cuda_.check(cuda_.graph_nodes(graph, all.data(), &count), "cuGraphGetNodes", "a CUDA graph");
    for (const CUgraphNode handle : all)
      if (step_of_.emplace(handle, steps_).second) add(handle, ranges, replaced);
    ++steps_;
    begins_.resize(std::max(begins_.size(), ranges.size()));
    for (size_t r = 0; r < ranges.size(); ++r) begins_[r] = ranges[r].begin;
  }

  std::unique_ptr<runtime::DeviceGraph> finish(const runtime::Dependencies* order) override {
    recording_ = false;
    const CUgraph graph = end();
    if (graph == nullptr) throw_unsupported("it does what CUDA does not record");
    find_own_words();
    if (order) {
      try {
        replace_order(graph, *order);
      } catch (...) {
        cuda_.destroy_graph(graph);
        throw;
      }
    }
    return std::make_unique<CudaGraph>(context_, graph, std::move(nodes_), std::move(words_), std::move(begins_),
                                       order ? *order : runtime::Dependencies());
  }

 private:
  // Null where the capture was invalidated.
  CUgraph end() const {
    CUgraph graph = nullptr;
    return cuda_.end_capture(stream_, &graph) == CUDA_SUCCESS ? graph : nullptr;
  }

  void add(CUgraphNode handle, std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced) {
    Node node;
    node.handle = handle;
    cuda_.check(cuda_.node_type(handle, &node.type), "cuGraphNodeGetType", "a CUDA graph");
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        read_kernel(node);
        break;
      case CU_GRAPH_NODE_TYPE_MEMSET:
        cuda_.check(cuda_.memset_node(handle, &node.fill), "cuGraphMemsetNodeGetParams", "a CUDA graph");
        node.arguments = {node.fill.dst};
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        cuda_.check(cuda_.memcpy_node(handle, &node.copy), "cuGraphMemcpyNodeGetParams", "a CUDA graph");
        if (node.copy.srcMemoryType != CU_MEMORYTYPE_DEVICE || node.copy.dstMemoryType != CU_MEMORYTYPE_DEVICE)
          throw_unsupported("it copies memory between the GPU and the host");
        node.arguments = {node.copy.srcDevice, node.copy.dstDevice};
        break;
      case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
      default:
        throw_unsupported("it queues what is neither a kernel nor a copy (node type {})", static_cast<int>(node.type));
    }
    const auto number = static_cast<uint32_t>(nodes_.size());
    for (uint32_t at = 0; at < node.arguments.size() * 8; at += 8) find(node, number, at, ranges, replaced);
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
      node.starts.push_back(static_cast<uint32_t>(start));
      node.bytes.push_back(static_cast<uint32_t>(bytes));
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
      if (const auto offset = offset_in(result.memory)) return words_.push_back({number, at, static_cast<uint32_t>(result.range), *offset});
    for (size_t r = 0; r < ranges.size(); ++r)
      if (const auto offset = offset_in(ranges[r])) return words_.push_back({number, at, static_cast<uint32_t>(r), *offset});
  }

  void find_own_words() {
    auto word = words_.begin();  // in the order of nodes, then of places
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (uint32_t at = 0; at < nodes_[n].arguments.size() * 8; at += 8) {
        while (word != words_.end() && (word->node < n || (word->node == n && word->at < at))) ++word;
        if (word != words_.end() && word->node == n && word->at == at) continue;
        const uint64_t value = nodes_[n].arguments[at / 8];
        if (value != 0 && own_(reinterpret_cast<const void*>(value))) nodes_[n].own.push_back(at);
      }
    }
  }

  // A capture has each step wait for the one before. Here: for those of `order`, and of those with words of the recording's own memory
  // for the one before.
  void replace_order(CUgraph graph, const runtime::Dependencies& order) {
    CXXI_CHECK(order.size() == steps_, "an order of {} steps, of which {} were recorded", order.size(), steps_);
    std::vector<StepNodes> steps(order.size());
    for (const Node& node : nodes_) {
      StepNodes& step = steps.at(step_of_.at(node.handle));
      step.first.insert(node.handle);
      step.last.insert(node.handle);
      step.uses_own_memory |= !node.own.empty();
    }
    size_t count = 0;
    cuda_.check(cuda_.graph_edges(graph, nullptr, nullptr, nullptr, &count), "cuGraphGetEdges", "a CUDA graph");
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> kinds(count);
    if (count > 0) cuda_.check(cuda_.graph_edges(graph, from.data(), to.data(), kinds.data(), &count), "cuGraphGetEdges", "a CUDA graph");
    for (size_t e = 0; e < count; ++e) {
      StepNodes& step = steps[step_of_.at(from[e])];
      if (&step == &steps[step_of_.at(to[e])]) {
        step.first.erase(to[e]);
        step.last.erase(from[e]);
      } else {
        cuda_.check(cuda_.remove_dependencies(graph, &from[e], &to[e], &kinds[e], 1), "cuGraphRemoveDependencies", "a CUDA graph");
      }
    }
    const StepNodes* own = nullptr;
    for (size_t s = 0; s < steps.size(); ++s) {
      StepNodes& step = steps[s];
      for (const uint32_t earlier : order[s]) {
        const StepNodes& waited_for = steps[earlier];
        // A step without nodes, as a kernel over no elements: what it waits for.
        step.after.insert(waited_for.last.begin(), waited_for.last.end());
        if (waited_for.last.empty()) step.after.insert(waited_for.after.begin(), waited_for.after.end());
      }
      if (step.uses_own_memory) {
        if (own) step.after.insert(own->last.begin(), own->last.end());
        own = &step;
      }
      for (const CUgraphNode node : step.first)
        for (const CUgraphNode earlier : step.after)
          cuda_.check(cuda_.add_dependencies(graph, &earlier, &node, nullptr, 1), "cuGraphAddDependencies", "a CUDA graph");
    }
  }

  const CudaContext& context_;
  const CudaDriver::Functions& cuda_;
  const CUstream stream_;
  const std::function<bool(const void*)> own_;
  bool recording_ = false;
  size_t steps_ = 0;                                 // calls of note
  std::unordered_map<CUgraphNode, size_t> step_of_;  // of all nodes
  std::vector<Node> nodes_;
  std::vector<Word> words_;
  std::vector<void*> begins_;
};

}  // namespace

std::unique_ptr<runtime::GraphRecorder> CudaGraphDevice::record(void* stream, std::function<bool(const void*)> own) {
  return std::make_unique<CudaRecorder>(context_, static_cast<CUstream>(stream), std::move(own));
}

}  // namespace cxxinductor::targets

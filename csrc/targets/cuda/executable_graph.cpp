#include "targets/cuda/executable_graph.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::targets {
namespace {

// From so many nodes on a replay is busy patching them; after so many busy ones the GPU does it.
constexpr size_t many_nodes = 8;
constexpr int busy_replays_at_most = 3;

// Whether two nodes have the same addresses in the same words. Their numbers differ where an earlier step has another number of nodes.
bool have_same_places(std::span<const Word> a, std::span<const Word> b) {
  return std::ranges::equal(a, b, [](const Word& x, const Word& y) { return x.at == y.at && x.range == y.range && x.offset == y.offset; });
}

}  // namespace

CudaGraph::CudaGraph(const CudaContext& context, NodeUpdateSource updates, CUgraph graph, std::vector<Node> nodes, std::vector<Word> words,
                     std::vector<void*> begins, runtime::Dependencies order)
    : cuda_(context.driver().functions()),
      context_(context.state().context),
      update_source_(std::move(updates)),
      graph_(graph),
      nodes_(std::move(nodes)),
      words_(std::move(words)),
      begins_(std::move(begins)),
      order_(std::move(order)),
      words_by_node_(nodes_.size()),
      ignored_(nodes_.size()),
      changed_(nodes_.size()),
      moved_(begins_.size()) {
  for (const Word& word : words_) words_by_node_[word.node].push_back(word);
  std::ranges::stable_sort(words_, {}, &Word::range);
  host_words_ = words_;
  const CurrentContext current(cuda_, context_);
  const BesideCapture scope(cuda_);
  try {
    // Words of replaced memory hold other addresses yet.
    std::vector<bool> changed(nodes_.size());
    for (const Word& word : words_)
      if (write(word, begins_[word.range])) changed[word.node] = true;
    for (size_t n = 0; n < nodes_.size(); ++n)
      if (changed[n]) set(nodes_[n], nodes_[n].handle);
    cuda_.check(cuda_.instantiate(&executable_, graph_, 0), "cuGraphInstantiate", "a CUDA graph");
  } catch (...) {
    cuda_.destroy_graph(graph_);
    throw;
  }
}

// At the end of the process the driver may be gone already: failures here have no consequence.
CudaGraph::~CudaGraph() {
  const BesideCapture scope(cuda_);
  if (cuda_.push_current(context_) != CUDA_SUCCESS) return;
  if (executable_) cuda_.destroy_executable_graph(executable_);
  cuda_.destroy_graph(graph_);
  CUcontext popped = nullptr;
  cuda_.pop_current(&popped);
}

// The words of a node's arguments that are compared; the others are 0.
std::vector<uint64_t> CudaGraph::compared_words(size_t node) const {
  std::vector<uint64_t> words = nodes_[node].arguments;
  for (const uint32_t at : nodes_[node].own) words[at / 8] = 0;
  for (const Word& word : words_by_node_[node]) words[word.at / 8] = 0;
  for (const uint32_t at : ignored_[node]) words[at / 8] = 0;
  return words;
}

std::vector<runtime::DeviceGraph::Difference> CudaGraph::differences(const runtime::DeviceGraph& other_graph) const {
  const auto& other = static_cast<const CudaGraph&>(other_graph);
  std::vector<Difference> found;
  const auto add = [&found](size_t step, std::string what) {
    if (found.empty() || found.back().step != step) found.push_back({step, std::move(what)});
  };
  if (order_ != other.order_)
    for (const Node& node : nodes_) add(node.step, "it depends on other steps");
  size_t n = 0, m = 0;
  while (n < nodes_.size() || m < other.nodes_.size()) {
    const size_t step = std::min(n < nodes_.size() ? nodes_[n].step : SIZE_MAX, m < other.nodes_.size() ? other.nodes_[m].step : SIZE_MAX);
    for (; n < nodes_.size() && nodes_[n].step == step && m < other.nodes_.size() && other.nodes_[m].step == step; ++n, ++m) {
      if (!same_kind(nodes_[n], other.nodes_[m]) || !have_same_places(words_by_node_[n], other.words_by_node_[m])) {
        add(step, "it launches another kernel, or gives it other addresses");
        continue;
      }
      std::vector<uint64_t> mine = compared_words(n), others = other.compared_words(m);
      for (const uint32_t at : ignored_[n]) others[at / 8] = 0;
      for (const uint32_t at : other.ignored_[m]) mine[at / 8] = 0;
      const auto [differs, unused] = std::ranges::mismatch(mine, others);
      if (differs == mine.end()) continue;
      const auto at = static_cast<uint32_t>(differs - mine.begin());
      add(step, fmt::format("word {} of its kernel's arguments is {:#x}, and was {:#x}", at, mine[at], others[at]));
    }
    const bool has_more = (n < nodes_.size() && nodes_[n].step == step) || (m < other.nodes_.size() && other.nodes_[m].step == step);
    if (has_more) add(step, "it queues another number of kernels");
    while (n < nodes_.size() && nodes_[n].step == step) ++n;
    while (m < other.nodes_.size() && other.nodes_[m].step == step) ++m;
  }
  return found;
}

void CudaGraph::ignore(const runtime::DeviceGraph& again) {
  const auto& other = static_cast<const CudaGraph&>(again);
  if (nodes_.size() != other.nodes_.size()) return;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (nodes_[n].step != other.nodes_[n].step || !same_kind(nodes_[n], other.nodes_[n])) continue;
    const std::vector<uint64_t> mine = compared_words(n), others = other.compared_words(n);
    for (uint32_t i = 0; i < mine.size(); ++i)
      if (mine[i] != others[i]) ignored_[n].push_back(8 * i);
  }
}

size_t CudaGraph::launch(std::span<void* const> begins, void* stream) {
  for (size_t range = 0; range < begins.size(); ++range) {
    if (begins[range] == begins_[range]) continue;
    begins_[range] = begins[range];
    moved_[range] = true;
    const auto [first, last] = std::ranges::equal_range(host_words_, static_cast<uint32_t>(range), {}, &Word::range);
    for (auto word = first; word != last; ++word)
      if (write(*word, begins[range])) changed_[word->node] = any_changed_ = true;
  }
  const CurrentContext current(cuda_, context_);
  const size_t patched = any_changed_ ? patch_changed() : 0;
  if (updates_) updates_->write(cuda_, begins, static_cast<CUstream>(stream));
  const CUresult queued = cuda_.launch_graph(executable_, static_cast<CUstream>(stream));
  // The first launch of a graph takes memory of the device, which torch's allocator may have all of.
  if (queued == CUDA_ERROR_OUT_OF_MEMORY) throw_unsupported("cuGraphLaunch failed: {}", cuda_.describe(queued));
  cuda_.check_kernel(queued, "cuGraphLaunch", "of a CUDA graph");
  if (updates_) updates_->launched();
  if (patched >= many_nodes && busy_replays_ >= 0) {
    if (busy_replays_ < busy_replays_at_most)
      ++busy_replays_;
    else
      let_device_update(stream);
  }
  return patched;
}

// Whether the node's arguments are others now.
bool CudaGraph::write(const Word& word, void* begin) {
  uint64_t& argument = nodes_[word.node].arguments[word.at / 8];
  const auto value = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(word.offset));
  return std::exchange(argument, value) != value;
}

// Puts a node's arguments into the structure that the driver takes. The result is part of it.
std::vector<void*> CudaGraph::gather(Node& node) {
  std::vector<void*> arguments;
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    arguments.reserve(node.parameters.size());
    for (const Node::Parameter& parameter : node.parameters) arguments.push_back(node.argument(parameter.start));
    node.kernel.kernelParams = arguments.data();
  } else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET) {
    node.fill.dst = node.arguments[0];
  } else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    node.copy.srcDevice = node.arguments[0];
    node.copy.dstDevice = node.arguments[1];
  }
  return arguments;
}

// Hands a node's arguments to the executable graph.
void CudaGraph::patch(Node& node) {
  const std::vector<void*> arguments = gather(node);
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL)
    cuda_.check_kernel(cuda_.patch_kernel_node(executable_, node.handle, &node.kernel), "cuGraphExecKernelNodeSetParams", "of a CUDA graph");
  else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET)
    cuda_.check_kernel(cuda_.patch_memset_node(executable_, node.handle, &node.fill, context_), "cuGraphExecMemsetNodeSetParams", "of a CUDA graph");
  else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY)
    cuda_.check_kernel(cuda_.patch_memcpy_node(executable_, node.handle, &node.copy, context_), "cuGraphExecMemcpyNodeSetParams", "of a CUDA graph");
}

// Hands a node's arguments to a graph that was not made executable yet, which costs launches nothing. handle: the node's, there.
void CudaGraph::set(Node& node, CUgraphNode handle) {
  const std::vector<void*> arguments = gather(node);
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL)
    cuda_.check(cuda_.set_kernel_node(handle, &node.kernel), "cuGraphKernelNodeSetParams", "a CUDA graph");
  else if (node.type == CU_GRAPH_NODE_TYPE_MEMSET)
    cuda_.check(cuda_.set_memset_node(handle, &node.fill), "cuGraphMemsetNodeSetParams", "a CUDA graph");
  else if (node.type == CU_GRAPH_NODE_TYPE_MEMCPY)
    cuda_.check(cuda_.set_memcpy_node(handle, &node.copy), "cuGraphMemcpyNodeSetParams", "a CUDA graph");
}

size_t CudaGraph::patch_changed() {
  size_t patched = 0;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!changed_[n]) continue;
    try {
      patch(nodes_[n]);
    } catch (const InternalError& error) {
      throw_unsupported("{}", error.what());
    }
    changed_[n] = false;
    ++patched;
  }
  any_changed_ = false;
  return patched;
}

// Makes the graph anew with a kernel that writes the words of all nodes that had one that moved. Where that is not possible, once and
// for all, the host goes on to patch them.
void CudaGraph::let_device_update(void* stream) {
  NodeUpdateKernels* const kernels = update_source_ ? update_source_() : nullptr;
  if (!kernels) return;
  busy_replays_ = -1;
  const BesideCapture scope(cuda_);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  auto updates = std::make_unique<NodeUpdates>(*kernels);
  std::vector<CUgraphNode> handles(nodes_.size());
  std::vector<bool> on_device(nodes_.size());
  try {
    cuda_.check(cuda_.clone_graph(&graph, graph_), "cuGraphClone", "a CUDA graph");
    for (size_t n = 0; n < nodes_.size(); ++n) cuda_.check(cuda_.find_in_clone(&handles[n], nodes_[n].handle, graph), "cuGraphNodeFindInClone", "a CUDA graph");
    for (const Word& word : words_)
      if (moved_[word.range] && nodes_[word.node].type == CU_GRAPH_NODE_TYPE_KERNEL) on_device[word.node] = true;
    const bool added = updates->add_to(cuda_, graph, find_updated_words(handles, on_device));
    if (added) {
      // The others have the arguments of the recording there.
      std::vector<bool> moved(nodes_.size());
      for (const Word& word : words_)
        if (moved_[word.range]) moved[word.node] = true;
      for (size_t n = 0; n < nodes_.size(); ++n)
        if (moved[n] && !on_device[n]) set(nodes_[n], handles[n]);
      cuda_.check(cuda_.instantiate(&executable, graph, 0), "cuGraphInstantiate", "a CUDA graph");
      cuda_.check(cuda_.upload_graph(executable, static_cast<CUstream>(stream)), "cuGraphUpload", "a CUDA graph");
    }
  } catch (const UserError&) {
    if (executable) cuda_.destroy_executable_graph(std::exchange(executable, nullptr));
  }
  if (!executable) {
    if (graph) cuda_.destroy_graph(graph);
    return;
  }
  cuda_.destroy_executable_graph(std::exchange(executable_, executable));
  cuda_.destroy_graph(std::exchange(graph_, graph));
  for (size_t n = 0; n < nodes_.size(); ++n) nodes_[n].handle = handles[n];
  // The arguments of those nodes in nodes_ stay what they are from here on: the kernel in front alone knows where their memory lies.
  std::erase_if(host_words_, [&](const Word& word) { return on_device[word.node]; });
  updates_ = std::move(updates);
}

// The words of the nodes in `on_device`, less those nodes that the driver does not let a kernel update.
std::vector<NodeUpdates::Word> CudaGraph::find_updated_words(std::span<const CUgraphNode> handles, std::vector<bool>& on_device) const {
  std::vector<CUgraphDeviceNode> nodes(nodes_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!on_device[n]) continue;
    const auto node = NodeUpdates::make_updatable(cuda_, handles[n]);
    if (node)
      nodes[n] = *node;
    else
      on_device[n] = false;
  }
  std::vector<NodeUpdates::Word> found;
  for (const Word& word : words_) {
    if (!on_device[word.node]) continue;
    const Node::Parameter& parameter = parameter_of(nodes_[word.node], word.at);
    found.push_back({nodes[word.node], parameter.offset + (word.at - parameter.start), word.range, word.offset});
  }
  return found;
}

}  // namespace cxxinductor::targets

#include "targets/cuda/executable_graph.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::targets {
namespace {

// From so many nodes on a replay is busy exchanging them; after so many busy ones the GPU does it.
constexpr size_t many_nodes = 8;
constexpr int busy_replays_at_most = 3;

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
      changed_(nodes_.size(), true),
      moved_(begins_.size()) {
  std::ranges::stable_sort(words_, {}, &Word::range);
  host_words_ = words_;
  const CurrentContext current(cuda_, context_);
  const BesideCapture scope(cuda_);
  const CUresult made = cuda_.instantiate(&executable_, graph_, 0);
  if (made != CUDA_SUCCESS) cuda_.destroy_graph(graph_);
  cuda_.check(made, "cuGraphInstantiate", "a CUDA graph");
  // The first launch writes all words: those of replaced memory hold other addresses yet.
  for (const Word& word : words_) write(word, begins_[word.range]);
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

bool CudaGraph::is_same_work(const runtime::DeviceGraph& other_graph) const {
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

size_t CudaGraph::launch(std::span<void* const> begins, void* stream) {
  for (size_t range = 0; range < begins.size(); ++range) {
    if (begins[range] == begins_[range]) continue;
    begins_[range] = begins[range];
    moved_[range] = true;
    const auto [first, last] = std::ranges::equal_range(host_words_, static_cast<uint32_t>(range), {}, &Word::range);
    for (auto word = first; word != last; ++word) {
      write(*word, begins[range]);
      changed_[word->node] = any_changed_ = true;
    }
  }
  const CurrentContext current(cuda_, context_);
  const size_t exchanged = any_changed_ ? exchange_changed() : 0;
  if (updates_) updates_->write(cuda_, begins, static_cast<CUstream>(stream));
  cuda_.check_kernel(cuda_.launch_graph(executable_, static_cast<CUstream>(stream)), "cuGraphLaunch", "of a CUDA graph");
  if (updates_) updates_->launched();
  if (exchanged >= many_nodes && busy_replays_ >= 0 && ++busy_replays_ > busy_replays_at_most) let_device_update(stream);
  return exchanged;
}

void CudaGraph::write(const Word& word, void* begin) {
  const auto value = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(word.offset));
  std::memcpy(nodes_[word.node].argument(word.at), &value, sizeof value);
}

// Hands a node's arguments to the executable graph.
void CudaGraph::exchange(Node& node) {
  if (node.type == CU_GRAPH_NODE_TYPE_KERNEL) {
    std::vector<void*> arguments;
    arguments.reserve(node.parameters.size());
    for (const Node::Parameter& parameter : node.parameters) arguments.push_back(node.argument(parameter.start));
    node.kernel.kernelParams = arguments.data();
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

size_t CudaGraph::exchange_changed() {
  size_t exchanged = 0;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!changed_[n]) continue;
    changed_[n] = false;
    exchange(nodes_[n]);
    ++exchanged;
  }
  any_changed_ = false;
  return exchanged;
}

// Makes the graph anew with a kernel that writes the words of all nodes that had one that moved. Where that is not possible, once and
// for all, the host goes on to exchange them.
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
  for (size_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n].handle = handles[n];
    changed_[n] = !on_device[n];  // the new graph has the arguments of the recording
  }
  any_changed_ = true;
  std::erase_if(host_words_, [&](const Word& word) { return on_device[word.node]; });
  updates_ = std::move(updates);
}

// The words of the nodes in `on_device`, less those nodes that the driver does not let a kernel update.
std::vector<NodeUpdates::Word> CudaGraph::find_updated_words(std::span<const CUgraphNode> handles, std::vector<bool>& on_device) const {
  std::vector<CUgraphDeviceNode> nodes(nodes_.size());
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (!on_device[n]) continue;
    const auto node = NodeUpdates::make_updatable(cuda_, handles[n]);
    if (node) nodes[n] = *node;
    else on_device[n] = false;
  }
  std::vector<NodeUpdates::Word> found;
  for (const Word& word : words_) {
    if (!on_device[word.node]) continue;
    const auto& parameters = nodes_[word.node].parameters;
    const auto parameter = std::prev(std::ranges::upper_bound(parameters, word.at, {}, &Node::Parameter::start));
    found.push_back({nodes[word.node], parameter->offset + (word.at - parameter->start), word.range, word.offset});
  }
  return found;
}

}  // namespace cxxinductor::targets

// A recorded CUDA graph, made executable: replays at other addresses.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/graphs/device_graph.h"
#include "targets/cuda/driver_functions.h"
#include "targets/cuda/node_updates.h"
#include "targets/cuda/recorded_node.h"

namespace cxxinductor::targets {

// Addresses reach the nodes in one of two ways. At first the host hands over each node that has one that moved. Once that was many
// nodes several times, the graph is made anew with a kernel in front that writes the words of such nodes (node_updates.h).
class CudaGraph final : public runtime::DeviceGraph {
 public:
  // Takes over the graph. words: in the order of nodes, then of places; begins: of the ranges, in the recording. UserError where the
  // driver does not take the graph.
  CudaGraph(const CudaContext& context, NodeUpdateSource updates, CUgraph graph, std::vector<Node> nodes, std::vector<Word> words, std::vector<void*> begins,
            runtime::Dependencies order);
  ~CudaGraph() override;
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  std::vector<Difference> differences(const runtime::DeviceGraph& other_graph) const override;
  void ignore(const runtime::DeviceGraph& again) override;
  size_t launch(std::span<void* const> begins, void* stream) override;

 private:
  std::vector<uint64_t> compared_words(size_t node) const;
  bool write(const Word& word, void* begin);
  std::vector<void*> gather(Node& node);
  void set(Node& node, CUgraphNode handle);
  void patch(Node& node);
  size_t patch_changed();
  void let_device_update(void* stream);
  std::vector<NodeUpdates::Word> find_updated_words(std::span<const CUgraphNode> handles, std::vector<bool>& on_device) const;

  const CudaDriver::Functions& cuda_;
  const CUcontext context_;
  const NodeUpdateSource update_source_;
  CUgraph graph_;
  CUgraphExec executable_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<Word> words_;       // by range
  std::vector<Word> host_words_;  // those that the host writes
  std::vector<void*> begins_;     // of the ranges, as the arguments have them
  const runtime::Dependencies order_;
  std::vector<std::vector<Word>> words_by_node_;
  std::vector<std::vector<uint32_t>> ignored_;  // by node: words, as bytes from the beginning of its arguments
  std::vector<bool> changed_;                   // by node: the executable graph has other arguments
  std::vector<bool> moved_;                     // by range: since the graph was made executable first
  bool any_changed_ = false;
  int busy_replays_ = 0;                  // with many nodes patched by the host; negative: that is what it stays with
  std::unique_ptr<NodeUpdates> updates_;  // of the other words; null: there are none
};

}  // namespace cxxinductor::targets

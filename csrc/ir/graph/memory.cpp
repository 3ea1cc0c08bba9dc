#include "ir/graph/memory.h"

#include "ir/live_ranges.h"

namespace cxxinductor::graph {
namespace {

class Run {
 public:
  explicit Run(const Graph& graph) : graph_(graph), ranges_(graph.values.size()), base_(graph.values.size()) {
    for (size_t v = 0; v < base_.size(); ++v) base_[ValueId(v)] = ValueId(v);
    for (const Input& input : graph.inputs)
      if (input.donated) {
        const Value& value = graph.values[input.value];
        allocate(input.value, share_hint(value.dtype, value.sizes, value.layout.strides, graph.assumptions));
      }
    for (const Node& node : graph.nodes) {
      visit(node);
      ++step_;
    }
    for (const Mutation& mutation : graph.mutations) touch(mutation.value);
    for (const Output& output : graph.outputs)
      if (output.kind == Output::Kind::Tensor) touch(output.value);
  }

  std::map<Device, MemoryUse> use() const {
    std::map<Device, MemoryUse> uses;
    for (const auto& [device, ranges] : ranges_of_devices()) {
      MemoryUse& use = uses[device];
      use.peak = find_peak(ranges).bytes;
      use.at.assign(graph_.nodes.size() + 1, 0);
      for (const LiveRange& range : ranges) {
        const auto first = static_cast<size_t>(range.first), end = static_cast<size_t>(range.last) + 1;
        use.at[first] += range.bytes;
        if (end < use.at.size()) use.at[end] -= range.bytes;
      }
      for (size_t n = 1; n < use.at.size(); ++n) use.at[n] += use.at[n - 1];
      use.at.pop_back();
    }
    return uses;
  }

  std::map<Device, int64_t> peaks() const { return peaks_of(ranges_of_devices()); }

 private:
  std::map<Device, std::vector<LiveRange>> ranges_of_devices() const {
    std::map<Device, std::vector<LiveRange>> ranges;
    for (size_t v = 0; v < ranges_.size(); ++v) ranges[graph_.values[ValueId(v)].device].push_back(ranges_[ValueId(v)]);
    return ranges;
  }
  void visit(const Node& node) {
    for (const Operand& operand : node.operands)
      if (const auto* id = std::get_if<ValueId>(&operand)) touch(*id);
    const auto* call = node.as<Extern>();
    for (size_t r = 0; r < node.results.size(); ++r) {
      const int operand = call ? call->alias_of[r] : is_view(node.kind) ? 0 : -1;
      if (operand >= 0)
        base_[node.results[r]] = base_[std::get<ValueId>(node.operands[static_cast<size_t>(operand)])];
      else
        allocate(node.results[r], bytes_of(node.results[r]));
    }
  }
  int64_t bytes_of(ValueId id) const {
    const Value& value = graph_.values[id];
    return bytes_hint(value.dtype, value.sizes, value.layout.strides, graph_.assumptions);
  }
  void allocate(ValueId id, int64_t bytes) { ranges_[id] = {allocated(bytes), step_, step_}; }
  void touch(ValueId id) { ranges_[base_[id]].last = step_; }

  const Graph& graph_;
  IdVector<ValueId, LiveRange> ranges_;  // of what is allocated
  IdVector<ValueId, ValueId> base_;      // the value whose memory it is
  int step_ = 0;
};

}  // namespace

std::map<Device, int64_t> eager_peaks(const Graph& graph) { return Run(graph).peaks(); }

std::map<Device, MemoryUse> eager_memory(const Graph& graph) { return Run(graph).use(); }

}  // namespace cxxinductor::graph

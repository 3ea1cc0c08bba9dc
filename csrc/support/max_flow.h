// Maximum flow, and with it the minimum cut, of a network with integer capacities (Dinic's algorithm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace cxxinductor {

class FlowNetwork {
 public:
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max() / 4;

  size_t add_node();
  // capacity: not negative, at most unlimited. The sum of those that are limited must be below it.
  void add_edge(size_t from, size_t to, int64_t capacity);

  // Of the nodes, those from which the sink can still be reached once the flow is greatest. Edges that lead into them
  // from others are a minimum cut: of all such cuts, the one nearest to the sink. Call once.
  std::vector<bool> sink_side(size_t source, size_t sink);
  // Through the cut; valid after sink_side. At least unlimited: there is no cut through edges that are limited.
  int64_t flow() const { return flow_; }

 private:
  struct Edge {
    size_t to = 0;
    int64_t left = 0;
  };
  bool find_levels(size_t source, size_t sink);
  int64_t augment(size_t source, size_t sink);

  std::vector<Edge> edges_;  // each is followed by its reverse
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<size_t> level_, next_;
  int64_t flow_ = 0;
};

}  // namespace cxxinductor

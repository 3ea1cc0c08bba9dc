#include "support/max_flow.h"

#include <algorithm>

namespace cxxinductor {
namespace {

constexpr size_t unreached = static_cast<size_t>(-1);

}  // namespace

size_t FlowNetwork::add_node() {
  edges_of_.emplace_back();
  return edges_of_.size() - 1;
}

void FlowNetwork::add_edge(size_t from, size_t to, int64_t capacity) {
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

std::vector<bool> FlowNetwork::sink_side(size_t source, size_t sink) {
  while (flow_ < unlimited && find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (flow_ < unlimited) {
      const int64_t more = augment(source, sink);
      if (more == 0) break;
      flow_ += more;
    }
  }
  std::vector<bool> reaches(edges_of_.size(), false);
  std::vector<size_t> open{sink};
  reaches[sink] = true;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    for (size_t edge : edges_of_[node]) {  // the edge's reverse leads into the node
      const size_t from = edges_[edge].to;
      if (reaches[from] || edges_[edge ^ 1].left == 0) continue;
      reaches[from] = true;
      open.push_back(from);
    }
  }
  return reaches;
}

// Distances from the source along edges that have capacity left; whether the sink has one.
bool FlowNetwork::find_levels(size_t source, size_t sink) {
  level_.assign(edges_of_.size(), unreached);
  level_[source] = 0;
  std::vector<size_t> open{source};
  for (size_t i = 0; i < open.size(); ++i)
    for (size_t edge : edges_of_[open[i]])
      if (edges_[edge].left > 0 && level_[edges_[edge].to] == unreached) {
        level_[edges_[edge].to] = level_[open[i]] + 1;
        open.push_back(edges_[edge].to);
      }
  return level_[sink] != unreached;
}

// Sends what one path takes that goes one level up with each edge; 0 where there is none left. No recursion: chains of
// calls are as long as models are deep.
int64_t FlowNetwork::augment(size_t source, size_t sink) {
  std::vector<size_t> path;  // edges
  size_t node = source;
  while (node != sink) {
    const std::vector<size_t>& edges = edges_of_[node];
    size_t& i = next_[node];
    while (i < edges.size() && (edges_[edges[i]].left == 0 || level_[edges_[edges[i]].to] != level_[node] + 1)) ++i;
    if (i < edges.size()) {
      path.push_back(edges[i]);
      node = edges_[edges[i]].to;
    } else if (path.empty()) {
      return 0;
    } else {
      node = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[node];
    }
  }
  int64_t sent = unlimited;
  for (size_t edge : path) sent = std::min(sent, edges_[edge].left);
  for (size_t edge : path) {
    edges_[edge].left -= sent;
    edges_[edge ^ 1].left += sent;
  }
  return sent;
}

}  // namespace cxxinductor

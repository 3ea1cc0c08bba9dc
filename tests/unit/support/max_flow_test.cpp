#include "support/max_flow.h"

#include <algorithm>
#include <random>

#include "unit/catch.h"

using cxxinductor::FlowNetwork;

namespace {

struct Edge {
  size_t from, to;
  int64_t capacity;
};

int64_t capacity_into(const std::vector<bool>& side, const std::vector<Edge>& edges) {
  int64_t sum = 0;
  for (const Edge& edge : edges)
    if (!side[edge.from] && side[edge.to]) sum += edge.capacity;
  return sum;
}

}  // namespace

TEST_CASE("the cut is the smallest of all, and of those the one with the fewest nodes on the sink's side") {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (int round = 0; round < 300; ++round) {
    const size_t nodes = 3 + below(5);
    std::vector<Edge> edges;
    for (size_t i = 0; i < 2 * nodes; ++i) edges.push_back({below(nodes), below(nodes), static_cast<int64_t>(below(6))});
    std::erase_if(edges, [](const Edge& edge) { return edge.from == edge.to; });
    FlowNetwork network;
    for (size_t i = 0; i < nodes; ++i) network.add_node();
    for (const Edge& edge : edges) network.add_edge(edge.from, edge.to, edge.capacity);
    const std::vector<bool> found = network.sink_side(0, 1);
    int64_t least = FlowNetwork::unlimited;
    size_t fewest = nodes;
    for (size_t set = 0; set < (size_t{1} << nodes); ++set) {
      if ((set & 1) != 0 || (set & 2) == 0) continue;
      std::vector<bool> side(nodes);
      for (size_t i = 0; i < nodes; ++i) side[i] = (set >> i & 1) != 0;
      const int64_t capacity = capacity_into(side, edges);
      const auto size = static_cast<size_t>(std::count(side.begin(), side.end(), true));
      if (capacity < least || (capacity == least && size < fewest)) fewest = size;
      least = std::min(least, capacity);
    }
    CHECK(network.flow() == least);
    CHECK(capacity_into(found, edges) == least);
    CHECK(static_cast<size_t>(std::count(found.begin(), found.end(), true)) == fewest);
  }
}

TEST_CASE("a network of a long chain needs no deep stack") {
  FlowNetwork network;
  constexpr size_t length = 200'000;
  for (size_t i = 0; i < length; ++i) network.add_node();
  for (size_t i = 0; i + 1 < length; ++i) network.add_edge(i, i + 1, i == length / 2 ? 3 : 5);
  const std::vector<bool> side = network.sink_side(0, length - 1);
  CHECK(network.flow() == 3);
  CHECK_FALSE(side[length / 2]);
  CHECK(side[length / 2 + 1]);
}

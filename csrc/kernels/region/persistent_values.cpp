#include "kernels/region/persistent_values.h"

#include <algorithm>
#include <limits>

#include "ir/loops/stmt_properties.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::StmtId;

constexpr int unlimited = std::numeric_limits<int>::max() / 2;

// Maximum flow by shortest augmenting paths. Bodies have a few hundred statements and cuts a few dozen bytes.
class FlowNetwork {
 public:
  explicit FlowNetwork(size_t nodes) : edges_of_(nodes) {}

  void add(size_t from, size_t to, int capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  void saturate(size_t source, size_t sink) {
    while (augment(source, sink)) {
    }
  }

  // Nodes from which the sink can still be reached: the far side of the cut that lies nearest to the sink.
  std::vector<bool> reaching(size_t sink) const { return connected(sink, 1); }
  // Nodes that the source still reaches: the near side of the cut that lies nearest to the source.
  std::vector<bool> reached(size_t source) const { return connected(source, 0); }

 private:
  struct Edge {
    size_t to;
    int capacity;
  };

  // Along edges (reversed: 1) that have capacity left.
  std::vector<bool> connected(size_t start, size_t reversed) const {
    std::vector<bool> seen(edges_of_.size());
    std::vector<size_t> queue{start};
    seen[start] = true;
    for (size_t head = 0; head < queue.size(); ++head)
      for (size_t e : edges_of_[queue[head]]) {
        size_t next = edges_[e].to;
        if (edges_[e ^ reversed].capacity == 0 || seen[next]) continue;
        seen[next] = true;
        queue.push_back(next);
      }
    return seen;
  }

  bool augment(size_t source, size_t sink) {
    constexpr size_t none = std::numeric_limits<size_t>::max();
    std::vector<size_t> via(edges_of_.size(), none);
    std::vector<size_t> queue{source};
    for (size_t head = 0; head < queue.size() && via[sink] == none; ++head)
      for (size_t e : edges_of_[queue[head]]) {
        size_t to = edges_[e].to;
        if (edges_[e].capacity == 0 || via[to] != none || to == source) continue;
        via[to] = e;
        queue.push_back(to);
      }
    if (via[sink] == none) return false;
    int amount = unlimited;
    for (size_t node = sink; node != source; node = edges_[via[node] ^ 1].to) amount = std::min(amount, edges_[via[node]].capacity);
    for (size_t node = sink; node != source; node = edges_[via[node] ^ 1].to) {
      edges_[via[node]].capacity -= amount;
      edges_[via[node] ^ 1].capacity += amount;
    }
    return true;
  }

  std::vector<Edge> edges_;  // edge e and its reverse e ^ 1 are neighbours
  std::vector<std::vector<size_t>> edges_of_;
};

bool is_expensive(const Stmt& stmt) {
  const auto* apply = stmt.as<loops::Apply>();
  return apply && info(apply->op).traits.transcendental;
}

// Operands that all rows share stay in the nearest cache: only what differs between rows is worth registers.
bool must_be_kept(const FlatRegion& flat, const Stmt& stmt, RematPolicy policy) {
  bool one_row = flat.space.empty() && !flat.serial.valid();
  bool differs = !(stmt.vars - flat.row_set()).empty() || one_row;
  return (policy.loads && stmt.as<loops::Load>() && differs) || (policy.expensive && is_expensive(stmt));
}

}  // namespace

std::vector<bool> choose_persistent_values(const FlatRegion& flat, const std::vector<int>& first, RematPolicy policy) {
  const loops::Region& region = flat.region;
  size_t count = region.body.size();
  // Statement s is the edge in(s) -> out(s) whose capacity is its price.
  auto in = [](size_t s) { return 2 * s; };
  auto out = [](size_t s) { return 2 * s + 1; };
  size_t source = 2 * count, sink = 2 * count + 1;
  FlowNetwork network(2 * count + 2);
  for (size_t s = 0; s < count; ++s) {
    const Stmt& stmt = region.body[StmtId(s)];
    if (!flat.is_row_varying(stmt)) continue;
    const bool in_row_loop = !is_effect(stmt) && !is_known_after_row(stmt);  // its value is
    if (in_row_loop) {
      network.add(in(s), out(s), byte_size(stmt.dtype));
      if (must_be_kept(flat, stmt, policy)) network.add(source, in(s), unlimited);
    }
    for (StmtId operand : operands(stmt)) {
      size_t o = operand.index();
      if (!flat.is_row_varying(region.body[operand]) || is_known_after_row(region.body[operand])) continue;
      if (in_row_loop) network.add(out(o), in(s), unlimited);
      if (first[o] < first[s]) network.add(out(o), sink, unlimited);
    }
  }
  network.saturate(source, sink);
  std::vector<bool> after = policy.early ? network.reached(source) : network.reaching(sink);
  if (policy.early) after.flip();
  std::vector<bool> marked(count);
  for (size_t s = 0; s < count; ++s) marked[s] = after[out(s)] && !after[in(s)];
  return marked;
}

}  // namespace cxxinductor::kernels

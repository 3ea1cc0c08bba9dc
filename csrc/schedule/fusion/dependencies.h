// The steps of a program while fusion merges them: who reads and writes what, which order must hold, and in which order
// the steps stand now. Edges come from buffers (read after write, write after read, write after write, aliases of
// extern results included), from ordered externs, between what may raise and what writes inputs, so that a failed call
// leaves them written as far as the program says, and to the users of a symbol from the call that defines it and from the
// assertions about it that stand before them. Merging two steps unites their edges.
//
// The order is kept as a list with integer labels, so that "before" is one comparison and a merge moves only the steps
// that lie between the two.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/loops/symbols.h"
#include "support/typed_id.h"

namespace cxxinductor::schedule {

struct StepTag;
using StepId = Id<StepTag>;

// What is read off a region once for each version of it.
struct RegionSummary {
  std::vector<loops::BufferId> reads, writes;  // sorted, distinct; what an update writes it reads too
  loops::VarSet all, reduced;
  int checks = 0, applies = 0, transcendental = 0;
  bool may_raise = false;  // at the call, before later steps run
  bool pointwise() const { return reduced.empty() && checks == 0; }
};
RegionSummary summarize(const loops::Region& region);
// A call that may raise, or a check on the CPU. Devices that run behind the host report their checks later.
bool may_raise(const loops::Step& step);
// Whether the caller sees what the step writes though the call fails later.
bool writes_input(const loops::Program& program, const loops::Step& step);
bool intersect(const std::vector<loops::BufferId>& a, const std::vector<loops::BufferId>& b);  // as reads and writes are

class Dependencies {
 public:
  explicit Dependencies(loops::Program program);

  const loops::Program& program() const { return program_; }
  loops::BufferId add_buffer(loops::Buffer buffer);
  size_t step_count() const { return steps_.size(); }
  StepId find(StepId id) const;  // the step that id was merged into
  bool alive(StepId id) const { return find(id) == id && !node(id).removed; }
  const loops::Region* region(StepId id) const;    // null for externs
  const loops::ExternCall* call(StepId id) const;  // null for regions
  const RegionSummary& summary(StepId id) const { return node(id).summary; }
  uint32_t version(StepId id) const { return node(id).version; }  // rises when the region changes
  bool before(StepId a, StepId b) const { return node(a).label < node(b).label; }
  // Where the step stood in the program; of merged steps, the first.
  size_t place(StepId id) const { return node(id).place; }
  std::vector<StepId> order() const;
  const std::vector<StepId>& predecessors(StepId id) const { return node(id).before; }  // before any merge

  // In one region, what one of them writes to an input would be written although the other raises.
  bool order_of_raise_and_write(StepId a, StepId b) const;

  // The one region that stores a temporary or output buffer; nothing for inputs and extern results.
  std::optional<StepId> producer(loops::BufferId buffer) const;
  std::vector<StepId> writers(loops::BufferId buffer) const;  // externs included, each once
  std::vector<StepId> readers(loops::BufferId buffer) const;  // externs included, in no particular order but stable
  // Whether something other than `a` and `b` needs the buffer in memory.
  bool has_other_users(loops::BufferId buffer, StepId a, StepId b) const;
  // Whether the buffer is an output, or what an output views.
  bool has_users_beyond_readers(loops::BufferId buffer) const { return live_out_[buffer] != 0; }
  // Whether its memory is free after its last reader: neither handed out nor the caller's to keep.
  bool dies(loops::BufferId buffer) const { return dies_[buffer] != 0; }
  // Whether step `a` or one between it and step `b` overwrites the buffer.
  bool overwritten_between(loops::BufferId buffer, StepId a, StepId b) const;

  enum class Path : uint8_t { None, Exists, TooFar };
  // A path first -> x -> second through another step. `between`: of None the ancestors of second that stand after first, of
  // Exists the step after first on such a path.
  Path path_between(StepId first, StepId second, std::vector<StepId>* between) const;
  // first and second, with no path between them, become one step with this region.
  StepId merge(StepId first, StepId second, const std::vector<StepId>& between, loops::Region fused);
  // A reader that now reads what `producer` reads.
  void replace_after_inlining(StepId reader, StepId producer, loops::Region region);
  void replace(StepId id, loops::Region region);
  void insert_before(StepId next, loops::Region region);  // its writes are read by `next` alone, its reads were next's
  void remove(StepId id);
  loops::Program snapshot() const;  // steps in order
  loops::Program finish() &&;       // the same, and nothing is left here

 private:
  struct Node {
    loops::Step step;
    RegionSummary summary;
    StepId parent;
    bool removed = false;
    uint32_t version = 0;
    int64_t label = 0;
    size_t place = 0;
    StepId previous, next;
    std::vector<StepId> before, after;  // edges; ids may have been merged away
  };
  Node& node(StepId id) { return steps_[id]; }
  const Node& node(StepId id) const { return steps_[id]; }
  void add_edge(StepId a, StepId b);
  void follow_definers(StepId id);
  void find_memories();
  void build_edges();
  void follow_ordered(StepId id, const loops::ExternCall& call);
  void note_accesses(StepId id);
  void order_writes_and_raises();
  bool writes_input(StepId id) const;
  void unlink(StepId id);
  void link_before(StepId id, StepId next);
  void relabel();
  bool reads(StepId id, loops::BufferId buffer) const;

  loops::Program program_;
  IdVector<StepId, Node> steps_;
  StepId head_, tail_;
  StepId last_collective_, last_ordered_;  // of those that keep their order, while edges are built
  IdVector<loops::BufferId, std::vector<StepId>> readers_, writers_;
  IdVector<loops::BufferId, char> live_out_;  // outputs and what they view
  IdVector<loops::BufferId, char> dies_;
  // Buffers that may share memory through an extern's result are one memory.
  IdVector<loops::BufferId, uint32_t> memory_of_;
  std::vector<std::vector<StepId>> memory_writers_;
  std::vector<char> input_memory_;  // by memory: holds an input
  loops::Definers definers_;
  std::map<std::string, std::vector<StepId>> assertions_;  // ordered calls without results that take the symbol
};

}  // namespace cxxinductor::schedule

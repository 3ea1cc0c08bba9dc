// The context of lowering one node: the program under construction, the buffer of each value, and reads of values.
//
// Only values that are not views have buffers. Reading a view means reading its base at composed coordinates (locate),
// or, for externs and outputs, as a strided window on the base's buffer (strided_view). The result of a scatter
// in place is a view in this sense: all of its base, as the buffer is from then on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/index_algebra.h"
#include "ir/loops/loops.h"

namespace cxxinductor::lowering {

struct Location {
  graph::ValueId base;
  std::vector<sym::Expr> coords;
};

class Context {
 public:
  explicit Context(const graph::Graph& source);
  const graph::Graph& graph;
  loops::Program program;
  IdVector<graph::ValueId, loops::BufferId> buffers;  // invalid for views
  std::set<uint32_t> written_inputs;                  // positions of mutated inputs that hold their last version already

  const graph::Value& value(graph::ValueId id) const { return graph.values[id]; }
  // The value that is not a view, below id.
  graph::ValueId base_of(graph::ValueId id) const;
  // The value that id is the latest version of: below scatters in place alone.
  graph::ValueId unscattered(graph::ValueId id) const;
  // The version of its storage that id shows: below views alone.
  graph::ValueId version_of(graph::ValueId id) const;
  Location locate(graph::ValueId id, std::vector<sym::Expr> coords, const loops::Space& space) const;
  // The value as a window on its base's buffer; nothing where strides cannot express it.
  std::optional<loops::View> strided_view(graph::ValueId id) const;
  // As strided_view, but a view below that strides cannot express gets memory of its own, as it has in eager.
  loops::View eager_view(graph::ValueId id);
  bool same_strides(const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& a,
                    const std::vector<sym::Expr>& b) const;  // where they matter: not in dimensions of size 1
  // Strides of memory for the value: its own if they are demanded and no two elements overlap, or leave no gaps; else
  // contiguous.
  std::vector<sym::Expr> own_strides(const graph::Value& value) const;
  std::vector<sym::Expr> own_strides(const graph::Value& value, bool demanded) const;

  loops::BufferId add_buffer(const graph::Value& value, std::string name, std::vector<sym::Expr> strides, loops::Buffer::Role role, bool fixed);
  std::string fresh_name(const std::string& stem) const;
  // A new buffer with the elements of value id, written by a copy region.
  loops::BufferId materialise(graph::ValueId id, const std::string& name);
  loops::BufferId materialise(graph::ValueId id, const std::string& name, std::vector<sym::Expr> strides);
  loops::View whole(loops::BufferId buffer) const;
  // A rank-0 view of a larger tensor on the CPU, as the buffer of one number that kernels of a GPU take by value.
  loops::BufferId host_scalar(graph::ValueId id);
  // A region that copies value id into `target` at identity coordinates.
  void append_copy(graph::ValueId id, loops::BufferId target, const std::string& region_name);
  void append_region(loops::Region region);  // puts it into its canonical space first

 private:
  // What the view `id` is of a window on its operand; nothing where strides cannot express it.
  std::optional<loops::View> through_view(graph::ValueId id, loops::View window) const;

  std::map<graph::ValueId, loops::BufferId> host_scalars_;
  std::map<graph::ValueId, loops::BufferId> copied_;  // by eager_view
};

// One region under construction: variables i0, i1, ... over `sizes`.
class RegionWriter {
 public:
  RegionWriter(Context& context, std::string name, Device device, OriginId origin);
  loops::RegionBuilder& builder() { return builder_; }
  const loops::Space& space() const { return space_; }
  // Variables over sizes, their symbols as coordinates.
  std::vector<sym::Expr> vars(const std::vector<sym::Expr>& sizes);
  loops::StmtId load(graph::ValueId id, std::vector<sym::Expr> coords, loops::StmtId mask = {});
  loops::StmtId compute(loops::StmtId stmt);  // cast to its compute type
  void store(graph::ValueId id, std::vector<sym::Expr> coords, loops::StmtId stmt);
  // A load from a value whose buffer an earlier step wrote.
  void update(graph::ValueId id, std::vector<sym::Expr> coords, loops::StmtId stmt, loops::Store how);
  // low <= e < high as a bool statement, leaving out what is proven; invalid when all is.
  loops::StmtId range_mask(sym::Expr e, sym::Expr low, sym::Expr high);
  // An element of an index tensor as i64; negative ones count from the end of a dimension of that size if `wrap`.
  loops::StmtId wrapped_index(graph::ValueId index, std::vector<sym::Expr> coords, sym::Expr size, bool wrap);
  loops::StmtId both(loops::StmtId a, loops::StmtId b);  // either may be invalid
  void finish() { context_.append_region(std::move(region_)); }

 private:
  Context& context_;
  loops::Region region_;
  loops::RegionBuilder builder_;
  loops::Space space_;
};

// One file per family of nodes.
void lower_elementwise(Context& context, const graph::Node& node, const graph::Elementwise& kind);
void lower_reduce(Context& context, const graph::Node& node, const graph::Reduce& kind);
void lower_full(Context& context, const graph::Node& node);
void lower_iota(Context& context, const graph::Node& node, const graph::Iota& kind);
void lower_pad(Context& context, const graph::Node& node, const graph::Pad& kind);
void lower_cat(Context& context, const graph::Node& node, const graph::Cat& kind);
void lower_gather(Context& context, const graph::Node& node, const graph::Gather& kind);
void lower_scatter(Context& context, const graph::Node& node, const graph::Scatter& kind);
void lower_extern(Context& context, const graph::Node& node, const graph::Extern& kind);
void lower_signature(Context& context);  // outputs and mutations, after all nodes

// Mutations that are lowered among the nodes: an input whose last version is made before something that may raise is
// written by then, as it is in eager, unless something later needs the old one.
class EarlyMutations {
 public:
  explicit EarlyMutations(const graph::Graph& graph);
  void lower_after(Context& context, graph::NodeId node) const;

 private:
  std::map<graph::NodeId, std::vector<const graph::Mutation*>> after_;
};

}  // namespace cxxinductor::lowering

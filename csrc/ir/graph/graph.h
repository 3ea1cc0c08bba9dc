// IR 1, graph: SSA over tensors. What a model means, before anything is decided.
//
// A value has dtype, device, symbolic sizes and a layout; storage is not a property of values (the plan assigns it).
// Nodes stand in a topological order. Ops are monomorphic: promotion, broadcasting of operands and rounding are
// explicit (cast, expand) except that an elementwise operand may be an immediate or symbol, or a rank-0 value of the
// compute type. Text form: docs/ir.md; printing and parsing: text.h; invariants: verify.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "ir/call.h"
#include "ir/combine.h"
#include "ir/dtype.h"
#include "ir/origin.h"
#include "ir/reduction.h"
#include "ir/scalar.h"
#include "ir/scalar_op.h"
#include "support/typed_id.h"
#include "sym/expr.h"
#include "sym/simplify.h"

namespace cxxinductor::graph {

struct ValueTag;
struct NodeTag;
using ValueId = Id<ValueTag>;
using NodeId = Id<NodeTag>;

// Fixed: these strides are demanded or given (inputs, outputs, externs). Flexible: these strides are what eager would
// have, a preference that a layout pass may change.
struct Layout {
  enum class Kind : uint8_t { Flexible, Fixed };
  Kind kind = Kind::Flexible;
  std::vector<sym::Expr> strides;  // in elements, one per dimension; always present
};

struct Value {
  DType dtype = DType::F32;
  Device device;
  std::vector<sym::Expr> sizes;
  Layout layout;
  NodeId producer;            // invalid for graph inputs
  uint32_t result_index = 0;  // which result of the producer
  std::string name;           // unique, without "%"
};

// What a node reads: a tensor, an immediate in the compute type of the op, or a symbolic integer.
using Operand = std::variant<ValueId, Scalar, sym::Expr>;

// ---- Node kinds -------------------------------------------------------------------------------------------------

struct Elementwise {  // operands have the result's sizes, or rank 0, or are immediates
  ScalarOp op = ScalarOp::Identity;
};
struct Reduce {  // one tensor operand; dims sorted, non-negative; no dims means all
  Reduction reduction = Reduction::Sum;
  std::vector<int> dims;
  bool keepdim = false;
};
struct Full {};  // one Scalar or Expr operand, no tensors
struct Iota {    // rank 1: start + step * i
  sym::Expr start;
  sym::Expr step = 1;
};
struct Permute {
  std::vector<int> dims;  // result dim d is operand dim dims[d]
};
struct Reshape {};  // same element count in row-major order; result sizes from the result
struct Expand {};   // right-aligned broadcast: operand dims of size 1 (or missing) repeat
struct Slice {      // result[.., i, ..] = operand[.., start + step * i, ..]; start in range, step >= 1
  int dim = 0;
  sym::Expr start;
  sym::Expr step = 1;
};
struct Flip {
  std::vector<int> dims;
};
struct Pad {  // constant padding; low[d] elements before, result size decides after; negative low crops
  std::vector<sym::Expr> low;
  Scalar fill;
};
struct Cat {  // operands of equal sizes but for dim
  int dim = 0;
};
// General gather. operands: x, then index tensors (integer, equal sizes). Result coordinate r maps to source
// coordinates: source[d] >= 0: result dim source[d]; source[d] == -1 - k: the value of index k at result dims
// index_dims. index_select(x, 1, i): source = [0, -1, 2], index_dims = [1]; aten::gather(x, 1, i): source = [0, -1, 2],
// index_dims = [0, 1, 2].
struct Gather {
  std::vector<int> source;
  std::vector<int> index_dims;
  bool wrap = true;   // negative indices count from the end
  bool check = true;  // out of range raises; dropped where proven in range
};
// The mirror of Gather. operands: base, source (of the base's dtype), then index tensors (integer, equal sizes). The
// result is the base with the source's elements stored, or combined with the base's, at coordinates that follow from the
// source's coordinates s: target[d] >= 0: start[d] + step[d] * s[target[d]]; target[d] == -1 - k: the value of index k at
// source dims index_dims. Of several elements for one coordinate the one with the largest row-major number is stored; combining
// goes in that order (as on the CPU in eager; in any order elsewhere). slice_scatter(x, s,
// 0, 2): target = [0, 1], start = [2, 0]; aten::scatter_add(x, 1, i, s): target = [0, -1], index_dims = [0, 1]; x[:, i]
// = s: target = [0, -1], index_dims = [1].
struct Scatter {
  std::vector<int> target;
  std::vector<int> index_dims;
  std::vector<sym::Expr> start, step;  // one per dimension of the base; step >= 1; 0 and 1 for indexed dimensions
  Combine combine = Combine::Overwrite;
  bool wrap = true;   // negative indices count from the end
  bool check = true;  // out of range raises
  // No two source elements have one coordinate, or they are equal and overwrite. The importer states it; always true without
  // indices.
  bool unique_indices = false;
  // The result takes over the base's storage, whose old values no later node reads. Else it is a new tensor.
  bool inplace = false;
};
// A call into ATen (or any dispatcher op). Operands are the tensors and symbols that `args` refers to with operand references.
struct Extern : Call {
  bool ordered = false;  // side effects or random state: keeps its place among the ordered
  // Operands whose exact strides the callee needs as stated by the value's layout (default: all of them).
  bool exact_strides = true;
};

using NodeKind = std::variant<Elementwise, Reduce, Full, Iota, Permute, Reshape, Expand, Slice, Flip, Pad, Cat, Gather, Scatter, Extern>;

struct Node {
  NodeKind kind;
  std::vector<Operand> operands;
  std::vector<ValueId> results;
  OriginId origin;  // may be invalid

  template <class T>
  const T* as() const {
    return std::get_if<T>(&kind);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&kind);
  }
};

// ---- Signature --------------------------------------------------------------------------------------------------

struct Input {
  // A tensor (value valid), a symbol that the caller passes as an int (symbol set), or an object we pass through.
  enum class Kind : uint8_t { Tensor, Symbol, Opaque };
  Kind kind = Kind::Tensor;
  ValueId value;
  std::string symbol;
  std::string source;  // the user's name for it, for error messages
  // A tensor that the caller keeps no reference to while the graph runs (what a backward graph gets from its forward
  // graph): its memory is free after its last use.
  bool donated = false;
  // A tensor whose elements stay as they are from call to call, as far as the caller counts writes: what depends on
  // such inputs alone need not be computed in every call (passes/graph/split_const_graph.h).
  bool frozen = false;
};

struct Output {
  enum class Kind : uint8_t { Tensor, Symbol, None };
  Kind kind = Kind::Tensor;
  ValueId value;
  sym::Expr symbol;
  // The caller takes the tensor in whatever strides it comes (and asks for them): what is saved for a backward graph.
  bool flexible_strides = false;
};

// A version of an input that the graph mutates. The last one of an input ends in the input's own storage. Earlier ones stand
// before it, in the order of their making: what the input holds if the graph raises before the next one is made.
struct Mutation {
  uint32_t input;  // position among inputs
  ValueId value;
};

struct Graph {
  // Defined once: generated in every file that holds one, they can take more time to compile than all else in it.
  Graph();
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();
  std::string name = "graph";
  sym::Assumptions assumptions;  // ranges and divisors of the symbols
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Mutation> mutations;
  // Importers and passes hold references to what they read while they append.
  IdVector<ValueId, Value, std::deque<Value>> values;
  IdVector<NodeId, Node, std::deque<Node>> nodes;
  OriginTable origins;
  // Bytes that the same calls hold at most, run one by one (model/eager_memory.h, ir/graph/memory.h); empty: not measured.
  std::map<Device, int64_t> eager_peaks;

  const Value& value(ValueId id) const { return values[id]; }
};

// ---- Building ---------------------------------------------------------------------------------------------------

// Appends nodes, infers result types (infer.h) and names results "%0", "%1" ... unless told otherwise. Throws UserError
// where operands do not fit the node kind. Strides of new values are contiguous unless given.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }
  void set_origin(OriginId origin) { origin_ = origin; }

  ValueId input(std::string name, DType dtype, Device device, std::vector<sym::Expr> sizes, std::vector<sym::Expr> strides);
  void symbol_input(std::string symbol, sym::Interval range);

  ValueId elementwise(ScalarOp op, std::vector<Operand> operands);  // expands tensor operands to the broadcast size
  ValueId cast(ValueId x, DType to);                                // x itself when it has that dtype
  std::vector<ValueId> reduce(Reduction reduction, ValueId x, std::vector<int> dims, bool keepdim);
  ValueId full(Operand value, DType dtype, Device device, std::vector<sym::Expr> sizes);
  ValueId iota(sym::Expr start, sym::Expr step, sym::Expr size, DType dtype, Device device);
  ValueId permute(ValueId x, std::vector<int> dims);
  ValueId reshape(ValueId x, std::vector<sym::Expr> sizes);
  ValueId expand(ValueId x, std::vector<sym::Expr> sizes);
  ValueId slice(ValueId x, int dim, sym::Expr start, sym::Expr size, sym::Expr step);
  ValueId flip(ValueId x, std::vector<int> dims);
  ValueId pad(ValueId x, std::vector<sym::Expr> low, std::vector<sym::Expr> sizes, Scalar fill);
  ValueId cat(std::vector<ValueId> xs, int dim);
  ValueId gather(ValueId x, std::vector<ValueId> indices, Gather gather, std::vector<sym::Expr> sizes);
  // start and step may be left empty: 0 and 1.
  ValueId scatter(ValueId base, ValueId source, std::vector<ValueId> indices, Scatter scatter);
  // results: dtype, device, sizes and strides of each as the callee returns them.
  std::vector<ValueId> call_extern(Extern callee, std::vector<Operand> operands, std::vector<Value> results);

  void output(ValueId value, bool flexible_strides = false);
  void output_symbol(sym::Expr e);
  void output_none();
  void mutation(uint32_t input, ValueId value);
  // One result, taken as given but for an empty name, which becomes the next free number.
  ValueId append(NodeKind kind, std::vector<Operand> operands, Value result);

 private:
  ValueId add_value(Value value);
  std::string fresh_name();
  ValueId append_inferred(NodeKind kind, std::vector<Operand> operands, Value declared = {});

  Graph& graph_;
  OriginId origin_;
  std::unordered_set<std::string> names_;  // names of the first names_seen_ values
  size_t names_seen_ = 0;
  size_t next_name_ = 0;
};

std::vector<sym::Expr> contiguous_strides(const std::vector<sym::Expr>& sizes);
sym::Expr element_count(const std::vector<sym::Expr>& sizes);
bool is_last_version(const Graph& graph, const Mutation& mutation);
// The node may raise when it is reached: calls (ir/callees.h) and, on the CPU, checks of indices.
bool may_raise(const Graph& graph, const Node& node);
// Elements of the source may meet at one place of the base.
bool may_collide(const Scatter& scatter);
// The operand of its producer that the value shares its storage with.
std::optional<ValueId> shares_storage_with(const Graph& graph, ValueId id);
// The value whose storage holds `id`: through views, in-place scatters and results that externs say are aliases.
ValueId storage_of(const Graph& graph, ValueId id);
bool is_view(const NodeKind& kind);  // Permute, Reshape, Expand, Slice, Flip: index maps that move no data

}  // namespace cxxinductor::graph

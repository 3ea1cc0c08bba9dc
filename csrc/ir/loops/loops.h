// IR 2, loops: iteration spaces with straight-line scalar bodies over buffers.
//
// A Program is an ordered list of regions and extern calls over declared buffers. A region is a set of named variables
// with symbolic extents and an ordered list of SSA statements. A statement is conceptually an array over the variables
// in its `vars` set: an op varies over the union of its operands' variables, `reduce` removes variables, a store runs
// once for each point of its set. So softmax is ONE region over (i, j): loads over (i j), a max over j that varies over
// (i), an exp over (i j), a sum over j, a store over (i j).
//
// Accesses are *logical coordinates* of a buffer, one expression per dimension, over the region's variables and the
// graph's symbols (and `%n` symbols for statement n if the index comes from data). The plan combines them with strides.
// Statements compute in compute types; casts are explicit: eager's rounding is cast<bf16> then cast<f32>.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/call.h"
#include "ir/combine.h"
#include "ir/origin.h"
#include "ir/reduction.h"
#include "ir/scalar.h"
#include "ir/scalar_op.h"
#include "support/typed_id.h"
#include "sym/expr.h"
#include "sym/simplify.h"

namespace cxxinductor::loops {

struct BufferTag;
struct StmtTag;
struct VarTag;
using BufferId = Id<BufferTag>;  // into Program::buffers
using StmtId = Id<StmtTag>;      // into Region::body
using VarId = Id<VarTag>;        // into Region::vars, at most 32

class VarSet {
 public:
  VarSet() = default;
  static VarSet of(VarId v) { return VarSet(1u << v.index()); }
  static VarSet of(const std::vector<VarId>& vars) {
    VarSet set;
    for (VarId v : vars) set |= of(v);
    return set;
  }
  bool contains(VarId v) const { return (bits_ >> v.index()) & 1u; }
  bool empty() const { return bits_ == 0; }
  bool subset_of(VarSet other) const { return (bits_ & ~other.bits_) == 0; }
  VarSet operator|(VarSet o) const { return VarSet(bits_ | o.bits_); }
  VarSet operator&(VarSet o) const { return VarSet(bits_ & o.bits_); }
  VarSet operator-(VarSet o) const { return VarSet(bits_ & ~o.bits_); }
  VarSet& operator|=(VarSet o) { return *this = *this | o; }
  friend bool operator==(VarSet, VarSet) = default;
  int count() const { return __builtin_popcount(bits_); }
  uint32_t bits() const { return bits_; }

 private:
  explicit VarSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

// ---- Statements -------------------------------------------------------------------------------------------------

struct Load {
  BufferId buffer;
  std::vector<sym::Expr> coords;
  StmtId mask;   // bool statement, or invalid: always in range
  Scalar other;  // the value where the mask is false (nothing is read there)
};
struct Constant {
  Scalar value;
};
// The value of an integer expression over variables, symbols and `%n`, as i64.
struct Index {
  sym::Expr value;
};
struct Apply {
  ScalarOp op = ScalarOp::Identity;
  std::vector<StmtId> operands;  // result dtype of a Cast: Stmt::dtype
};
// Reduces `operand` over `over`; varies over operand's variables minus `over`. Result 0 is the statement itself; a
// further result (welford's m2) is read with Project. `position` of argmax is row-major over `over` in the order of
// Region::vars.
struct Reduce {
  Reduction reduction = Reduction::Sum;
  StmtId operand;
  VarSet over;
};
struct Project {
  StmtId of;  // a Reduce
  uint32_t result = 0;
};
struct Store {
  BufferId buffer;
  std::vector<sym::Expr> coords;
  StmtId value;
  StmtId mask = {};  // bool statement, or invalid
  // An update: elements that it does not store stay as earlier steps left them (the buffer counts as read), and those
  // that it stores are combined with what was there.
  bool update = false;
  Combine combine = Combine::Overwrite;  // other than Overwrite: an update
  // Present if two points of an update may write one element: their order, a row-major number over all variables of the
  // statement. The largest one is stored; combining goes in that order (in any order on GPUs).
  std::optional<sym::Expr> conflict_order = {};
};
// Raises (device-side) where 0 <= index < bound does not hold; `what` names the op and the bound for the message.
struct Check {
  StmtId index;
  sym::Expr bound;
  std::string what;
};

using StmtKind = std::variant<Load, Constant, Index, Apply, Reduce, Project, Store, Check>;

struct Stmt {
  StmtKind kind;
  DType dtype = DType::F32;  // of the value; for Store, of the buffer
  VarSet vars;               // the variables that it varies over
  OriginId origin;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&kind);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&kind);
  }
};

// ---- Regions ----------------------------------------------------------------------------------------------------

struct Var {
  std::string name;  // "i", "j", "i0"; the symbol of that name stands for it in expressions
  sym::Expr extent;
  // At most one variable of a region: one block executes its points one after the other, so that the region may have reductions
  // over it alone besides those over rows. Their results are only stored.
  bool serial = false;
};

struct Region {
  std::string name;  // "n3", "f0"
  Device device;
  IdVector<VarId, Var> vars;
  IdVector<StmtId, Stmt> body;  // operands precede their uses

  sym::Expr symbol(VarId v) const { return sym::Expr::symbol(vars[v].name); }
};

// ---- Programs ---------------------------------------------------------------------------------------------------

struct Buffer {
  enum class Role : uint8_t { Input, Output, Temporary };
  std::string name;  // unique, without "%"
  DType dtype = DType::F32;
  Device device;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;  // in elements
  Role role = Role::Temporary;
  bool fixed = false;  // the strides are demanded (inputs, outputs, what an extern returns or needs)
};

// A strided window on a buffer, as an extern sees it: sizes and strides in elements from an element offset.
struct View {
  BufferId buffer;
  DType dtype = DType::F32;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;
  sym::Expr offset;
};

struct ExternCall : Call {
  std::vector<std::variant<View, sym::Expr>> operands;  // what the operand references refer to
  std::vector<BufferId> results;
  bool ordered = false;
  OriginId origin;
};

using Step = std::variant<Region, ExternCall>;

struct ProgramInput {
  enum class Kind : uint8_t { Tensor, Symbol, Opaque };
  Kind kind = Kind::Tensor;
  BufferId buffer;
  std::string symbol;
  std::string source;
  bool donated = false;  // as in graph::Input
};

struct ProgramOutput {
  enum class Kind : uint8_t { Tensor, View, Symbol, None };
  Kind kind = Kind::Tensor;
  BufferId buffer;  // Tensor: the buffer itself (an input is returned as that input)
  View view;        // View: an alias of a buffer
  sym::Expr symbol;
};

struct Program {
  // Defined once: generated in every file that holds one, they can take more time to compile than all else in it.
  Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  ~Program();
  std::string name;
  sym::Assumptions assumptions;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  IdVector<BufferId, Buffer> buffers;
  std::vector<Step> steps;  // in a legal order
  OriginTable origins;
  std::map<Device, int64_t> eager_peaks;  // as in graph::Graph
};

// ---- Reading a region -------------------------------------------------------------------------------------------

std::vector<StmtId> operands(const Stmt& stmt);  // SSA operands, `%n` symbols of coordinates included, in order
// For each statement, whether `value` needs it; value included.
std::vector<bool> backward_slice(const Region& region, StmtId value);
VarSet vars_of(const Region& region, sym::Expr e);  // variables that an expression mentions, through `%n` too
VarSet all_vars(const Region& region);
VarSet reduced_vars(const Region& region);          // union of all Reduce::over
VarId serial_var(const Region& region);             // invalid: there is none
sym::Expr statement_symbol(StmtId stmt);            // the symbol "%n" (spelled v_n inside sym)
StmtId statement_of_symbol(std::string_view name);  // invalid if the name is not a statement symbol
bool depends_on_data(sym::Expr e);                  // mentions a statement's value
struct Access {
  StmtId stmt;
  BufferId buffer;
  const std::vector<sym::Expr>* coords;
  bool store;
};
std::vector<Access> accesses(const Region& region);

// Appends statements with dtype and vars filled in; folds nothing.
class RegionBuilder {
 public:
  explicit RegionBuilder(Region& region) : region_(region) {}
  Region& region() { return region_; }
  void set_origin(OriginId origin) { origin_ = origin; }
  VarId var(std::string name, sym::Expr extent);
  StmtId load(const Program& program, BufferId buffer, std::vector<sym::Expr> coords, StmtId mask = {}, Scalar other = {});
  StmtId constant(Scalar value);
  StmtId index(sym::Expr value);
  StmtId apply(ScalarOp op, std::vector<StmtId> operands, DType cast_to = DType::F32);
  StmtId cast(StmtId value, DType to);  // value itself when it has that dtype
  StmtId reduce(Reduction reduction, StmtId operand, VarSet over);
  StmtId project(StmtId of, uint32_t result);
  StmtId store(const Program& program, BufferId buffer, std::vector<sym::Expr> coords, StmtId value, StmtId mask = {});
  StmtId update(const Program& program, Store store);  // store.update is set
  StmtId check(StmtId index, sym::Expr bound, std::string what);
  StmtId append(Stmt stmt);

 private:
  Region& region_;
  OriginId origin_;
};

}  // namespace cxxinductor::loops

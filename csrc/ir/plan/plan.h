// IR 3, plan: all that the scheduler decided. Emitters and the runtime decide nothing: they read this.
//
// A Plan is a list of steps over buffers and *unique* kernels (equal kernels of different layers are one kernel,
// launched with different buffers). Inside a kernel, loops::BufferId is the position of a parameter, not a buffer of
// the plan. A plan is plain data and serialises to text.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/plan/mapping.h"
#include "ir/target.h"

namespace cxxinductor::plan {

struct BufferTag;
struct KernelTag;
using BufferId = Id<BufferTag>;
using KernelId = Id<KernelTag>;
using loops::StmtId;
using loops::VarSet;

// ---- Kernels ----------------------------------------------------------------------------------------------------

// Words used below, beside those of mapping.h.
//   lanes            a statement has one value for each element of a group exactly if its vars hold the vector
//                    variable; otherwise one value per group.
//   once-only        a Store or Check whose vars lack some variables that its segment runs over (RowLoop: space and row;
//                    PerRow: space) runs only where those variables are 0.
// Both variants of a kernel (Variant::vectorized) have the same mapping and grid; without it Vector accesses are made
// element by element, since addresses may be misaligned.

// What a load or store looks like along the vector variable. Masked accesses are Vector only if the mask has one value
// a group.
enum class AccessKind : uint8_t {
  Vector,     // coefficient 1: wide accesses (when the variant is vectorised); a group may need several of 16 bytes
  Broadcast,  // does not vary along it: one scalar access for the whole group
  Strided,    // one scalar access an element
  Staged,     // read through shared memory (CPU: the stack): Tiles, and factors of Matmul
};

// Where a value is stored.
enum class MemorySpace : uint8_t {
  Local,       // consumed in the segment (and vector lane) that computes it
  Row,         // one value per row, in a register of every thread of the row: results of reduce and of PerRow statements
  Persistent,  // an array over the thread's items in the dtype of the statement (narrow types packed), across row loops;
               // reductions over the serial variable too
  Shared,      // reductions over the serial variable, where a row has the whole block: states in its shared memory, each element's
               // touched by the one thread that takes its group (serial_rows.h)
};

struct Segment {
  // PerRow: statements that do not vary over `row`, executed once per row (Columns: column) by every thread that needs
  // them; stores and checks by one thread of the row.
  // RowLoop: statements executed for each point of `row`; the reduces among them are complete, and known to every thread
  // of the row, when the row loop ends. A Reduce is always in a row loop, its Projects in later segments.
  // A Pointwise or Tiles kernel has exactly one segment, a RowLoop over the points of space. Stores, checks, reduces and
  // Persistent statements are listed once; other statements again in each row loop that needs them. A segment's list is in
  // body order; every operand is listed earlier in the segment, or in an earlier one with a memory space other than Local.
  // Epilogue, last and only with a serial variable: stores of the reductions over it, for each point of `row`, after all of its
  // points. The other segments run for each of its points.
  enum class Kind : uint8_t { PerRow, RowLoop, Epilogue };
  Kind kind = Kind::RowLoop;
  std::vector<StmtId> stmts;
  // Row loops of persistent rows and of Tiles, on GPUs: groups of a thread whose loads (early_loads.h) are under way before it computes the
  // first of them; of Tiles all or none. 0: each group's loads are made where they are used.
  int loads_ahead = 0;
};

// Updates of a state before it is put aside. Sums with up to twice as many are left in one state.
inline constexpr int updates_of_block = 32;

struct Param {
  DType dtype = DType::F32;
  bool read = false;
  bool written = false;
  bool aligned = false;   // the vectorised variant needs a 16-byte aligned address here
  bool by_value = false;  // CUDA: a scalar that lies in the host's memory when the kernel is launched; read only
};

// Arguments of a launch (buffers, symbols, the error record) that take no allocation. Kernels may have more.
inline constexpr size_t usual_arguments = 96;

struct Kernel {
  // Defined once: generated in every file that holds one, they can take more time to compile than all else in it.
  Kernel();
  Kernel(const Kernel&);
  Kernel(Kernel&&) noexcept;
  Kernel& operator=(const Kernel&);
  Kernel& operator=(Kernel&&) noexcept;
  ~Kernel();
  std::string name;  // C identifier, unique in the plan: "k3_layer_norm"
  Device device;
  // BufferId = position in params. Variables are in the order space, row and named i0.. and r0..; adjacent ones are
  // merged where that is possible. Loads and Stores have one coordinate, the element offset (as in `offsets`). No dead
  // statements.
  loops::Region region;
  std::vector<Param> params;         // buffer parameters, in argument order
  std::vector<std::string> symbols;  // then these, as int64
  sym::Assumptions assumptions;      // ranges of symbols and of the region's variables
  // Load, Store: element offset from the parameter's base over variables, symbols and statement symbols.
  IdVector<StmtId, sym::Expr> offsets;
  IdVector<StmtId, AccessKind> access;  // Load, Store
  IdVector<StmtId, MemorySpace> memory_spaces;
  std::vector<Segment> segments;
  // Reductions whose states the loops over rows put aside after every updates_of_block updates, ascending. Not of rows in registers: each
  // of their threads updates a state a few times.
  std::vector<StmtId> in_blocks;
  Mapping mapping;
  // Largest element offset + 1 of any access and largest count of points: 32-bit indices are right while it is < 2^31.
  // (Index statements are i64 values whatever the variant.)
  sym::Expr index_limit;
  bool always_index32 = false;  // the assumptions prove it
  bool order_changed = false;   // holds a reduction whose order differs from eager's: not bit-equal
  // Launches that one call of a CUDA kernel runs at most; their arguments come as a table (grouped_launch.h). 1: it is
  // launched alone, and its arguments are parameters.
  int max_grouped = 1;
  int64_t bytes_read_hint = 0, bytes_written_hint = 0;
};

// A compiled form of a kernel.
struct Variant {
  bool vectorized = true;
  bool index64 = false;
  friend bool operator==(Variant, Variant) = default;
};

// ---- Buffers and steps ------------------------------------------------------------------------------------------

struct Buffer {
  enum class Kind : uint8_t {
    Input,        // the caller's
    Arena,        // bytes [arena_offset, arena_offset + bytes) of one of the call's arenas, on its device
    Standalone,   // allocated by an Allocate step or taken over by a Reuse step, handed out or freed
    ExternOwned,  // allocated by an extern call
    // Elements of another buffer, its base: this one's strides from an offset in the base's memory. Steps write and read
    // parts as any buffer; a base of which parts are declared consists of them, and each of its elements is in one.
    Slice,
  };
  std::string name;
  DType dtype = DType::F32;
  Device device;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;
  sym::Expr bytes;
  Kind kind = Kind::Arena;
  uint32_t arena = 0;  // position in Plan::arenas
  sym::Expr arena_offset;
  BufferId base;          // of a Slice: an Arena or Standalone buffer, or a Slice of one
  sym::Expr base_offset;  // in elements
};

// Memory of one device that Arena buffers share: allocated before the first step that uses one of them, freed when the
// call ends.
struct Arena {
  Device device;
  sym::Expr bytes;
};

struct Allocate {
  BufferId buffer;  // Standalone
};
struct Free {
  BufferId buffer;  // Standalone or ExternOwned, after the last use
};
// `to` takes over the memory of `from` with what is in it: the next launch writes it in place. Nothing uses `from` from here
// on. Both are of one dtype, device and count of bytes. Two arena buffers have the same place; otherwise `to` is Standalone and
// `from` is Standalone, ExternOwned or a donated Input. If the memory of an ExternOwned or an Input has another owner after all,
// `to` is allocated and gets a copy.
struct Reuse {
  BufferId from, to;
};
// A faster kernel for a launch while the plan's symbols have the properties of `when`, in addition to those that they always
// have. Its parameters and symbols are those of the launch's own kernel, which is right for all values and runs until the
// specialization is compiled.
struct Specialization {
  KernelId kernel;
  sym::Expr grid_x = 1;
  sym::Assumptions when;
};
struct Launch {
  KernelId kernel;
  std::vector<BufferId> args;
  std::vector<sym::Expr> symbol_args;
  sym::Expr grid_x = 1, grid_y = 1;             // blocks, or (CPU) units that threads divide, see mapping.h; 0: nothing to do
  std::vector<Specialization> specializations;  // the first whose properties hold is the best
  OriginId origin;
};
// Launches of one kernel with Kernel::max_grouped > 1 that do not depend on one another: they run at once, as one launch (or
// as few, where they are more than the kernel takes).
struct GroupedLaunch {
  std::vector<Launch> launches;
};
struct View {
  BufferId buffer;
  DType dtype = DType::F32;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;
  sym::Expr offset;
};
struct CallExtern : Call {
  std::vector<std::variant<View, sym::Expr>> operands;
  std::vector<BufferId> results;
  OriginId origin;
};
// Defines a symbol as the first element of a view, an integer or a bool. The host waits for it.
struct ReadScalar {
  std::string symbol;
  View from;
  OriginId origin;
};
// Raises with the message unless the condition is other than 0.
struct Assert {
  sym::Expr condition;
  std::string message;
  OriginId origin;
};
using Step = std::variant<Allocate, Free, Reuse, Launch, GroupedLaunch, CallExtern, ReadScalar, Assert>;

// The launches of a step: one, those of a grouped launch, or none.
inline std::span<const Launch> launches_of(const Step& step) {
  if (const auto* launch = std::get_if<Launch>(&step)) return {launch, 1};
  if (const auto* batch = std::get_if<GroupedLaunch>(&step)) return batch->launches;
  return {};
}

// The launch with a specialization's kernel in place of its own.
inline Launch specialized(Launch launch, const Specialization& special) {
  launch.kernel = special.kernel;
  launch.grid_x = special.grid_x;
  launch.specializations.clear();
  return launch;
}

struct Input {
  enum class Kind : uint8_t { Tensor, Symbol, Opaque };
  Kind kind = Kind::Tensor;
  BufferId buffer;
  std::string symbol;
  std::string source;
  bool donated = false;  // as in graph::Input
};
struct Output {
  enum class Kind : uint8_t { Tensor, View, Symbol, None };
  Kind kind = Kind::Tensor;
  BufferId buffer;
  View view;
  sym::Expr symbol;
};
// Where the value of a symbol comes from at run time, if from an input. Steps define the others.
struct SymbolSource {
  std::string symbol;
  uint32_t input = 0;
  int dim = -1;  // -1: the input itself is the int; d: sizes[d]; rank + d: strides[d]
};

// Why two regions were not fused, for explain() and dumps: the consumer reads what the producer stores. In a plan they are
// named as the kernels that run them; a concatenation that stayed a copy may name a call or a buffer instead.
struct MissedFusion {
  std::string producer, consumer, reason;
  int64_t bytes = 0;  // of the buffers between them, at size hints
};

struct Plan {
  Plan();
  Plan(const Plan&);
  Plan(Plan&&) noexcept;
  Plan& operator=(const Plan&);
  Plan& operator=(Plan&&) noexcept;
  ~Plan();
  std::string name;
  std::string target;  // Target::name, of the first device
  // Of the buffers and kernels, each once. The first is the main device, which the text form leaves out where it can.
  std::vector<Device> devices{Device()};
  sym::Assumptions assumptions;
  std::vector<SymbolSource> symbols;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  IdVector<BufferId, Buffer> buffers;
  IdVector<KernelId, Kernel> kernels;
  std::vector<Step> steps;
  std::vector<Arena> arenas;
  // By device: what the same calls hold at most when they run one by one, measured as in memory.h; absent: not known.
  std::map<Device, int64_t> eager_peaks;
  OriginTable origins;
  std::vector<MissedFusion> missed_fusions;  // not part of the text form
};

// By kernel: false for those that are specializations of others only, needed when sizes ask for them.
inline std::vector<bool> base_kernels(const Plan& plan) {
  std::vector<bool> own(plan.kernels.size(), true);
  for (const Step& step : plan.steps)
    for (const Launch& launch : launches_of(step))
      for (const Specialization& special : launch.specializations) own[special.kernel.index()] = false;
  for (const Step& step : plan.steps)
    for (const Launch& launch : launches_of(step)) own[launch.kernel.index()] = true;
  return own;
}

// Calls visit with each buffer that the buffer lies in: the base of a slice, that one's base, and so on.
template <class Visit>
void for_each_base(const Plan& plan, BufferId id, Visit visit) {
  // A plan that is not verified yet may have circles.
  for (size_t depth = 0; depth < plan.buffers.size(); ++depth) {
    if (!plan.buffers.contains(id) || plan.buffers[id].kind != Buffer::Kind::Slice) return;
    id = plan.buffers[id].base;
    if (!plan.buffers.contains(id)) return;
    visit(id);
  }
}
// Whether one of them is a slice of the other, or both are one.
inline bool share_elements(const Plan& plan, BufferId a, BufferId b) {
  bool found = a == b;
  for_each_base(plan, a, [&](BufferId base) { found |= base == b; });
  for_each_base(plan, b, [&](BufferId base) { found |= base == a; });
  return found;
}

}  // namespace cxxinductor::plan

// IR 3, plan: all that the scheduler decided. Emitters and the runtime decide nothing: they read this.
//
// A Plan is a list of steps over buffers and *unique* kernels (equal kernels of different layers are one kernel, launched
// with different buffers). Inside a kernel, loops::BufferId is the position of a parameter, not a buffer of the plan.
// A plan is plain data and serialises to text: the disk cache and packages store it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/loops/loops.h"
#include "ir/target.h"

namespace cxxinductor::plan {

struct BufferTag;
struct KernelTag;
using BufferId = Id<BufferTag>;
using KernelId = Id<KernelTag>;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;

// ---- Kernels ----------------------------------------------------------------------------------------------------

enum class MappingKind : uint8_t {
  // Every point of `space` once. Thread t of the grid takes vector_width consecutive points of the innermost variable,
  // `unroll` times at a stride of the block. No reductions.
  Pointwise,
  // A row is a point of `space`; its elements are the points of `row` (row-major). threads_per_row threads walk a row,
  // rows_per_block rows share a block. resident: values needed by later sweeps stay in registers (the row length is
  // constant); otherwise every sweep reloads and recomputes.
  Rows,
  // The innermost variable of `space` is the contiguous one in memory and `row` lies across it: a block owns
  // columns_per_block neighbouring columns, threads_per_row threads of a block share each column.
  Columns,
  // Pointwise over a transposing access: 2-D tiles of tile x tile through shared memory over the two variables
  // space[last] (contiguous in stores) and tile_var (contiguous in the staged loads).
  Tiles,
};

struct Mapping {
  MappingKind kind = MappingKind::Pointwise;
  std::vector<VarId> space;  // outermost first; every variable of the region is in space or in row
  std::vector<VarId> row;    // outermost first; empty for Pointwise and Tiles
  int vector_width = 1;      // elements a vector access, along the innermost variable of row (Rows) or space (others)
  int unroll = 1;            // Pointwise: vectors a thread; Rows looped: vectors in flight
  int block_threads = 256;   // CUDA; Rows: threads_per_row * rows_per_block
  int threads_per_row = 1;   // power of two
  int rows_per_block = 1;
  int items_per_thread = 1;  // Rows resident: vectors a thread holds
  bool resident = false;
  int columns_per_block = 32;
  VarId tile_var;            // Tiles
  int tile = 32;
};

// What a load or store looks like along the vector variable.
enum class AccessKind : uint8_t {
  Vector,     // coefficient 1: one wide access (when the variant is vectorised)
  Broadcast,  // does not vary along it: one scalar access for the whole vector
  Strided,    // one scalar access an element
  Staged,     // Tiles: read through the shared tile
};

// Where a value lives.
enum class Home : uint8_t {
  Local,     // consumed in the segment (and vector lane) that computes it
  Row,       // one value a row, in a register of every thread of the row: results of reduce and of Once statements
  Resident,  // a register array over the thread's items, across sweeps
};

struct Segment {
  // Once: statements that vary over `space` only, executed once a row (stores by one thread of the row).
  // Sweep: statements executed for each point of `row`; the reduces among them are complete when the sweep ends.
  // A Pointwise, Tiles kernel has one Sweep. A statement may be listed in several sweeps (recomputed) when not resident.
  enum class Kind : uint8_t { Once, Sweep };
  Kind kind = Kind::Sweep;
  std::vector<StmtId> stmts;
};

struct Param {
  DType dtype = DType::F32;
  bool read = false;
  bool written = false;
  bool aligned = false;  // the vectorised variant needs a 16-byte (CUDA) or vector-aligned address here
};

struct Kernel {
  std::string name;  // C identifier, unique in the plan: "k3_layer_norm"
  Device device;
  loops::Region region;             // BufferId = position in params
  std::vector<Param> params;        // buffer parameters, in argument order
  std::vector<std::string> symbols;  // then these, as int64
  sym::Facts facts;                 // ranges of symbols and of the region's variables
  IdVector<StmtId, sym::Expr> offsets;     // Load, Store: element offset from the parameter's base
  IdVector<StmtId, AccessKind> access;     // Load, Store
  IdVector<StmtId, Home> homes;
  std::vector<Segment> segments;
  Mapping mapping;
  sym::Expr index_limit;     // largest element offset + 1 of any access: 32-bit indices are right while it is < 2^31
  bool always_index32 = false;  // the facts prove it
  bool order_changed = false;   // holds a reduction whose order differs from eager's: not bit-equal
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
    Arena,        // bytes [arena_offset, arena_offset + bytes) of the call's arena on its device
    Own,          // allocated by an Allocate step, handed out or freed
    ExternOwned,  // allocated by an extern call
  };
  std::string name;
  DType dtype = DType::F32;
  Device device;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;
  sym::Expr bytes;
  Kind kind = Kind::Arena;
  sym::Expr arena_offset;
};

struct Allocate {
  BufferId buffer;  // Own
};
struct Free {
  BufferId buffer;  // Own or ExternOwned, after the last use
};
struct Launch {
  KernelId kernel;
  std::vector<BufferId> args;
  std::vector<sym::Expr> symbol_args;
  sym::Expr grid_x = 1, grid_y = 1;  // blocks (CUDA); CPU: grid_x is the number of units that threads divide
  OriginId origin;
};
struct View {
  BufferId buffer;
  DType dtype = DType::F32;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;
  sym::Expr offset;
};
struct CallExtern {
  std::string callee;
  std::string overload;
  std::vector<Arg> args;
  std::vector<std::pair<std::string, Arg>> kwargs;
  std::vector<std::variant<View, sym::Expr>> operands;
  std::vector<BufferId> results;
  std::vector<int> alias_of;
  std::vector<uint32_t> mutated_operands;
  bool planned_out = false;
  OriginId origin;
};
using Step = std::variant<Allocate, Free, Launch, CallExtern>;

struct Input {
  enum class Kind : uint8_t { Tensor, Symbol, Opaque };
  Kind kind = Kind::Tensor;
  BufferId buffer;
  std::string symbol;
  std::string source;
};
struct Output {
  enum class Kind : uint8_t { Tensor, View, Symbol, None };
  Kind kind = Kind::Tensor;
  BufferId buffer;
  View view;
  sym::Expr symbol;
};
// Where the value of a symbol comes from at run time.
struct SymbolSource {
  std::string symbol;
  uint32_t input = 0;
  int dim = -1;  // -1: the input itself is the int; d: sizes[d]; rank + d: strides[d]
};

// Why two regions were not fused, for explain() and dumps.
struct Refusal {
  std::string producer, consumer, reason;
};

struct Plan {
  std::string name;
  std::string target;  // Target::name
  sym::Facts facts;
  std::vector<SymbolSource> symbols;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  IdVector<BufferId, Buffer> buffers;
  IdVector<KernelId, Kernel> kernels;
  std::vector<Step> steps;
  Device arena_device;
  sym::Expr arena_bytes;
  OriginTable origins;
  std::vector<Refusal> refusals;  // not part of the text form
};

}  // namespace cxxinductor::plan

// One kernel's text for CUDA: the threads of its mapping around statements that are emitted once. Internal to
// codegen/cuda.
//
// Names in the text: x_<variable>, a_<symbol> (the argument) and s_<symbol> (in the variant's index width),
// p<parameter>, v<statement>; g<statement> is a group in memory's form (a wide load or store), w<statement> a value
// kept across row loops, q<statement> the operands of a reduction in one group, r<statement> its state,
// a<statement> its accumulator (columns), s<statement> its states in shared memory, b<statement> its blocks' total,
// d<statement> a row's value as a divisor, l<statement> a value in all lanes of a group, n<statement> a load of the next row,
// t<statement> a tile in shared memory, m<statement> a thread's squares of it, z<statement> random words of four lanes. What a
// template declares itself starts with cxxi_.
//
// A group of `width_` lanes runs as: statements with one value a group and wide loads; a loop over the lanes; then wide
// stores and updates of reductions.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/reduction_state.h"
#include "ir/plan/plan.h"
#include "ir/plan/tile_layout.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

std::string_view cuda_type(DType dtype);  // "cxxi_bf16": as in memory. Throws Unsupported for opaque dtypes.
std::string cuda_literal(const Scalar& value);
// The row's spelling on operands of dtype, with these texts in its holes.
std::string cuda_apply(const ScalarOpInfo& op, DType dtype, const std::vector<std::string>& operands);

class CudaKernelEmitter {
 public:
  CudaKernelEmitter(const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins, TextWriter& out);
  void emit();
  static bool has_checks(const plan::Kernel& kernel);

 private:
  using VarId = plan::VarId;
  using StmtId = plan::StmtId;
  using Stmt = loops::Stmt;

  // What surrounds the statements that are being emitted.
  struct Body {
    bool lanes = false;        // groups of width_ lanes
    std::string count;         // lanes of the group that exist; empty: all of them
    std::string side_effects;  // who may store and check; empty: every thread
    std::string slot;          // entry of the arrays of loaded groups: "[u]"; empty: they are no arrays
    std::string item;          // entry of the Persistent arrays: "[k]"
    std::string position;      // of the group's first element in the row, for reductions
    loops::VarSet running;     // variables that the segment runs over
  };

  // Mappings (kernel_loops.cpp, kernel_rows.cpp, kernel_serial_rows.cpp, kernel_columns.cpp,
  // kernel_tiles.cpp, kernel_matmul.cpp).
  std::vector<std::string> parameters() const;
  std::string launch_bounds() const;
  void emit_signature();
  void emit_uniform_loads();
  void declare_symbols();  // and parameters by value
  void emit_grouped_signature();
  void emit_grouped_arguments();
  void emit_pointwise();
  void emit_tiles();
  std::vector<StmtId> declare_tiles(const plan::Segment& segment);  // loads that pass through them
  void emit_tile_origin();
  void emit_tile(const std::vector<StmtId>& staged, const std::vector<StmtId>& early, bool edges);
  void emit_tile_loads(const std::vector<StmtId>& staged, bool edges);
  void emit_tile_stores(const std::vector<StmtId>& staged);
  void open_tile_groups(bool edges);
  plan::TileLayout tile_layout(StmtId id) const;
  std::string tile_group(StmtId id) const;  // type of the tile's entries
  std::string staged_element(StmtId id) const;
  int tile_turns() const { return groups_of_thread(kernel_.mapping); }
  void emit_rows();
  void emit_row_segments();
  void emit_serial_rows();
  void declare_sums();
  void declare_shared_sums();
  std::vector<StmtId> shared_sums(const std::vector<StmtId>& stmts) const;  // that the statements update or read
  void emit_serial_loads(const std::vector<StmtId>& loads, char prefix);
  void emit_serial_epilogue(const plan::Segment& segment);
  void emit_row_start();
  int threads_per_row() const;   // of rows and columns
  int items_per_thread() const;  // of persistent rows
  sym::Expr groups_of_row() const;
  bool shares_are_equal(const loops::Reduce& reduce) const;
  void declare_persistent_values();
  void emit_row_loop(const plan::Segment& segment);
  void emit_persistent_items(const plan::Segment& segment);
  void emit_looped_items(const plan::Segment& segment, const std::vector<StmtId>& reduces);
  void emit_item(const plan::Segment& segment, const std::vector<StmtId>& early, bool loading, const Body& body);
  void block_reduce(const std::vector<StmtId>& reduces);
  std::vector<StmtId> summed_in_blocks(const std::vector<StmtId>& reduces) const;
  void declare_blocks(const std::vector<StmtId>& reduces, bool columns);
  // states: "r", or "a" for accumulators.
  void put_blocks_aside(const std::vector<StmtId>& reduces, std::string_view states);
  void emit_columns();
  void emit_column_segment(const plan::Segment& segment);
  void emit_points(const plan::Segment& segment);
  void emit_matmul();
  std::string factor(StmtId value, VarId across, bool along_k);
  void emit_computed_group(StmtId value, VarId along);
  void emit_epilogue(StmtId kept);
  // The text that `emit` makes with an emitter of its own, whose groups are of `width` and along `vector_var`.
  template <class Emit>
  std::string text_of(VarId vector_var, int width, Emit emit) const;
  // Declares x_ of `vars` (row-major) from a number; the last one is multiplied by `width`.
  void decode(std::string_view number, const std::vector<VarId>& vars, int width);
  sym::Expr group_count(const std::vector<VarId>& vars, int width) const;
  std::string count_text(const std::vector<VarId>& vars, int width) const;
  bool whole_groups() const { return !kernel_.mapping.vector_tail || width_ == 1; }

  // Statements (kernel_statements.cpp).
  void emit_body(const std::vector<StmtId>& stmts, const Body& body);
  void emit_ahead_of_lanes(const std::vector<StmtId>& stmts, const Body& body);
  void emit_lanes(const std::vector<StmtId>& stmts, const Body& body);
  void emit_lane_loop(const std::vector<StmtId>& stretch, const std::vector<StmtId>& all,
                      const std::vector<StmtId>& known, const std::vector<StmtId>& wanted, StmtId division,
                      const Body& body);
  void emit_after_lanes(const std::vector<StmtId>& stmts, const Body& body);
  void emit_statement(StmtId id, const Body& body);
  void emit_load(StmtId id, const loops::Load& load, const Body& body);
  void emit_store(StmtId id, const loops::Store& store, const Body& body);
  void emit_check(StmtId id, const loops::Check& check, const Body& body);
  void emit_reduce(StmtId id, const loops::Reduce& reduce, const Body& body);
  void emit_early_loads(const std::vector<StmtId>& loads, const Body& body);
  void bring_values(const std::vector<StmtId>& stmts, const Body& body, bool of_lanes);
  void assign(StmtId id, const std::string& value);
  void keep(StmtId id, const Body& body);
  void keep_lanes(StmtId id, const Body& body);
  std::string applied(StmtId id, const loops::Apply& apply) const;
  StmtId rounded_value(StmtId id) const;
  void declare_divisors(const plan::Segment& segment);
  void mark_origin(const Stmt& s);
  void unmark_origin();

  DType reduced_dtype(const loops::Reduce& reduce) const;
  std::string reduced_value(const loops::Reduce& reduce) const;
  std::string wide_load(StmtId id, const loops::Load& load, const Body& body) const;
  std::string scalar_load(StmtId id, const loops::Load& load, const Body& body, bool lane) const;
  // Conditions under which an access may touch memory, joined by &&; empty: always.
  std::string range_condition(sym::Expr offset) const;
  std::string lane_condition(const Body& body) const;
  std::string once_condition(loops::VarSet vars, const Body& body) const;
  std::string origin_comment(const Stmt& s) const;

  const Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool has_lanes(const Stmt& s) const { return width_ > 1 && vector_var_.valid() && s.vars.contains(vector_var_); }
  bool is_wide(StmtId id) const { return has_lanes(stmt(id)) && kernel_.access[id] == plan::AccessKind::Vector; }
  bool is_staged(StmtId id) const { return staged_.count(id.index()) != 0; }
  bool persistent(StmtId id) const { return kernel_.memory_spaces[id] == plan::MemorySpace::Persistent; }
  bool shared(StmtId id) const { return kernel_.memory_spaces[id] == plan::MemorySpace::Shared; }
  bool is_serial() const { return kernel_.mapping.as<plan::SerialRows>() != nullptr; }
  // A reduction over the serial variable: a state for each element of the thread's items.
  bool is_across(StmtId id) const {
    const auto* reduce = stmt(id).as<loops::Reduce>();
    return reduce && is_serial() && reduce->over.contains(serial_variable(kernel_.mapping));
  }
  std::string variable(VarId v) const;
  std::string extent(VarId v) const;
  std::string integer(int64_t value) const;
  // C text of e in the variant's index width; lane: inside the loop over lanes.
  std::string expression(sym::Expr e, bool lane) const;
  std::string wide_expression(sym::Expr e, bool lane) const;
  std::string address(StmtId id, bool lane) const;
  std::string storage(StmtId id) const;  // type of the array entry that holds a value of the statement
  bool proven_multiple(sym::Expr e, int64_t divisor) const;
  void open(std::string_view text);
  void close(std::string_view text = "}");

  const plan::Kernel& kernel_;
  plan::Variant variant_;
  const OriginTable& origins_;
  TextWriter& out_;
  VarId vector_var_;
  int width_ = 1;
  bool marked_ = false;       // a #line is in force
  bool columns_ = false;      // values that do not vary over the row are arrays over the lanes
  StmtId grouped_;            // a value of an earlier segment that is there as a group
  bool dead_rows_ = false;    // rows (Columns: columns) past the end have threads
  std::set<uint32_t> made_;   // loads made once a kernel, or ahead of a walk's row, under their own names
  std::set<uint32_t> ahead_;  // persistent loads that were made before the walk, or while the row before was computed
  std::string block_ = "blockIdx.x";  // number of the block among those of its launch
  std::set<uint32_t> early_;          // loads of the current segment that were made ahead of it
  std::set<uint32_t> staged_;         // loads that are read from a shared tile
  std::set<uint32_t> here_;           // statements of the current segment
  std::set<uint32_t> kept_;           // lane values of Columns that have an array
  std::set<uint32_t> divisors_;       // row values that have a cxxi_divisor
};

}  // namespace cxxinductor::codegen

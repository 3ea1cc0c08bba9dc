// One kernel's text for the CPU: the loops of its mapping around statements that are emitted once, as a generic lambda
// over the number of lanes, and instantiated for vectors and for the scalar tail. Internal to codegen/cpu.
//
// Names in the text: x_<variable>, s_<symbol>, p<parameter>, v<statement>; w<statement> is the array of a Persistent
// value, of a Row value of a strip or of a Staged load, r<statement> the state of a reduction.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cpu/emit.h"
#include "ir/plan/plan.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

// "cxxi::bf16": the tag that kernels_templates/cpu/vector.h knows a dtype by. Throws Unsupported for opaque dtypes.
std::string cpu_dtype_tag(DType dtype);
// The C type of a compute type.
std::string_view cpu_compute_type(DType dtype);
// A one-lane value in C++, exact to the bit.
std::string cpu_literal(const Scalar& value);
// An op on values of dtype `from` with `lanes` lanes ("L", "1").
std::string cpu_apply(const ScalarOpInfo& op, DType from, DType to, const std::string& lanes, const std::vector<std::string>& operands);
// Slot enumerator of the vector function for a row's `sleef` name: "cxxi_slot_exp_u10_f32".
std::string cpu_math_slot(std::string_view sleef, DType dtype);

class CpuKernelEmitter {
 public:
  CpuKernelEmitter(const plan::Kernel& kernel, const OriginTable& origins, TextWriter& out);
  void emit();

 private:
  using VarId = plan::VarId;
  using StmtId = plan::StmtId;
  using Stmt = loops::Stmt;

  // Loops of the mappings (kernel_loops.cpp).
  void emit_signature();
  void emit_pointwise(const plan::CpuPointwise& shape);
  void emit_run();
  void emit_vector_loop(std::string_view end, std::string_view arguments);
  void emit_rows();
  void emit_columns(const plan::CpuColumns& shape);
  void emit_row_loop(const plan::Segment& segment);
  void emit_pass(const std::vector<StmtId>& in_blocks, int sets);
  std::vector<StmtId> summed_in_blocks(const std::vector<StmtId>& reduces) const;
  void declare_states(const std::vector<StmtId>& reduces, const std::vector<StmtId>& in_blocks, std::string_view kind,
                      int count);
  void put_blocks_aside(const std::vector<StmtId>& in_blocks, std::string_view condition);
  void emit_strip_segment(const plan::Segment& segment);
  void emit_tiles(const plan::CpuTiles& shape);
  void stage_loads(const plan::Segment& segment, const plan::CpuTiles& shape);
  void decode(std::string_view number, std::span<const VarId> vars);
  void open_body(std::string_view parameters, const std::vector<StmtId>& stmts);
  void call_body(std::string_view arguments);

  // Statements (kernel_statements.cpp).
  void emit_statement(StmtId id);
  void emit_kept(StmtId id);
  std::string load_text(StmtId id, const Stmt& s, const loops::Load& load) const;
  std::string store_text(StmtId id, const Stmt& s, const loops::Store& store) const;
  std::string apply_text(const Stmt& s, const loops::Apply& apply) const;
  std::string index_text(const Stmt& s, const loops::Index& index) const;
  std::string first_lane(const loops::Index& index) const;
  void emit_reduce(StmtId id, const loops::Reduce& reduce);
  void emit_check(StmtId id, const Stmt& s, const loops::Check& check);
  void mark_origin(const Stmt& s);

  std::vector<StmtId> kept_operands(const std::vector<StmtId>& stmts) const;  // of earlier segments
  std::string reduction_type(const loops::Reduce& reduce) const;
  std::vector<StmtId> reduces_of(const plan::Segment& segment) const;

  const Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool has_lanes(const Stmt& s) const {
    return vector_var_.valid() && s.vars.contains(vector_var_) && !uniform_.contains(&s);
  }
  std::string width(const Stmt& s) const { return has_lanes(s) ? "L" : "1"; }
  std::string variable(VarId v) const { return "x_" + kernel_.region.vars[v].name; }
  std::string extent(VarId v) const { return expression(kernel_.region.vars[v].extent); }
  // C text of e; `lane`: the name of the lane number inside a per-lane lambda, empty outside.
  std::string expression(sym::Expr e, std::string_view lane = {}) const;
  std::string offset_lambda(StmtId id) const;
  bool consecutive(StmtId id) const;  // the offset grows by one along the vector variable
  // "x_i0 == 0 && ...": where a once-only statement runs; empty: everywhere.
  std::string once_condition(const Stmt& s) const;

  const plan::Kernel& kernel_;
  const OriginTable& origins_;
  TextWriter& out_;
  VarId vector_var_;
  std::set<const Stmt*> uniform_;  // masks that vary along vector_var_, but not between two cuts_ (uniform_masks.h)
  std::vector<sym::Expr> cuts_;
  int width_ = 1;
  int sets_ = 1;
  bool checks_ = false;
  bool in_body_ = false;         // inside a body's lambda
  bool marked_ = false;          // a #line is in force
  bool strip_ = false;           // Columns: reduction states and Row values are arrays over the strip
  loops::VarSet running_;        // variables that the current segment runs over
  std::set<uint32_t> persistent_;  // Persistent statements that have an array
  std::set<uint32_t> declared_;  // Row values with a name at the row's scope
};

}  // namespace cxxinductor::codegen

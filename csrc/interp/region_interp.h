// One region, statement by statement: a statement is computed over every point of its variables before the next one. The
// loops interpreter runs whole regions, the plan interpreter the segments of kernels.
#pragma once

#include "interp/memory.h"
#include "sym/program.h"

namespace cxxinductor::interp {

// Memory of a region's accesses: one memory reference per buffer, in the order of loops::BufferId.
struct RegionMemory {
  std::vector<MemRef> memrefs;
  // The access's element offset from the start of its (flat) window; null: coordinates of the window are the access's.
  const IdVector<loops::StmtId, sym::Expr>* offsets = nullptr;
  // For flat memory references: one list per reference with one flag per element, set by stores; may be null.
  std::vector<std::vector<bool>>* written = nullptr;
};

class RegionRun {
 public:
  RegionRun(const loops::Region& region, const Symbols& symbols, const RegionMemory& memory);
  // Computes a statement whose operands have been computed; again, if it was computed before.
  void execute(loops::StmtId id);
  void forget(loops::StmtId id);  // the value may not be read any more

 private:
  // The values of a statement over its variables, row-major; one list for each exposed result.
  using Column = std::vector<Scalar>;
  struct Value {
    bool known = false;
    std::vector<Column> results;
  };
  // Expressions of one statement, compiled; `statements` are slots that hold other statements' values.
  struct Expressions {
    sym::Program program;
    std::vector<uint32_t> slots;
    std::vector<std::pair<size_t, loops::StmtId>> statements;
    std::vector<int64_t> workspace;
    std::vector<int64_t> values;  // of the last evaluation
  };

  // The results of a statement; none for those that have no value.
  using Columns = std::vector<Column>;
  template <class Kind>  // one specialization for each kind
  Columns compute(const loops::Stmt& stmt, const Kind& kind, loops::StmtId id);

  template <class Body>
  void over(loops::VarSet vars, Body body);  // body(number of the point), with coords_ set
  int64_t points(loops::VarSet vars) const;
  int64_t position(loops::StmtId id) const;  // of coords_ in the statement's columns
  const Scalar& value(loops::StmtId id) const;
  Expressions compile(const std::vector<sym::Expr>& list) const;
  std::span<const int64_t> evaluate_at(Expressions& expressions) const;
  std::vector<sym::Expr> place(loops::StmtId id, const std::vector<sym::Expr>& coords) const;
  const MemRef& memref(loops::BufferId buffer) const;

  const loops::Region& region_;
  const Symbols& symbols_;
  const RegionMemory& memory_;
  std::vector<int64_t> extents_;                           // of the variables
  std::vector<int64_t> coords_;                            // the point, 0 for variables that do not run
  IdVector<loops::StmtId, std::vector<int64_t>> strides_;  // of a statement's columns, one per variable, 0 if it does not vary over it
  IdVector<loops::StmtId, Value> values_;
};

// All statements in order.
void run_region(const loops::Region& region, const Symbols& symbols, const RegionMemory& memory);

}  // namespace cxxinductor::interp

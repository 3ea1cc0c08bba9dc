#include "interp/region_interp.h"

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::interp {

using loops::StmtId;
using loops::VarId;
using loops::VarSet;

namespace {

// Sums are compared between programs that order them differently: they run in f64 and round once.
DType accumulator(Reduction reduction, DType operand) { return info(reduction).order_matters && is_float(operand) ? DType::F64 : operand; }

}  // namespace

RegionRun::RegionRun(const loops::Region& region, const Symbols& symbols, const RegionMemory& memory)
    : region_(region), symbols_(symbols), memory_(memory), coords_(region.vars.size(), 0), values_(region.body.size()) {
  for (const loops::Var& var : region.vars) {
    extents_.push_back(interp::evaluate(var.extent, symbols));
    CXXI_CHECK(extents_.back() >= 0, "variable {} of region {} has extent {}", var.name, region.name, extents_.back());
  }
  for (const loops::Stmt& stmt : region.body) {
    std::vector<int64_t> strides(extents_.size(), 0);
    int64_t stride = 1;
    for (size_t v = extents_.size(); v-- > 0;) {
      if (!stmt.vars.contains(VarId(v))) continue;
      strides[v] = stride;
      stride *= extents_[v];
    }
    strides_.push_back(std::move(strides));
  }
}

int64_t RegionRun::points(VarSet vars) const {
  int64_t count = 1;
  for (size_t v = 0; v < extents_.size(); ++v)
    if (vars.contains(VarId(v))) count *= extents_[v];
  return count;
}

template <class Body>
void RegionRun::over(VarSet vars, Body body) {
  std::fill(coords_.begin(), coords_.end(), 0);
  const int64_t count = points(vars);
  for (int64_t point = 0; point < count; ++point) {
    body(static_cast<size_t>(point));
    for (size_t v = extents_.size(); v-- > 0;) {
      if (!vars.contains(VarId(v))) continue;
      if (++coords_[v] < extents_[v]) break;
      coords_[v] = 0;
    }
  }
}

int64_t RegionRun::position(StmtId id) const {
  const std::vector<int64_t>& strides = strides_[id];
  int64_t position = 0;
  for (size_t v = 0; v < strides.size(); ++v) position += strides[v] * coords_[v];
  return position;
}

const Scalar& RegionRun::value(StmtId id) const {
  const Value& value = values_[id];
  CXXI_CHECK(value.known, "statement {} of region {} is read where it has no value", id.index(), region_.name);
  return value.results[0][static_cast<size_t>(position(id))];
}

const MemRef& RegionRun::memref(loops::BufferId buffer) const {
  CXXI_CHECK(buffer.index() < memory_.memrefs.size(), "region {} has no buffer {}", region_.name, buffer.index());
  return memory_.memrefs[buffer.index()];
}

std::vector<sym::Expr> RegionRun::place(StmtId id, const std::vector<sym::Expr>& coords) const {
  if (memory_.offsets == nullptr) return coords;
  return {(*memory_.offsets)[id]};
}

RegionRun::Expressions RegionRun::compile(const std::vector<sym::Expr>& list) const {
  Expressions compiled;
  std::vector<std::string> names;
  for (const loops::Var& var : region_.vars) names.push_back(var.name);
  for (sym::Expr e : list)
    for (sym::Expr symbol : e.free_symbols())
      if (std::find(names.begin(), names.end(), symbol.name()) == names.end()) names.emplace_back(symbol.name());
  compiled.program = sym::Program(names);
  for (sym::Expr e : list) compiled.slots.push_back(compiled.program.add(e));
  compiled.values.resize(list.size());
  compiled.workspace.resize(compiled.program.workspace_size());
  for (size_t i = region_.vars.size(); i < names.size(); ++i) {
    const StmtId statement = loops::statement_of_symbol(names[i]);
    if (statement.valid())
      compiled.statements.emplace_back(i, statement);
    else
      compiled.workspace[i] = interp::evaluate(sym::Expr::symbol(names[i]), symbols_);
  }
  return compiled;
}

std::span<const int64_t> RegionRun::evaluate_at(Expressions& expressions) const {
  std::copy(coords_.begin(), coords_.end(), expressions.workspace.begin());
  for (const auto& [slot, statement] : expressions.statements) expressions.workspace[slot] = value(statement).integer();
  expressions.program.run(expressions.workspace);
  for (size_t i = 0; i < expressions.slots.size(); ++i) expressions.values[i] = expressions.workspace[expressions.slots[i]];
  return expressions.values;
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt& stmt, const loops::Load& load, StmtId id) {
  Column column(static_cast<size_t>(points(stmt.vars)));
  Expressions coords = compile(place(id, load.coords));
  const MemRef& from = memref(load.buffer);
  over(stmt.vars, [&](size_t point) {
    const bool skipped = load.mask.valid() && !value(load.mask).truth();
    column[point] = skipped ? load.other : read(from, evaluate_at(coords));
  });
  return {std::move(column)};
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt& stmt, const loops::Store& store, StmtId id) {
  Expressions coords = compile(place(id, store.coords));
  const MemRef& to = memref(store.buffer);
  const auto put = [&](std::span<const int64_t> at, const Scalar& value) {
    write(to, at, store.combine == Combine::Overwrite ? value : combined(store.combine, read(to, at), value));
    if (memory_.written) (*memory_.written)[store.buffer.index()][static_cast<size_t>(at[0])] = true;
  };
  if (!store.conflict_order) {
    over(stmt.vars, [&](size_t) {
      if (!store.mask.valid() || value(store.mask).truth()) put(evaluate_at(coords), value(store.value));
    });
    return {};
  }
  // Points with write conflicts are executed in the order that the store states, whatever the variables' order.
  struct Turn {
    int64_t number;
    std::vector<int64_t> at;
    Scalar value;
  };
  std::vector<Turn> turns;
  Expressions number = compile({*store.conflict_order});
  over(stmt.vars, [&](size_t) {
    if (store.mask.valid() && !value(store.mask).truth()) return;
    const std::span<const int64_t> at = evaluate_at(coords);
    turns.push_back({evaluate_at(number)[0], {at.begin(), at.end()}, value(store.value)});
  });
  std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.number < b.number; });
  for (const Turn& turn : turns) put(turn.at, turn.value);
  return {};
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt& stmt, const loops::Apply& apply, StmtId) {
  Column column(static_cast<size_t>(points(stmt.vars)));
  std::vector<Scalar> operands(apply.operands.size());
  over(stmt.vars, [&](size_t point) {
    for (size_t i = 0; i < operands.size(); ++i) operands[i] = value(apply.operands[i]);
    column[point] = evaluate(apply.op, operands, stmt.dtype);
  });
  return {std::move(column)};
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt& stmt, const loops::Index& index, StmtId) {
  Column column(static_cast<size_t>(points(stmt.vars)));
  Expressions expression = compile({index.value});
  over(stmt.vars, [&](size_t point) { column[point] = Scalar::from_integer(stmt.dtype, evaluate_at(expression)[0]); });
  return {std::move(column)};
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt& stmt, const loops::Reduce& reduce, StmtId id) {
  const loops::Stmt& operand = region_.body[reduce.operand];
  const ReductionForm& meaning = form(reduce.reduction);
  const DType wide = accumulator(reduce.reduction, operand.dtype);
  std::vector<int64_t> order(extents_.size(), 0);  // strides of the position within what is reduced
  int64_t stride = 1;
  for (size_t v = extents_.size(); v-- > 0;) {
    if (!reduce.over.contains(VarId(v))) continue;
    order[v] = stride;
    stride *= extents_[v];
  }
  std::vector<std::vector<Scalar>> states(static_cast<size_t>(points(stmt.vars)), meaning.initial_state(wide));
  // A variable that the operand does not vary over repeats it.
  over(operand.vars | reduce.over, [&](size_t) {
    int64_t at = 0;
    for (size_t v = 0; v < order.size(); ++v) at += order[v] * coords_[v];
    meaning.update(states[static_cast<size_t>(position(id))], cast(value(reduce.operand), wide), at);
  });
  Columns results(meaning.results.size(), Column(states.size()));
  for (size_t i = 0; i < states.size(); ++i) {
    const std::vector<Scalar> finished = meaning.finished(states[i]);
    for (size_t r = 0; r < results.size(); ++r) results[r][i] = cast(finished[r], meaning.results[r].dtype(operand.dtype));
  }
  return results;
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt& stmt, const loops::Check& check, StmtId) {
  Expressions bound = compile({check.bound});
  over(stmt.vars, [&](size_t) {
    const int64_t index = value(check.index).integer(), limit = evaluate_at(bound)[0];
    if (index < 0 || index >= limit) throw_user_error("{}: found {}, outside of 0 <= index < {}", check.what, index, limit);
  });
  return {};
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt&, const loops::Constant& constant, StmtId) {
  return {{constant.value}};
}

template <>
RegionRun::Columns RegionRun::compute(const loops::Stmt&, const loops::Project& project, StmtId) {
  const Value& reduced = values_[project.of];
  CXXI_CHECK(reduced.known, "statement {} of region {} is read where it has no value", project.of.index(), region_.name);
  return {reduced.results.at(project.result)};
}

void RegionRun::execute(StmtId id) {
  const loops::Stmt& stmt = region_.body[id];
  Columns results = std::visit([&](const auto& kind) { return compute(stmt, kind, id); }, stmt.kind);
  values_[id] = {!results.empty(), std::move(results)};
}

void RegionRun::forget(StmtId id) { values_[id] = {}; }

void run_region(const loops::Region& region, const Symbols& symbols, const RegionMemory& memory) {
  RegionRun run(region, symbols, memory);
  IdVector<StmtId, size_t> last_use(region.body.size(), 0);
  for (size_t s = 0; s < region.body.size(); ++s)
    for (StmtId operand : loops::operands(region.body[StmtId(s)])) last_use[operand] = s;
  for (size_t s = 0; s < region.body.size(); ++s) {
    run.execute(StmtId(s));
    for (StmtId operand : loops::operands(region.body[StmtId(s)]))
      if (last_use[operand] == s) run.forget(operand);
  }
}

}  // namespace cxxinductor::interp

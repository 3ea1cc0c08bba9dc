#include "ir/loops/loops.h"

#include <algorithm>
#include <charconv>

#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

constexpr std::string_view statement_prefix = "stmt.";

const Stmt& statement(const Region& region, StmtId id) {
  CXXI_CHECK(region.body.contains(id), "region {} has no statement {}", region.name, id.index());
  return region.body[id];
}

VarSet vars_of_all(const Region& region, const std::vector<sym::Expr>& coords) {
  VarSet vars;
  for (sym::Expr e : coords) vars |= vars_of(region, e);
  return vars;
}

}  // namespace

Program::Program() = default;
Program::Program(const Program&) = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(const Program&) = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

std::vector<StmtId> operands(const Stmt& stmt) {
  std::vector<StmtId> ids;
  const auto add_statements_of = [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (StmtId id = statement_of_symbol(symbol.name()); id.valid()) ids.push_back(id);
  };
  for_each_use(
      stmt, [&](StmtId id) { ids.push_back(id); }, add_statements_of);
  return ids;
}

std::vector<bool> backward_slice(const Region& region, StmtId value) {
  std::vector<bool> needed(region.body.size(), false);
  needed[value.index()] = true;
  for (size_t s = value.index() + 1; s-- > 0;)
    if (needed[s])
      for (StmtId operand : operands(region.body[StmtId(s)])) needed[operand.index()] = true;
  return needed;
}

sym::Expr statement_symbol(StmtId stmt) { return sym::Expr::symbol(fmt::format("{}{}", statement_prefix, stmt.index())); }

StmtId statement_of_symbol(std::string_view name) {
  if (!name.starts_with(statement_prefix)) return {};
  name.remove_prefix(statement_prefix.size());
  uint32_t index = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size()) return {};
  return StmtId(index);
}

bool depends_on_data(sym::Expr e) {
  const auto& symbols = e.free_symbols();
  return std::any_of(symbols.begin(), symbols.end(), [](sym::Expr symbol) { return statement_of_symbol(symbol.name()).valid(); });
}

VarSet vars_of(const Region& region, sym::Expr e) {
  VarSet vars;
  for (sym::Expr symbol : e.free_symbols()) {
    if (StmtId id = statement_of_symbol(symbol.name()); id.valid()) {
      vars |= statement(region, id).vars;
      continue;
    }
    for (size_t v = 0; v < region.vars.size(); ++v)
      if (region.vars[VarId(v)].name == symbol.name()) vars |= VarSet::of(VarId(v));
  }
  return vars;
}

VarSet all_vars(const Region& region) {
  VarSet vars;
  for (size_t v = 0; v < region.vars.size(); ++v) vars |= VarSet::of(VarId(v));
  return vars;
}

VarSet reduced_vars(const Region& region) {
  VarSet vars;
  for (const Stmt& stmt : region.body)
    if (const auto state = row_state(stmt)) vars |= state->over;
  return vars;
}

VarId serial_var(const Region& region) {
  for (size_t v = 0; v < region.vars.size(); ++v)
    if (region.vars[VarId(v)].serial) return VarId(v);
  return {};
}

std::vector<Access> accesses(const Region& region) {
  std::vector<Access> found;
  for (size_t s = 0; s < region.body.size(); ++s) {
    const Stmt& stmt = region.body[StmtId(s)];
    if (const auto* load = stmt.as<Load>()) found.push_back({StmtId(s), load->buffer, &load->coords, false});
    if (const auto* store = stmt.as<Store>()) found.push_back({StmtId(s), store->buffer, &store->coords, true});
  }
  return found;
}

VarId RegionBuilder::var(std::string name, sym::Expr extent) {
  CXXI_CHECK(region_.vars.size() < 32, "region {} has more than 32 variables", region_.name);
  return region_.vars.push_back({std::move(name), extent});
}

StmtId RegionBuilder::append(Stmt stmt) { return region_.body.push_back(std::move(stmt)); }

StmtId RegionBuilder::load(const Program& program, BufferId buffer, std::vector<sym::Expr> coords, StmtId mask, Scalar other) {
  VarSet vars = vars_of_all(region_, coords);
  DType dtype = program.buffers[buffer].dtype;
  if (mask.valid()) vars |= statement(region_, mask).vars;
  // Without a mask `other` has no meaning; keep it canonical, so that equal loads compare equal.
  if (!mask.valid()) other = Scalar();
  return append({Load{buffer, std::move(coords), mask, other}, dtype, vars, origin_});
}

StmtId RegionBuilder::constant(Scalar value) { return append({Constant{value}, value.dtype(), {}, origin_}); }

StmtId RegionBuilder::index(sym::Expr value) { return append({Index{value}, DType::I64, vars_of(region_, value), origin_}); }

StmtId RegionBuilder::apply(ScalarOp op, std::vector<StmtId> operands, DType cast_to) {
  const ScalarOpInfo& row = info(op);
  CXXI_CHECK(operands.size() == static_cast<size_t>(row.arity), "{} expects {} operands, found {}", row.name, row.arity, operands.size());
  VarSet vars;
  for (StmtId operand : operands) vars |= statement(region_, operand).vars;
  DType operand_dtype = region_.body[operands[row.rule == TypeRule::Select ? 1 : 0]].dtype;
  DType dtype = result_dtype(op, operand_dtype, cast_to);
  return append({Apply{op, std::move(operands)}, dtype, vars, origin_});
}

StmtId RegionBuilder::cast(StmtId value, DType to) {
  if (statement(region_, value).dtype == to) return value;
  return apply(ScalarOp::Cast, {value}, to);
}

StmtId RegionBuilder::reduce(Reduction reduction, StmtId operand, VarSet over) {
  const Stmt& source = statement(region_, operand);
  DType dtype = result_dtype(reduction, source.dtype);
  return append({Reduce{reduction, operand, over}, dtype, source.vars - over, origin_});
}

StmtId RegionBuilder::project(StmtId of, uint32_t result) {
  const Stmt& source = statement(region_, of);
  const auto* reduce = source.as<Reduce>();
  CXXI_CHECK(reduce, "statement {} of region {} is no reduction", of.index(), region_.name);
  const bool exists = result < form(reduce->reduction).results.size();  // if not, the verifier says so
  DType dtype = result_dtype(reduce->reduction, statement(region_, reduce->operand).dtype, exists ? result : 0);
  return append({Project{of, result}, dtype, source.vars, origin_});
}

StmtId RegionBuilder::store(const Program& program, BufferId buffer, std::vector<sym::Expr> coords, StmtId value, StmtId mask) {
  VarSet vars = vars_of_all(region_, coords) | statement(region_, value).vars;
  if (mask.valid()) vars |= statement(region_, mask).vars;
  return append({Store{buffer, std::move(coords), value, mask}, program.buffers[buffer].dtype, vars, origin_});
}

StmtId RegionBuilder::update(const Program& program, Store store) {
  VarSet vars = vars_of_all(region_, store.coords) | statement(region_, store.value).vars;
  if (store.mask.valid()) vars |= statement(region_, store.mask).vars;
  if (store.conflict_order) vars |= vars_of(region_, *store.conflict_order);
  store.update = true;
  const DType dtype = program.buffers[store.buffer].dtype;
  return append({std::move(store), dtype, vars, origin_});
}

StmtId RegionBuilder::check(StmtId index, sym::Expr bound, std::string what) {
  VarSet vars = statement(region_, index).vars | vars_of(region_, bound);
  return append({Check{index, bound, std::move(what)}, DType::Bool, vars, origin_});
}

}  // namespace cxxinductor::loops

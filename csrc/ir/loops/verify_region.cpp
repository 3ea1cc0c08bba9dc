#include "ir/loops/verify_region.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loops/region_text.h"
#include "ir/loops/stmt_properties.h"
#include "ir/text_parts.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

class RegionVerifier {
 public:
  RegionVerifier(const Region& region, const RegionContext& context) : region_(region), context_(context) {}

  std::vector<std::string> run() {
    check_vars();
    check_ids();
    if (!messages_.empty()) return std::move(messages_);  // nothing below may index with a bad id
    for (size_t s = 0; s < region_.body.size(); ++s) check_stmt(StmtId(s));
    check_hazards();
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(std::string_view invariant, const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("{}: region @{} {} {}", invariant, region_.name, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string where(StmtId id) const {
    std::string text = fmt::format("%{}", id.index());
    OriginId origin = region_.body[id].origin;
    if (context_.origins && origin.valid() && context_.origins->contains(origin))
      text += fmt::format(" ({}:{})", (*context_.origins)[origin].file, (*context_.origins)[origin].line);
    return text;
  }
  const Stmt& stmt(StmtId id) const { return region_.body[id]; }

  void check_vars() {
    if (context_.named && !is_text_name(region_.name)) report("L2", "", "has a name that does not print");
    if (region_.vars.size() > 32) report("L1", "", "has {} variables, at most 32 are possible", region_.vars.size());
    serial_ = serial_var(region_);
    for (const Var& var : region_.vars) {
      if (var.serial && &var != &region_.vars[serial_]) report("L12", var.name, "is a second serial variable");
      if (!is_symbol_name(var.name) || statement_of_symbol(var.name).valid()) report("L2", var.name, "is no name for a variable");
      if (!names_.insert(var.name).second) report("L2", var.name, "is the name of two variables");
      if (context_.symbols.contains(var.name)) report("L2", var.name, "is both a variable and a symbol");
      for (sym::Expr symbol : var.extent.free_symbols())
        if (!context_.symbols.contains(std::string(symbol.name()))) report("L7", var.name, "has an extent that uses the unknown symbol {}", symbol.name());
    }
  }

  void check_ids() {
    uint32_t declared = region_.vars.size() >= 32 ? ~0u : (1u << region_.vars.size()) - 1;
    for (size_t s = 0; s < region_.body.size(); ++s) {
      const Stmt& statement = region_.body[StmtId(s)];
      for (StmtId operand : operands(statement))
        if (!operand.valid() || operand.index() >= s) report("L1", where(StmtId(s)), "reads a statement that does not precede it");
      if (statement.vars.bits() & ~declared) report("L1", where(StmtId(s)), "varies over an undeclared variable");
      if (const auto state = row_state(statement); state && (state->over.bits() & ~declared))
        report("L1", where(StmtId(s)), "reduces over an undeclared variable");
    }
    for (const Access& access : accesses(region_))
      if (access.buffer.index() >= context_.buffers.size()) report("L1", where(access.stmt), "accesses a buffer that does not exist");
  }

  void check_expr(StmtId id, sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols()) {
      if (StmtId used = statement_of_symbol(symbol.name()); used.valid()) {
        if (!is_integer(stmt(used).dtype)) report("L7", where(id), "indexes with %{}, which is {}", used.index(), to_string(stmt(used).dtype));
      } else if (!names_.contains(std::string(symbol.name())) && !context_.symbols.contains(std::string(symbol.name()))) {
        report("L7", where(id), "uses the unknown symbol {}", symbol.name());
      }
    }
  }

  VarSet check_access(StmtId id, BufferId buffer, const std::vector<sym::Expr>& coords, StmtId mask) {
    VarSet vars;
    std::optional<size_t> rank = context_.buffers[buffer.index()].rank;
    if (rank && coords.size() != *rank) report("L5", where(id), "has {} coordinates in a buffer of rank {}", coords.size(), *rank);
    for (sym::Expr e : coords) {
      check_expr(id, e);
      vars |= vars_of(region_, e);
    }
    if (!mask.valid()) return vars;
    if (stmt(mask).dtype != DType::Bool || is_effect(stmt(mask))) report("L4", where(id), "has a mask that is no bool value");
    return vars | stmt(mask).vars;
  }

  void expect_dtype(StmtId id, DType expected) {
    if (stmt(id).dtype != expected) report("L4", where(id), "is {}, expected {}", to_string(stmt(id).dtype), to_string(expected));
  }
  void expect_vars(StmtId id, VarSet expected) {
    if (stmt(id).vars != expected) report("L3", where(id), "claims the wrong set of variables");
  }

  void check_stmt(StmtId id) {
    for (StmtId operand : operands(stmt(id))) {
      const auto state = row_state(stmt(operand));
      if (state && serial_.valid() && state->over.contains(serial_) && !stmt(id).as<Store>())
        report("L12", where(id), "computes with %{}, a reduction over the serial variable", operand.index());
    }
    for (StmtId operand : operands(stmt(id)))
      if (is_effect(stmt(operand))) {
        report("L1", where(id), "reads %{}, which has no value", operand.index());
        return;
      }
    if (is_opaque(stmt(id).dtype)) report("L4", where(id), "is {}, which has no scalars", to_string(stmt(id).dtype));
    std::visit([&](const auto& kind) { check_kind(id, kind); }, stmt(id).kind);
  }

  void check_kind(StmtId id, const Load& load) {
    DType dtype = context_.buffers[load.buffer.index()].dtype;
    expect_vars(id, check_access(id, load.buffer, load.coords, load.mask));
    expect_dtype(id, dtype);
    if (load.mask.valid() && load.other.dtype() != dtype)
      report("L4", where(id), "gives {} where masked, expected {}", to_string(load.other.dtype()), to_string(dtype));
  }
  void check_kind(StmtId id, const Constant& constant) {
    expect_dtype(id, constant.value.dtype());
    expect_vars(id, {});
  }
  void check_kind(StmtId id, const Index& index) {
    check_expr(id, index.value);
    expect_dtype(id, DType::I64);
    expect_vars(id, vars_of(region_, index.value));
  }
  void check_kind(StmtId id, const Apply& apply) {
    const ScalarOpInfo& row = info(apply.op);
    if (apply.operands.size() != static_cast<size_t>(row.arity)) {
      report("L4", where(id), "gives {} {} operands, it takes {}", row.name, apply.operands.size(), row.arity);
      return;
    }
    VarSet vars;
    for (StmtId operand : apply.operands) vars |= stmt(operand).vars;
    expect_vars(id, vars);
    size_t first = row.rule == TypeRule::Select ? 1 : 0;
    DType dtype = stmt(apply.operands[first]).dtype;
    if (first == 1 && stmt(apply.operands[0]).dtype != DType::Bool) report("L4", where(id), "has a condition that is not bool");
    for (size_t i = first; i < apply.operands.size(); ++i)
      if (stmt(apply.operands[i]).dtype != dtype) report("L4", where(id), "mixes {} and {}", to_string(dtype), to_string(stmt(apply.operands[i]).dtype));
    bool moves = row.rule == TypeRule::Cast || row.rule == TypeRule::Identity;
    if (!moves && compute_type(dtype) != dtype) report("L4", where(id), "applies {} to {}, which is no compute type", row.name, to_string(dtype));
    if (!moves && !accepts(row.types, dtype)) report("L4", where(id), "applies {} to {}", row.name, to_string(dtype));
    expect_dtype(id, result_dtype(apply.op, dtype, stmt(id).dtype));
  }
  void check_kind(StmtId id, const Reduce& reduce) {
    const Stmt& operand = stmt(reduce.operand);
    const ReductionInfo& row = info(reduce.reduction);
    if (!context_.flat && !reduce.over.subset_of(operand.vars)) report("L8", where(id), "reduces over a variable that its operand does not vary over");
    if (row.order_matters && compute_type(operand.dtype) != operand.dtype)
      report("L4", where(id), "reduces {} with {}, which needs a compute type", to_string(operand.dtype), row.name);
    if (serial_.valid() && reduce.over.contains(serial_) && reduce.over.count() > 1) report("L12", where(id), "reduces over the serial variable and others");
    expect_dtype(id, result_dtype(reduce.reduction, operand.dtype));
    expect_vars(id, operand.vars - reduce.over);
  }
  void check_kind(StmtId id, const Project& project) {
    const auto* reduce = stmt(project.of).as<Reduce>();
    if (!reduce || project.result >= form(reduce->reduction).results.size()) {
      report("L8", where(id), "reads result {} of %{}, which has no such result", project.result, project.of.index());
      return;
    }
    expect_dtype(id, result_dtype(reduce->reduction, stmt(reduce->operand).dtype, project.result));
    expect_vars(id, stmt(project.of).vars);
  }
  void check_kind(StmtId id, const Store& store) {
    DType dtype = context_.buffers[store.buffer.index()].dtype;
    VarSet vars = check_access(id, store.buffer, store.coords, store.mask) | stmt(store.value).vars;
    if (store.conflict_order) {
      check_expr(id, *store.conflict_order);
      vars |= vars_of(region_, *store.conflict_order);
    }
    expect_vars(id, vars);
    check_update(id, store);
    expect_dtype(id, dtype);
    if (stmt(store.value).dtype != dtype) report("L4", where(id), "stores {} into a buffer of {}", to_string(stmt(store.value).dtype), to_string(dtype));
  }
  void check_update(StmtId id, const Store& store) {
    if (!store.update && (store.combine != Combine::Overwrite || store.conflict_order))
      report("L13", where(id), "combines or may meet itself and is no update");
    if (!accepts(store.combine, stmt(id).dtype)) report("L13", where(id), "combines {} by {}", to_string(stmt(id).dtype), name_of(store.combine));
    if (store.conflict_order && vars_of(region_, *store.conflict_order) != stmt(id).vars)
      report("L13", where(id), "has an order that does not run over its variables");
    if (!store.update) return;
    for (const Access& access : accesses(region_)) {
      if (access.buffer != store.buffer || access.stmt == id) continue;
      if (access.store) report("L13", where(id), "updates a buffer that the region stores elsewhere too");
      if (!access.store && store.conflict_order) report("L13", where(id), "may meet itself in a buffer that the region loads");
    }
  }
  void check_kind(StmtId id, const Check& check) {
    check_expr(id, check.bound);
    if (!is_integer(stmt(check.index).dtype)) report("L4", where(id), "checks {}, expected an integer", to_string(stmt(check.index).dtype));
    expect_vars(id, stmt(check.index).vars | vars_of(region_, check.bound));
  }

  // Of each buffer that is stored and loaded: the loads come before the first store, all at its coordinates.
  void check_hazards() {
    const std::vector<Access> all = accesses(region_);
    std::map<BufferId, const Access*> stores;  // the first of each buffer
    std::set<BufferId> loaded;
    for (const Access& access : all) {
      if (access.store)
        stores.try_emplace(access.buffer, &access);
      else
        loaded.insert(access.buffer);
    }
    for (const Access& access : all) {
      const auto found = stores.find(access.buffer);
      if (found == stores.end() || &access == found->second) continue;
      const Access& store = *found->second;
      const std::string& name = context_.buffers[access.buffer.index()].name;
      if (loaded.contains(access.buffer) && *access.coords != *store.coords)
        report("L6", where(access.stmt), "{} @{} at {}: expected {}, where %{} stores it, or the load in an earlier region", access.store ? "stores" : "loads",
               name, print_expr_list(*access.coords, print_expr), print_expr_list(*store.coords, print_expr), store.stmt.index());
      else if (!access.store && access.stmt > store.stmt)
        report("L6", where(access.stmt), "loads @{} after %{} stored it: expected a load before, or a use of the stored %{}", name, store.stmt.index(),
               stmt(store.stmt).as<Store>()->value.index());
    }
  }

  const Region& region_;
  const RegionContext& context_;
  VarId serial_;
  std::unordered_set<std::string> names_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> verify_region(const Region& region, const RegionContext& context) { return RegionVerifier(region, context).run(); }

}  // namespace cxxinductor::loops

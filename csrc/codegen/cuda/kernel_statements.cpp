// One group of a kernel as statements: values that it has once, a loop over its lanes, wide stores.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/spelling.h"
#include "ir/plan/forms.h"
#include "ir/plan/serial_rows.h"
#include "support/error.h"
#include "sym/print_c.h"

namespace cxxinductor::codegen {
namespace {

std::string join(const std::vector<std::string>& conditions) {
  std::string text;
  for (const std::string& condition : conditions)
    if (!condition.empty()) text += (text.empty() ? "" : " && ") + condition;
  return text;
}

std::string guarded(const std::string& condition, const std::string& statement) {
  return condition.empty() ? statement : fmt::format("if ({}) {}", condition, statement);
}

}  // namespace

// ---- Expressions ------------------------------------------------------------------------------------------------

std::string CudaKernelEmitter::variable(VarId v) const { return "x_" + identifier(kernel_.region.vars[v].name); }

std::string CudaKernelEmitter::extent(VarId v) const { return expression(kernel_.region.vars[v].extent, false); }

std::string CudaKernelEmitter::integer(int64_t value) const {
  return fmt::format("{}{}", value, variant_.index64 ? "LL" : "");
}

std::string CudaKernelEmitter::expression(sym::Expr e, bool lane) const {
  sym::CSpelling spelling;
  spelling.integer_suffix = variant_.index64 ? "LL" : "";
  spelling.symbol = [&](std::string_view name) -> std::string {
    if (const StmtId id = loops::statement_of_symbol(name); id.valid()) {
      const bool exact = stmt(id).dtype == (variant_.index64 ? DType::I64 : DType::I32);
      return exact ? value_name(id) : fmt::format("cxxi_index({})", value_name(id));
    }
    for (size_t v = 0; v < kernel_.region.vars.size(); ++v) {
      if (kernel_.region.vars[VarId(v)].name != name) continue;
      const bool moves = lane && VarId(v) == vector_var_;
      return moves ? fmt::format("({} + e)", variable(VarId(v))) : variable(VarId(v));
    }
    return "s_" + identifier(name);
  };
  return sym::to_c(e, kernel_.assumptions, spelling);
}

std::string CudaKernelEmitter::wide_expression(sym::Expr e, bool lane) const {
  sym::CSpelling spelling;
  spelling.integer_suffix = "LL";
  spelling.symbol = [&](std::string_view name) -> std::string {
    if (const StmtId id = loops::statement_of_symbol(name); id.valid()) {
      return stmt(id).dtype == DType::I64 ? value_name(id) : fmt::format("(long long)({})", value_name(id));
    }
    for (size_t v = 0; v < kernel_.region.vars.size(); ++v) {
      if (kernel_.region.vars[VarId(v)].name != name) continue;
      const bool moves = lane && VarId(v) == vector_var_;
      return fmt::format("(long long)({}{})", variable(VarId(v)), moves ? " + e" : "");
    }
    return "a_" + identifier(name);
  };
  return sym::to_c(e, kernel_.assumptions, spelling);
}

std::string CudaKernelEmitter::address(StmtId id, bool lane) const {
  const auto* load = stmt(id).as<loops::Load>();
  const loops::BufferId buffer = load ? load->buffer : stmt(id).as<loops::Store>()->buffer;
  const sym::Expr offset = kernel_.offsets[id];
  if (offset.is_constant(0)) return fmt::format("p{}", buffer.index());
  return fmt::format("p{} + {}", buffer.index(), expression(offset, lane));
}

std::string CudaKernelEmitter::storage(StmtId id) const {
  const std::string_view type = cuda_type(stmt(id).dtype);
  return has_lanes(stmt(id)) ? fmt::format("cxxi_group<{}, {}>", type, width_) : std::string(type);
}

// ---- Conditions -------------------------------------------------------------------------------------------------

std::string CudaKernelEmitter::range_condition(sym::Expr offset) const {
  std::vector<std::string> conditions;
  std::set<uint32_t> seen;
  std::vector<StmtId> pending;
  const auto visit = [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (const StmtId id = loops::statement_of_symbol(symbol.name()); id.valid()) pending.push_back(id);
  };
  visit(offset);
  while (!pending.empty()) {
    const StmtId id = pending.back();
    pending.pop_back();
    if (!seen.insert(id.index()).second) continue;
    bool checked = false;
    for (const Stmt& s : kernel_.region.body) {
      const auto* check = s.as<loops::Check>();
      if (!check || check->index != id) continue;
      checked = true;
      conditions.push_back(fmt::format("cxxi_within({}, {})", value_name(id), wide_expression(check->bound, false)));
    }
    if (checked || !here_.count(id.index())) continue;
    if (stmt(id).as<loops::Apply>() || stmt(id).as<loops::Index>())
      for (StmtId operand : loops::operands(stmt(id))) pending.push_back(operand);
  }
  return join(conditions);
}

std::string CudaKernelEmitter::lane_condition(const Body& body) const {
  return body.count.empty() ? "" : fmt::format("e < {}", body.count);
}

std::string CudaKernelEmitter::once_condition(loops::VarSet vars, const Body& body) const {
  std::vector<std::string> conditions;
  for (size_t v = 0; v < kernel_.region.vars.size(); ++v) {
    if (body.running.contains(VarId(v)) && !vars.contains(VarId(v)))
      conditions.push_back(fmt::format("{} == 0", variable(VarId(v))));
  }
  return join(conditions);
}

// ---- Groups -----------------------------------------------------------------------------------------------------

void CudaKernelEmitter::emit_early_loads(const std::vector<StmtId>& loads, const Body& body) {
  for (StmtId id : loads) {
    const auto& load = *stmt(id).as<loops::Load>();
    const std::string to =
        persistent(id) ? fmt::format("w{}{}", id.index(), body.item) : fmt::format("g{}{}", id.index(), body.slot);
    if (is_wide(id)) {
      out_.line("{} = {};", to, wide_load(id, load, body));
    } else if (has_lanes(stmt(id))) {
      out_.line("#pragma unroll");
      open(fmt::format("for (int e = 0; e < {}; ++e) {{", width_));
      out_.line("{}.set(e, {});", to, scalar_load(id, load, body, true));
      close();
    } else {
      out_.line("{} = {};", to, scalar_load(id, load, body, false));
    }
  }
}

// Values of earlier segments, and loads made ahead, under their own names.
void CudaKernelEmitter::bring_values(const std::vector<StmtId>& stmts, const Body& body, bool of_lanes) {
  std::set<uint32_t> wanted;
  for (StmtId id : stmts) {
    for (StmtId operand : loops::operands(stmt(id)))
      if (!here_.count(operand.index())) wanted.insert(operand.index());
  }
  for (uint32_t index : wanted) {
    const StmtId id(index);
    if (has_lanes(stmt(id)) != of_lanes) continue;
    const std::string_view type = cuda_type(stmt(id).dtype);
    if (is_across(id)) {
      out_.line("const {} v{} = cxxi_cast<{}>(r{}{}[{}].result<0>());", type, index, type, index,
                shared(id) ? "" : body.item, of_lanes ? "e" : "0");
    } else if (persistent(id)) {
      out_.line("const {} v{} = w{}{}{};", type, index, index, body.item, of_lanes ? ".get(e)" : "");
    } else if (of_lanes && kept_.count(index)) {
      out_.line("const {} v{} = w{}[e];", type, index, index);
    } else if (id == grouped_) {
      out_.line("const {} v{} = g{}.get({});", type, index, index, of_lanes ? "e" : "0");
    }
  }
}

void CudaKernelEmitter::emit_body(const std::vector<StmtId>& stmts, const Body& body) {
  here_.clear();
  for (StmtId id : stmts) here_.insert(id.index());
  const std::vector<StmtId> sums = shared_sums(stmts);
  for (StmtId id : sums) {
    const auto& reduce = *stmt(id).as<loops::Reduce>();
    out_.line("{} r{}[{}];", cuda_state(reduce.reduction, stmt(reduce.operand).dtype), id.index(), width_);
    out_.line("s{0}.load(r{0}, cxxi_linear);", id.index());
  }
  bring_values(stmts, body, false);
  emit_ahead_of_lanes(stmts, body);
  const bool any_lanes = body.lanes && std::any_of(stmts.begin(), stmts.end(), [&](StmtId id) {
                           const auto* reduce = stmt(id).as<loops::Reduce>();
                           return has_lanes(stmt(id)) ||
                                  (reduce && (reduce->over.contains(vector_var_) || has_lanes(stmt(reduce->operand))));
                         });
  if (any_lanes) emit_lanes(stmts, body);
  emit_after_lanes(stmts, body);
  unmark_origin();
  for (StmtId id : sums)
    if (here_.count(id.index())) out_.line("s{0}.store(r{0}, cxxi_linear);", id.index());
}

// Wide loads, and statements with one value a group.
void CudaKernelEmitter::emit_ahead_of_lanes(const std::vector<StmtId>& stmts, const Body& body) {
  for (StmtId id : stmts) {
    const Stmt& s = stmt(id);
    if (is_wide(id)) {
      if (const auto* load = s.as<loops::Load>(); load && !early_.count(id.index())) {
        mark_origin(s);
        const std::string to = persistent(id) ? fmt::format("w{}{}", id.index(), body.item)
                                            : fmt::format("const {} g{}", storage(id), id.index());
        out_.line("{} = {};{}", to, wide_load(id, *load, body), origin_comment(s));
      }
      continue;
    }
    if (!has_lanes(s) && !s.as<loops::Reduce>()) emit_statement(id, body);
  }
}

void CudaKernelEmitter::emit_lanes(const std::vector<StmtId>& stmts, const Body& body) {
  unmark_origin();
  for (StmtId id : stmts) {
    const Stmt& s = stmt(id);
    if (s.as<loops::Store>() && is_wide(id)) out_.line("{} g{} = {{}};", storage(id), id.index());
    if (const auto* reduce = s.as<loops::Reduce>(); reduce && !columns_ && !is_across(id))
      out_.line("{} q{}[{}];", cuda_type(reduced_dtype(*reduce)), id.index(), width_);
    if (plan::philox_vec4(kernel_, id, vector_var_, width_)) out_.line("cxxi_philox_words z{} = {{}};", id.index());
  }
  // A division by the row's value is done for all lanes at once, between the loop that ends with its dividends and the
  // loop that begins with its quotients.
  std::vector<StmtId> stretch, carried;
  for (size_t i = 0; i < stmts.size(); ++i) {
    const StmtId id = stmts[i];
    const bool divides = has_lanes(stmt(id)) && plan::shares_divisor(kernel_, id);
    if (!divides) stretch.push_back(id);
    if (!divides && i + 1 < stmts.size()) continue;
    const size_t known = carried.size();
    if (i + 1 < stmts.size())
      std::copy_if(stretch.begin(), stretch.end(), std::back_inserter(carried), [&](StmtId value) {
        const Stmt& s = stmt(value);
        return has_lanes(s) && !s.as<loops::Store>() && !s.as<loops::Check>() && !s.as<loops::Reduce>();
      });
    const StmtId division = divides ? id : StmtId();
    emit_lane_loop(stretch, stmts, {carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(known)},
                   {carried.begin() + static_cast<std::ptrdiff_t>(known), carried.end()}, division, body);
    stretch.clear();
    if (!divides) continue;
    mark_origin(stmt(id));
    out_.line("d{}.divide_all(l{});{}", stmt(id).as<loops::Apply>()->operands[1].index(), id.index(),
              origin_comment(stmt(id)));
    unmark_origin();
    keep_lanes(id, body);
    carried.push_back(id);
  }
}

// The lanes of a stretch of the body `all`: values of earlier stretches come from arrays, those that later ones may
// want go to arrays, and so do the dividends of the division that ends the stretch.
void CudaKernelEmitter::emit_lane_loop(const std::vector<StmtId>& stretch, const std::vector<StmtId>& all,
                                       const std::vector<StmtId>& known, const std::vector<StmtId>& wanted,
                                       StmtId division, const Body& body) {
  for (StmtId id : wanted) out_.line("{} l{}[{}];", cuda_type(stmt(id).dtype), id.index(), width_);
  if (division.valid()) out_.line("float l{}[{}];", division.index(), width_);
  out_.line("#pragma unroll");
  open(fmt::format("for (int e = 0; e < {}; ++e) {{", width_));
  bring_values(all, body, true);
  for (StmtId id : known) out_.line("const {} v{} = l{}[e];", cuda_type(stmt(id).dtype), id.index(), id.index());
  for (StmtId id : stretch) {
    const Stmt& s = stmt(id);
    if (const auto* reduce = s.as<loops::Reduce>()) {
      const bool of_lanes = has_lanes(stmt(reduce->operand)) || (!columns_ && reduce->over.contains(vector_var_));
      if (!of_lanes) continue;
      if (columns_ || is_across(id)) {
        emit_reduce(id, *reduce, body);
      } else {
        out_.line("q{}[e] = {};", id.index(), reduced_value(*reduce));
      }
    } else if (has_lanes(s)) {
      emit_statement(id, body);
    }
  }
  unmark_origin();
  for (StmtId id : wanted) out_.line("l{0}[e] = v{0};", id.index());
  if (division.valid())
    out_.line("l{}[e] = {};", division.index(), value_name(stmt(division).as<loops::Apply>()->operands[0]));
  close();
}

void CudaKernelEmitter::emit_after_lanes(const std::vector<StmtId>& stmts, const Body& body) {
  for (StmtId id : stmts) {
    const Stmt& s = stmt(id);
    if (const auto* reduce = s.as<loops::Reduce>()) {
      if ((columns_ || is_across(id)) && has_lanes(stmt(reduce->operand))) continue;  // updated lane by lane
      emit_reduce(id, *reduce, body);
    } else if (const auto* store = s.as<loops::Store>(); store && is_wide(id)) {
      const std::string condition =
          join({body.side_effects, once_condition(s.vars, body), store->mask.valid() ? value_name(store->mask) : "",
                range_condition(kernel_.offsets[id])});
      const bool part = !body.count.empty();
      const std::string call =
          fmt::format("cxxi_store_{}<{}, {}>({}, g{}{});", part ? "part" : "group", width_, variant_.vectorized,
                      address(id, false), id.index(), part ? ", " + body.count : "");
      out_.line("{}", guarded(condition, call));
    }
  }
}

// ---- Statements -------------------------------------------------------------------------------------------------

std::string CudaKernelEmitter::origin_comment(const Stmt& s) const {
  if (!s.origin.valid() || !origins_.contains(s.origin) || origins_[s.origin].call.empty()) return "";
  return "  // " + one_line(origins_[s.origin].call);
}

void CudaKernelEmitter::mark_origin(const Stmt& s) {
  if (!s.origin.valid() || !origins_.contains(s.origin) || origins_[s.origin].file.empty()) {
    unmark_origin();
    return;
  }
  out_.line("#line {} \"{}\"", std::max(origins_[s.origin].line, 1), one_line(origins_[s.origin].file));
  marked_ = true;
}

void CudaKernelEmitter::unmark_origin() {
  if (marked_) out_.line("#line 1 \"{}.cu\"", kernel_.name);
  marked_ = false;
}

void CudaKernelEmitter::assign(StmtId id, const std::string& value) {
  const Stmt& s = stmt(id);
  mark_origin(s);
  out_.line("const {} {} = {};{}", cuda_type(s.dtype), value_name(id), value, origin_comment(s));
}

void CudaKernelEmitter::emit_statement(StmtId id, const Body& body) {
  const Stmt& s = stmt(id);
  const bool lane = has_lanes(s);
  if (made_.count(id.index())) return;
  if (const auto* load = s.as<loops::Load>()) {
    emit_load(id, *load, body);
    return;
  }
  if (const auto* store = s.as<loops::Store>()) {
    emit_store(id, *store, body);
    return;
  }
  if (const auto* check = s.as<loops::Check>()) {
    emit_check(id, *check, body);
    return;
  }
  if (const auto* constant = s.as<loops::Constant>()) {
    assign(id, cuda_literal(constant->value));
  } else if (plan::philox_vec4(kernel_, id, vector_var_, width_)) {
    const std::vector<StmtId>& from = s.as<loops::Apply>()->operands;
    mark_origin(s);
    out_.line(
        "if (e % 4 == 0) z{} = cxxi_philox_draw({}, {}, (unsigned int)({} >> 2), (unsigned int)({}), (unsigned "
        "int)({}));",
        id.index(), value_name(from[0]), value_name(from[1]), value_name(from[2]), value_name(from[3]),
        value_name(from[4]));
    assign(id, fmt::format("cxxi_philox_word(z{}, e % 4)", id.index()));
  } else if (const auto* index = s.as<loops::Index>()) {
    assign(id, wide_expression(index->value, lane));
  } else if (const auto* apply = s.as<loops::Apply>()) {
    assign(id, applied(id, *apply));
  } else if (const auto* project = s.as<loops::Project>()) {
    const bool array = columns_;
    assign(id, fmt::format("r{}{}.result<{}>()", project->of.index(),
                           !array ? ""
                           : lane ? "[e]"
                                  : "[0]",
                           project->result));
  }
  keep(id, body);
}

std::string CudaKernelEmitter::applied(StmtId id, const loops::Apply& apply) const {
  const DType dtype = stmt(id).dtype;
  if (plan::shares_divisor(kernel_, id)) {  // without lanes; see emit_lanes
    return fmt::format("d{}.divide({})", apply.operands[1].index(), value_name(apply.operands[0]));
  }
  if (const StmtId rounded = rounded_value(id); rounded.valid()) {
    return fmt::format("cxxi_rounded<{}>({})", cuda_type(stmt(apply.operands[0]).dtype), value_name(rounded));
  }
  std::vector<std::string> operands;
  for (StmtId operand : apply.operands) operands.push_back(value_name(operand));
  const ScalarOpInfo& op = info(apply.op);
  if (op.rule == TypeRule::Cast) return fmt::format("cxxi_cast<{}>({})", cuda_type(dtype), operands.at(0));
  const size_t typed = op.rule == TypeRule::Select ? 1 : 0;
  return cuda_apply(op, stmt(apply.operands.at(typed)).dtype, operands);
}

// Is the statement a cast to f32 of a value that the same segment narrows from f32? That value; the narrow one, which
// a store may still want, is not waited for.
plan::StmtId CudaKernelEmitter::rounded_value(StmtId id) const {
  const auto* widen = stmt(id).as<loops::Apply>();
  if (widen->op != ScalarOp::Cast || stmt(id).dtype != DType::F32 || !here_.count(widen->operands[0].index()))
    return {};
  const Stmt& narrow = stmt(widen->operands[0]);
  const auto* cast = narrow.as<loops::Apply>();
  if (!cast || cast->op != ScalarOp::Cast || (narrow.dtype != DType::BF16 && narrow.dtype != DType::F16)) return {};
  return stmt(cast->operands[0]).dtype == DType::F32 ? cast->operands[0] : StmtId();
}

// What later segments read is put where they look for it.
void CudaKernelEmitter::keep(StmtId id, const Body& body) {
  const bool lane = has_lanes(stmt(id));
  if (persistent(id)) {
    const std::string entry = fmt::format("w{}{}", id.index(), body.item);
    out_.line("{}", lane ? fmt::format("{}.set(e, {});", entry, value_name(id))
                         : fmt::format("{} = {};", entry, value_name(id)));
  } else if (lane && kept_.count(id.index())) {
    out_.line("w{}[e] = {};", id.index(), value_name(id));
  }
}

// The same for what lies in an array of lanes.
void CudaKernelEmitter::keep_lanes(StmtId id, const Body& body) {
  if (!persistent(id) && kept_.count(id.index()) == 0) return;
  out_.line("#pragma unroll");
  open(fmt::format("for (int e = 0; e < {}; ++e) {{", width_));
  out_.line("const {} {} = l{}[e];", cuda_type(stmt(id).dtype), value_name(id), id.index());
  keep(id, body);
  close();
}

std::string CudaKernelEmitter::scalar_load(StmtId id, const loops::Load& load, const Body& body, bool lane) const {
  const std::string place = fmt::format("p{}[{}]", load.buffer.index(), expression(kernel_.offsets[id], lane));
  const std::string condition = join({lane ? lane_condition(body) : "", load.mask.valid() ? value_name(load.mask) : "",
                                      range_condition(kernel_.offsets[id])});
  if (condition.empty()) return place;
  const DType dtype = stmt(id).dtype;
  const Scalar other = load.mask.valid() ? load.other : Scalar::from_integer(dtype, 0);
  return fmt::format("{} ? {} : {}", condition, place, cuda_literal(other));
}

std::string CudaKernelEmitter::wide_load(StmtId id, const loops::Load& load, const Body& body) const {
  const bool part = !body.count.empty();
  const std::string call = fmt::format("cxxi_load_{}<{}, {}>({}{})", part ? "part" : "group", width_,
                                       variant_.vectorized, address(id, false), part ? ", " + body.count : "");
  const std::string condition =
      join({load.mask.valid() ? value_name(load.mask) : "", range_condition(kernel_.offsets[id])});
  if (condition.empty()) return call;
  const Scalar other = load.mask.valid() ? load.other : Scalar::from_integer(stmt(id).dtype, 0);
  return fmt::format("{} ? {} : cxxi_fill_group<{}>({})", condition, call, width_, cuda_literal(other));
}

void CudaKernelEmitter::emit_load(StmtId id, const loops::Load& load, const Body& body) {
  const bool lane = has_lanes(stmt(id));
  const std::string get = lane ? ".get(e)" : "";
  const bool loaded = is_wide(id) || early_.count(id.index()) != 0;
  if (is_staged(id)) {
    assign(id, staged_element(id));
  } else if (!loaded) {
    assign(id, scalar_load(id, load, body, lane));
    keep(id, body);
    return;
  } else if (persistent(id)) {
    assign(id, fmt::format("w{}{}{}", id.index(), body.item, get));
  } else {
    assign(id, fmt::format("g{}{}{}", id.index(), early_.count(id.index()) ? body.slot : "", get));
  }
  if (!persistent(id)) keep(id, body);
}

void CudaKernelEmitter::emit_store(StmtId id, const loops::Store& store, const Body& body) {
  const Stmt& s = stmt(id);
  mark_origin(s);
  if (is_wide(id)) {
    out_.line("g{}.set(e, {});", id.index(), value_name(store.value));
    return;
  }
  const bool lane = has_lanes(s);
  const std::string condition =
      join({body.side_effects, once_condition(s.vars, body), lane ? lane_condition(body) : "",
            store.mask.valid() ? value_name(store.mask) : "", range_condition(kernel_.offsets[id])});
  const std::string place = expression(kernel_.offsets[id], lane);
  const std::string text =
      store.combine == Combine::Overwrite
          ? fmt::format("p{}[{}] = {};", store.buffer.index(), place, value_name(store.value))
          : fmt::format("cxxi_put_{}<cxxi_by_{}>(p{} + {}, {});", store.conflict_order ? "atomic" : "alone",
                        name_of(store.combine), store.buffer.index(), place, value_name(store.value));
  out_.line("{}", guarded(condition, text));
}

void CudaKernelEmitter::emit_check(StmtId id, const loops::Check& check, const Body& body) {
  const Stmt& s = stmt(id);
  const bool lane = has_lanes(s);
  mark_origin(s);
  const std::string index = value_name(check.index), bound = wide_expression(check.bound, lane);
  const std::string condition = join({body.side_effects, once_condition(s.vars, body), lane ? lane_condition(body) : "",
                                      fmt::format("!cxxi_within({}, {})", index, bound)});
  out_.line("if ({}) cxxi_report(cxxi_record, {}, {}, {});  // {}", condition, id.index(), index, bound,
            one_line(check.what));
}

// Reductions take compute types, folds what they join: any and all take truth values.
DType CudaKernelEmitter::reduced_dtype(const loops::Reduce& reduce) const {
  const DType operand = compute_type(stmt(reduce.operand).dtype);
  return info(reduce.reduction).fold ? form(reduce.reduction).state.front().dtype(operand) : operand;
}

std::string CudaKernelEmitter::reduced_value(const loops::Reduce& reduce) const {
  const DType dtype = reduced_dtype(reduce);
  const std::string value = value_name(reduce.operand);
  return dtype == stmt(reduce.operand).dtype ? value : fmt::format("cxxi_cast<{}>({})", cuda_type(dtype), value);
}

void CudaKernelEmitter::emit_reduce(StmtId id, const loops::Reduce& reduce, const Body& body) {
  // Row variables that it does not reduce over count once.
  Body row;
  for (VarId v : kernel_.mapping.row) row.running |= loops::VarSet::of(v);
  const std::string once = once_condition(reduce.over, row);
  const bool positions = form(reduce.reduction).takes_index();
  const std::string position = positions ? body.position : "0";
  const std::string value = reduced_value(reduce);
  std::string call;
  if (is_across(id)) {
    out_.line("r{}{}[{}].update({}, 0);", id.index(), shared(id) ? "" : body.item,
              has_lanes(stmt(reduce.operand)) ? "e" : "0", value);
    return;
  }
  if (columns_) {
    call = fmt::format("a{}[{}].update({}, {});", id.index(), has_lanes(stmt(reduce.operand)) ? "e" : "0", value,
                       position);
  } else if (body.lanes && (reduce.over.contains(vector_var_) || has_lanes(stmt(reduce.operand)))) {
    call = fmt::format("r{}.update(q{}, {}, {});", id.index(), id.index(),
                       body.count.empty() ? std::to_string(width_) : body.count, position);
  } else {
    call = fmt::format("r{}.update({}, {});", id.index(), value, position);
  }
  out_.line("{}", guarded(once, call));
}

void CudaKernelEmitter::open(std::string_view text) {
  out_.raw_line(text);
  out_.indent();
}

void CudaKernelEmitter::close(std::string_view text) {
  out_.dedent();
  out_.raw_line(text);
}

}  // namespace cxxinductor::codegen

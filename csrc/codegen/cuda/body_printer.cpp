// Bodies: a spelling of each kind of step.
#include <algorithm>

#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/spelling.h"
#include "codegen/spelling.h"
#include "ir/plan/tile_layout.h"
#include "support/error.h"
#include "support/overloaded.h"

namespace cxxinductor::codegen {
namespace {

using kernels::Form;
using kernels::Guard;
using kernels::Slot;
using kernels::Step;
using kernels::Where;

// An element of the tile.
std::string staged(const plan::Kernel& kernel, const Slot& slot, StmtId id) {
  const plan::TileLayout layout{tile_size(kernel.mapping), slot.width, byte_size(kernel.region.body[id].dtype)};
  const std::string row = slot.width == 1 ? "cxxi_row" : fmt::format("cxxi_row % {0} * {1} + cxxi_row / {0}", slot.width, layout.groups());
  return fmt::format("t{}[{}][cxxi_x].get({})", id.index(), row, slot.width > 1 ? "e" : "0");
}

// Conditions joined by &&, empty ones left out.
std::string all_of(const std::vector<std::string>& conditions) {
  std::string text;
  for (const std::string& condition : conditions)
    if (!condition.empty()) text += (text.empty() ? "" : " && ") + condition;
  return text;
}

// Reductions take compute types, folds what they join: any and all take truth values.
DType reduced_dtype(const loops::Region& region, const loops::Reduce& reduce) {
  const DType operand = compute_type(region.body[reduce.operand].dtype);
  return info(reduce.reduction).fold ? form(reduce.reduction).state.front().dtype(operand) : operand;
}

std::string reduced_value(const loops::Region& region, const loops::Reduce& reduce) {
  const DType dtype = reduced_dtype(region, reduce);
  const std::string value = value_name(reduce.operand);
  return dtype == region.body[reduce.operand].dtype ? value : fmt::format("cxxi_cast<{}>({})", cuda_type(dtype), value);
}

// Of a load that is not made.
std::string other_value(const loops::Stmt& stmt) {
  const auto& load = *stmt.as<loops::Load>();
  return cuda_literal(load.mask.valid() ? load.other : Scalar::from_integer(stmt.dtype, 0));
}

class BodyPrinter {
 public:
  BodyPrinter(const CudaText& text, const kernels::Steps& steps)
      : text_(text), kernel_(text.kernel), slot_(steps.slot), item_(fmt::format("[{}]", steps.item)), ahead_(steps.are_ahead) {}

  std::string print(const std::vector<Step>& steps) && {
    for (const Step& step : steps) print(step);
    end_origin();
    return std::move(out_).take();
  }

 private:
  void print(const Step& step) {
    switch (step.kind) {
      case Step::Kind::LoadStates:
        return load_states(step.stmt);
      case Step::Kind::StoreStates:
        end_origin();
        return out_.line("s{0}.store(r{0}, cxxi_linear);", step.stmt.index());
      case Step::Kind::Bring:
        return bring(step);
      case Step::Kind::LoadGroup:
        return load_group(step);
      case Step::Kind::Load:
        return load(step);
      case Step::Kind::Compute:
        if (step.form == Form::FourWide) draw_words(step.stmt);
        return assign(step.stmt, value_of(step.stmt, step.form));
      case Step::Kind::Keep:
        return keep(step);
      case Step::Kind::Reserve:
        return reserve(step);
      case Step::Kind::BeginLanes:
        end_origin();
        return begin_lanes();
      case Step::Kind::EndLanes:
        end_origin();
        return out_.line("}}");
      case Step::Kind::Fill:
        return fill(step.stmt);
      case Step::Kind::Divide:
        return divide(step.stmt);
      case Step::Kind::StoreGroup:
        return guarded(step.guard, false, group_access("store", step.stmt, fmt::format(", g{}", step.stmt.index())) + ";");
      case Step::Kind::Store:
        return store(step);
      case Step::Kind::Check:
        return check(step);
      case Step::Kind::Update:
      case Step::Kind::UpdateGroup:
        return update(step);
    }
  }

  void begin_lanes() {
    out_.line("#pragma unroll");
    out_.line("for (int e = 0; e < {}; ++e) {{", slot_.width);
  }

  // ---- Conditions and places ------------------------------------------------------------------------------------

  // lane: of one element, inside the loop over lanes.
  std::string condition(const Guard& guard, bool lane) const {
    std::vector<std::string> conditions;
    if (guard.effects && slot_.effects.first_thread) conditions.emplace_back("cxxi_lane == 0");
    if (guard.effects && slot_.effects.live_row) conditions.emplace_back("cxxi_live");
    for (VarId v : guard.once) conditions.push_back(fmt::format("{} == 0", text_.variable(v)));
    if (guard.lanes && lane) conditions.emplace_back("e < cxxi_lanes");
    if (guard.mask.valid()) conditions.push_back(value_name(guard.mask));
    for (StmtId id : guard.in_range) {
      const auto& check = *stmt(id).as<loops::Check>();
      conditions.push_back(fmt::format("cxxi_within({}, {})", value_name(check.index), text_.wide_expression(check.bound)));
    }
    return all_of(conditions);
  }

  void guarded(const Guard& guard, bool lane, const std::string& statement) {
    const std::string when = condition(guard, lane);
    out_.line("{}{}", when.empty() ? "" : fmt::format("if ({}) ", when), statement);
  }

  std::string place(StmtId id, Where where) const {
    switch (where) {
      case Where::Value:
        return value_name(id);
      case Where::Group:
        return fmt::format("g{}", id.index());
      case Where::Ahead:
        return fmt::format("g{}[u]", id.index());
      case Where::Next:
        return fmt::format("n{}{}", id.index(), kernel_.memory_spaces[id] == plan::MemorySpace::Persistent ? item_ : "");
      case Where::Persistent:
        return fmt::format("w{}{}", id.index(), item_);
      case Where::Lanes:
        return fmt::format("l{}[e]", id.index());
      case Where::Columns:
        return fmt::format("w{}[e]", id.index());
      case Where::State:
        return fmt::format("r{}", id.index());
      case Where::Accumulators:
      case Where::States:
      case Where::SharedStates: {
        const auto& reduce = *stmt(id).as<loops::Reduce>();
        return fmt::format("{}{}{}[{}]", where == Where::Accumulators ? "a" : "r", id.index(), where == Where::States ? item_ : "",
                           lanes(reduce.operand) ? "e" : "0");
      }
      case Where::Memory:
      case Where::Tile:
        break;
    }
    throw_internal("%{} of kernel {} has no name where a body looks for it", id.index(), kernel_.name);
  }

  // ---- Values ---------------------------------------------------------------------------------------------------

  void load_states(StmtId id) {
    out_.line("{} r{}[{}];", text_.state(id), id.index(), slot_.width);
    out_.line("s{0}.load(r{0}, cxxi_linear);", id.index());
  }

  void bring(const Step& step) {
    const StmtId id = step.stmt;
    std::string value = place(id, step.where);
    if (step.where == Where::States || step.where == Where::SharedStates) {
      value = fmt::format("cxxi_cast<{}>({}.result<0>())", type(id), value);
    } else if (step.where == Where::Group) {
      value += lanes(id) ? ".get(e)" : ".get(0)";
    } else if (step.where == Where::Persistent && lanes(id)) {
      value += ".get(e)";
    }
    out_.line("const {} {} = {};", type(id), value_name(id), value);
  }

  std::string group_access(std::string_view access, StmtId id, std::string_view value) const {
    return fmt::format("cxxi_{}_{}<{}, {}>({}{}{})", access, slot_.masked_tail ? "part" : "group", slot_.width, text_.variant.vectorized, text_.address(id),
                       value, slot_.masked_tail ? ", cxxi_lanes" : "");
  }

  std::string scalar_load(const Step& step, bool lane) const {
    const auto& load = *stmt(step.stmt).as<loops::Load>();
    const std::string element = fmt::format("p{}[{}]", load.buffer.index(), text_.expression(kernel_.offsets[step.stmt], moving(lane)));
    const std::string when = condition(step.guard, lane);
    if (when.empty()) return element;
    return fmt::format("{} ? {} : {}", when, element, other_value(stmt(step.stmt)));
  }

  void load_group(const Step& step) {
    const StmtId id = step.stmt;
    const std::string to = place(id, step.where);
    if (!lanes(id)) return out_.line("{} = {};", to, scalar_load(step, false));
    if (!is_wide(kernel_, slot_, id)) {
      begin_lanes();
      out_.line("{}.set(e, {});", to, scalar_load(step, true));
      return out_.line("}}");
    }
    std::string value = group_access("load", id, "");
    if (const std::string when = condition(step.guard, false); !when.empty())
      value = fmt::format("{} ? {} : cxxi_fill_group<{}>({})", when, value, slot_.width, other_value(stmt(id)));
    if (ahead_) return out_.line("{} = {};", to, value);
    begin_origin(stmt(id));
    const std::string head = step.where == Where::Group ? fmt::format("const {} ", type_of_group(id)) : "";
    out_.line("{}{} = {};{}", head, to, value, text_.origin_comment(id));
  }

  void load(const Step& step) {
    const bool lane = lanes(step.stmt);
    if (step.where == Where::Tile) return assign(step.stmt, staged(kernel_, slot_, step.stmt));
    if (step.where == Where::Memory) return assign(step.stmt, scalar_load(step, lane));
    assign(step.stmt, place(step.stmt, step.where) + (lane ? ".get(e)" : ""));
  }

  void draw_words(StmtId id) {
    const std::vector<StmtId>& from = stmt(id).as<loops::Apply>()->operands;
    begin_origin(stmt(id));
    out_.line("if (e % 4 == 0) z{} = cxxi_philox_draw({}, {}, (unsigned int)({} >> 2), (unsigned int)({}), (unsigned int)({}));", id.index(),
              value_name(from[0]), value_name(from[1]), value_name(from[2]), value_name(from[3]), value_name(from[4]));
  }

  std::string value_of(StmtId id, Form form) const {
    if (form == Form::FourWide) return fmt::format("cxxi_philox_word(z{}, e % 4)", id.index());
    return std::visit(Overloaded{[&](const loops::Constant& constant) { return cuda_literal(constant.value); },
                                 [&](const loops::Index& index) { return text_.wide_expression(index.value, moving(lanes(id))); },
                                 [&](const loops::Project& project) {
                                   const std::string_view entry = !is_columns(kernel_.mapping) ? "" : lanes(id) ? "[e]" : "[0]";
                                   return fmt::format("r{}{}.result<{}>()", project.of.index(), entry, project.result);
                                 },
                                 [&](const loops::Apply& apply) { return applied(id, apply, form); },
                                 [&]<kernels::HasStep Kind>(const Kind&) -> std::string { throw_internal("%{} has a step of its own", id.index()); }},
                      stmt(id).kind);
  }

  std::string applied(StmtId id, const loops::Apply& apply, Form form) const {
    if (form == Form::SharedDivisor) return fmt::format("d{}.divide({})", apply.operands[1].index(), value_name(apply.operands[0]));
    if (form == Form::Rounded) {
      const StmtId narrow = apply.operands[0];
      return fmt::format("cxxi_rounded<{}>({})", type(narrow), value_name(stmt(narrow).as<loops::Apply>()->operands[0]));
    }
    std::vector<std::string> operands;
    for (StmtId operand : apply.operands) operands.push_back(value_name(operand));
    const ScalarOpInfo& op = info(apply.op);
    if (op.rule == TypeRule::Cast) return fmt::format("cxxi_cast<{}>({})", type(id), operands.at(0));
    return cuda_apply(op, stmt(apply.operands.at(op.rule == TypeRule::Select ? 1 : 0)).dtype, operands);
  }

  void keep(const Step& step) {
    const StmtId id = step.stmt;
    if (step.where == Where::Lanes) end_origin();
    if (step.where == Where::Persistent && lanes(id)) return out_.line("{}.set(e, {});", place(id, step.where), value_name(id));
    out_.line("{} = {};", place(id, step.where), value_name(id));
  }

  // ---- Lanes ----------------------------------------------------------------------------------------------------

  void reserve(const Step& step) {
    const StmtId id = step.stmt;
    end_origin();
    if (step.form == Form::FourWide) return out_.line("cxxi_philox_words z{} = {{}};", id.index());
    if (step.where == Where::Group) return out_.line("{} g{} = {{}};", type_of_group(id), id.index());
    if (const auto* reduce = stmt(id).as<loops::Reduce>())
      return out_.line("{} q{}[{}];", cuda_type(reduced_dtype(kernel_.region, *reduce)), id.index(), slot_.width);
    out_.line("{} l{}[{}];", type(id), id.index(), slot_.width);
  }

  void fill(StmtId id) {
    const loops::Stmt& s = stmt(id);
    if (const auto* reduce = s.as<loops::Reduce>()) return out_.line("q{}[e] = {};", id.index(), reduced_value(kernel_.region, *reduce));
    if (const auto* store = s.as<loops::Store>()) {
      begin_origin(s);
      return out_.line("g{}.set(e, {});", id.index(), value_name(store->value));
    }
    end_origin();
    out_.line("l{}[e] = {};", id.index(), value_name(s.as<loops::Apply>()->operands[0]));
  }

  void divide(StmtId id) {
    begin_origin(stmt(id));
    out_.line("d{}.divide_all(l{});{}", stmt(id).as<loops::Apply>()->operands[1].index(), id.index(), text_.origin_comment(id));
    end_origin();
  }

  // ---- Effects --------------------------------------------------------------------------------------------------

  void store(const Step& step) {
    const loops::Stmt& s = stmt(step.stmt);
    const auto& store = *s.as<loops::Store>();
    const bool lane = lanes(step.stmt);
    begin_origin(s);
    const std::string offset = text_.expression(kernel_.offsets[step.stmt], moving(lane));
    const std::string text = store.combine == Combine::Overwrite
                                 ? fmt::format("p{}[{}] = {};", store.buffer.index(), offset, value_name(store.value))
                                 : fmt::format("cxxi_put_{}<cxxi_by_{}>(p{} + {}, {});", store.conflict_order ? "atomic" : "alone", name_of(store.combine),
                                               store.buffer.index(), offset, value_name(store.value));
    guarded(step.guard, lane, text);
  }

  void check(const Step& step) {
    const loops::Stmt& s = stmt(step.stmt);
    const auto& check = *s.as<loops::Check>();
    const bool lane = lanes(step.stmt);
    begin_origin(s);
    const std::string index = value_name(check.index), bound = text_.wide_expression(check.bound, moving(lane));
    const std::string when = all_of({condition(step.guard, lane), fmt::format("!cxxi_within({}, {})", index, bound)});
    out_.line("if ({}) cxxi_report(cxxi_record, {}, {}, {});  // {}", when, step.stmt.index(), index, bound, one_line(check.what));
  }

  void update(const Step& step) {
    const auto& reduce = *stmt(step.stmt).as<loops::Reduce>();
    const bool all_lanes = step.kind == Step::Kind::UpdateGroup;
    const std::string count = slot_.masked_tail ? "cxxi_lanes" : std::to_string(slot_.width);
    const std::string operands = all_lanes ? fmt::format("q{}, {}", step.stmt.index(), count) : reduced_value(kernel_.region, reduce);
    const std::string_view at = form(reduce.reduction).takes_index() && step.where != Where::States && step.where != Where::SharedStates ? position() : "0";
    guarded(step.guard, false, fmt::format("{}.update({}, {});", place(step.stmt, step.where), operands, at));
  }

  // ---- Origins --------------------------------------------------------------------------------------------------

  void assign(StmtId id, const std::string& value) {
    begin_origin(stmt(id));
    out_.line("const {} {} = {};{}", type(id), value_name(id), value, text_.origin_comment(id));
  }

  void begin_origin(const loops::Stmt& s) {
    const OriginTable& origins = text_.origins;
    if (!s.origin.valid() || !origins.contains(s.origin) || origins[s.origin].file.empty()) return end_origin();
    out_.line("#line {} \"{}\"", std::max(origins[s.origin].line, 1), one_line(origins[s.origin].file));
    marked_ = true;
  }

  void end_origin() {
    if (marked_) out_.line("#line 1 \"{}.cu\"", kernel_.name);
    marked_ = false;
  }

  // Of the fragment's first element in the row.
  std::string_view position() const { return is_columns(kernel_.mapping) ? "(long long)(cxxi_linear)" : "cxxi_position"; }

  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool lanes(StmtId id) const { return has_lanes(kernel_, slot_, id); }
  std::string_view type(StmtId id) const { return cuda_type(stmt(id).dtype); }
  std::string type_of_group(StmtId id) const { return text_.fragment_type(kernels::type_of(kernel_, slot_, id)); }
  // The variable that moves with the lanes, of a step of one lane.
  VarId moving(bool lane) const { return lane ? slot_.vector_var : VarId(); }

  const CudaText& text_;
  const plan::Kernel& kernel_;
  const Slot& slot_;
  const std::string item_;  // entry of the arrays of Persistent values and of the next row's loads
  TextWriter out_;
  const bool ahead_;     // loads of several fragments, which are declared around and belong to no line
  bool marked_ = false;  // a #line is in force
};

}  // namespace

std::string print_steps(const CudaText& text, const kernels::Steps& steps) { return BodyPrinter(text, steps).print(steps.steps); }

}  // namespace cxxinductor::codegen

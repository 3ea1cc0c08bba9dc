// Bodies: a spelling of each kind of step.
//
// A value has lanes (`lanes(id)`) if it differs along the slot's vector variable: it is then a vector of L lanes, else a scalar. `width(id)` is its
// number of lanes in the text, "L" or "1". The body is a generic lambda over L, so a vector of one lane is a scalar, too. In columns (`strip_`), rows
// run inside of a strip of the vector variable: states and values of rows are arrays with an entry per element of it, not variables.
#include <algorithm>

#include "codegen/cpu/cpu_text.h"
#include "codegen/cpu/spelling.h"
#include "codegen/spelling.h"
#include "support/error.h"
#include "support/overloaded.h"

namespace cxxinductor::codegen {
namespace {

using kernels::Slot;
using kernels::Step;
using kernels::Where;

class BodyPrinter {
 public:
  BodyPrinter(const CpuText& text, const kernels::Steps& steps)
      : text_(text), kernel_(text.kernel), slot_(steps.slot), in_lambda_(steps.in_lambda), strip_(is_columns(text.kernel.mapping)) {}

  std::string print(const std::vector<Step>& steps) && {
    for (const Step& step : steps) print(step);
    if (marked_ && in_lambda_) out_.line("#line 1 \"{}\"", kernel_.name);
    return std::move(out_).take();
  }

 private:
  void print(const Step& step) {
    const StmtId id = step.stmt;
    switch (step.kind) {
      case Step::Kind::Bring:
        return assign(id, brought(id, step.where));
      case Step::Kind::Load:
        begin_origin(stmt(id));
        return assign(id, loaded(id, *stmt(id).as<loops::Load>(), step.where));
      case Step::Kind::Compute:
        begin_origin(stmt(id));
        return assign(id, computed(id));
      case Step::Kind::Keep:
        return out_.line("cxxi::store<{}, {}>(w{} + ({}), {});", tag(id), width(id), id.index(), array_entry(step.where), value_name(id));
      case Step::Kind::Store:
        begin_origin(stmt(id));
        return store(id, once(step.guard));
      case Step::Kind::Check:
        begin_origin(stmt(id));
        return check(id, once(step.guard));
      case Step::Kind::Update:
        begin_origin(stmt(id));
        return update(id, once(step.guard));
      case Step::Kind::LoadStates:
      case Step::Kind::StoreStates:
      case Step::Kind::LoadGroup:
      case Step::Kind::Reserve:
      case Step::Kind::BeginLanes:
      case Step::Kind::EndLanes:
      case Step::Kind::Fill:
      case Step::Kind::Divide:
      case Step::Kind::StoreGroup:
      case Step::Kind::UpdateGroup:
        break;
    }
    throw_internal("kernel {}: a body of vectors has no loop over lanes", kernel_.name);
  }

  void begin_origin(const loops::Stmt& s) {
    if (!s.origin.valid() || !text_.origins.contains(s.origin)) return;
    const Origin& origin = text_.origins[s.origin];
    if (!origin.call.empty() || !origin.module.empty()) out_.line("// {} {}", one_line(origin.call), one_line(origin.module));
    if (origin.file.empty()) return;
    out_.line("#line {} \"{}\"", std::max(origin.line, 1), one_line(origin.file));
    marked_ = true;
  }

  // "x_i0 == 0 && ...": where it happens once; empty: everywhere.
  std::string once(const kernels::Guard& guard) const {
    std::string text;
    for (VarId v : guard.once) text += fmt::format("{}{} == 0", text.empty() ? "" : " && ", text_.variable(v));
    return text;
  }

  // ---- Values ---------------------------------------------------------------------------------------------------

  // Of this fragment.
  std::string array_entry(Where where) const { return where == Where::Columns ? text_.variable(slot_.vector_var) + " - cxxi_strip" : "cxxi_element"; }

  // From an array or the states of an earlier segment.
  std::string brought(StmtId id, Where from) const {
    if (from == Where::Columns) return fmt::format("cxxi::load<{}, {}>(w{} + ({}))", tag(id), width(id), id.index(), array_entry(from));
    if (from != Where::States) return fmt::format("cxxi::load<{}, {}>(w{} + {})", tag(id), width(id), id.index(), array_entry(from));
    const auto* project = stmt(id).as<loops::Project>();
    const StmtId state = project ? project->of : id;
    const std::string value = fmt::format("r{}.template at<L>(cxxi_group).template result<{}>()", state.index(), project ? project->result : 0);
    return lanes(id) ? value : fmt::format("cxxi::lane({}, 0)", value);
  }

  // Does it read a value with lanes?
  bool follows_lanes(sym::Expr e) const {
    for (sym::Expr symbol : e.free_symbols())
      if (const StmtId source = loops::statement_of_symbol(symbol.name()); source.valid() && lanes(source)) return true;
    return false;
  }

  std::string offset_lambda(StmtId id) const {
    return fmt::format("[&](int cxxi_lane) -> index {{ return {}; }}", text_.lane_expression(kernel_.offsets[id], slot_, "cxxi_lane"));
  }

  // Does the offset grow by one along the vector variable?
  bool consecutive(StmtId id) const {
    if (!slot_.vector_var.valid()) return false;
    sym::Expr coefficient, rest;
    if (!sym::split_linear(kernel_.offsets[id], kernel_.region.symbol(slot_.vector_var), &coefficient, &rest)) return false;
    return !follows_lanes(rest) && coefficient.is_constant(1);
  }

  std::string loaded(StmtId id, const loops::Load& load, Where from) const {
    if (from != Where::Memory) return brought(id, from);
    const std::string base = fmt::format("p{}", load.buffer.index());
    const bool direct = !lanes(id) || kernel_.access[id] == plan::AccessKind::Vector;
    if (!load.mask.valid()) {
      if (direct) return fmt::format("cxxi::load<{}, {}>({} + {})", tag(id), width(id), base, text_.expression(kernel_.offsets[id]));
      return fmt::format("cxxi::gather<{}, {}>({}, {})", tag(id), width(id), base, offset_lambda(id));
    }
    const bool wide = lanes(id) && (direct || consecutive(id));
    return fmt::format("cxxi::{}<{}, {}>({}, {}, {}, {})", wide ? "load_masked" : "gather_masked", tag(id), width(id), value_name(load.mask), base,
                       offset_lambda(id), cpu_literal(load.other));
  }

  std::string computed(StmtId id) const {
    return std::visit(Overloaded{[&](const loops::Constant& constant) { return cpu_literal(constant.value); },
                                 [&](const loops::Index& index) { return positions(id, index); }, [&](const loops::Apply& apply) { return applied(id, apply); },
                                 [&](const loops::Project& project) {
                                   return strip_ ? brought(id, Where::States) : fmt::format("t{}.template result<{}>()", project.of.index(), project.result);
                                 },
                                 [&]<kernels::HasStep Kind>(const Kind&) -> std::string { throw_internal("%{} has a step of its own", id.index()); }},
                      stmt(id).kind);
  }

  std::string positions(StmtId id, const loops::Index& index) const {
    if (!lanes(id)) return first_lane(index);
    sym::Expr coefficient, rest;
    if (sym::split_linear(index.value, kernel_.region.symbol(slot_.vector_var), &coefficient, &rest) && !follows_lanes(index.value))
      return fmt::format("cxxi::iota<L>({}, {})", text_.expression(index.value), text_.expression(coefficient));
    return fmt::format("cxxi::by_lane<long long, L>([&](int cxxi_lane) -> index {{ return {}; }})", text_.lane_expression(index.value, slot_, "cxxi_lane"));
  }

  std::string applied(StmtId id, const loops::Apply& apply) const {
    std::vector<std::string> operands;
    for (StmtId operand : apply.operands) {
      const auto* index = stmt(operand).as<loops::Index>();
      operands.push_back(index && slot_.uniform.stmts.contains(id) ? first_lane(*index) : value_name(operand));
    }
    return cpu_apply(info(apply.op), stmt(apply.operands.at(0)).dtype, stmt(id).dtype, width(id), operands);
  }

  // ---- Effects --------------------------------------------------------------------------------------------------

  void store(StmtId id, const std::string& condition) {
    out_.line("{}{}", condition.empty() ? "" : "if (" + condition + ") ", stored(id, *stmt(id).as<loops::Store>()));
  }

  std::string stored(StmtId id, const loops::Store& store) const {
    const std::string base = fmt::format("p{}", store.buffer.index()), value = value_name(store.value);
    if (const auto op = op_of(store.combine)) {
      const DType compute = compute_type(stmt(id).dtype);
      const std::string_view type = cpu_compute_type(compute);
      return fmt::format("cxxi::combine<{}, {}, {}>({}, {}, {}, {}, []({} a, {} b) {{ return {}; }});", tag(id), cpu_dtype_tag(compute), width(id),
                         store.mask.valid() ? value_name(store.mask) : "true", base, offset_lambda(id), value, type, type, cpu_expression(info(*op), compute));
    }
    if (store.mask.valid() && lanes(store.mask))
      return fmt::format("cxxi::scatter_masked<{}, {}>({}, {}, {}, {});", tag(id), width(id), value_name(store.mask), base, offset_lambda(id), value);
    const std::string condition = store.mask.valid() ? fmt::format("if ({}) ", value_name(store.mask)) : "";
    if (!lanes(id) || kernel_.access[id] == plan::AccessKind::Vector)
      return fmt::format("{}cxxi::store<{}, {}>({} + {}, {});", condition, tag(id), width(id), base, text_.expression(kernel_.offsets[id]), value);
    return fmt::format("{}cxxi::scatter<{}, {}>({}, {}, {});", condition, tag(id), width(id), base, offset_lambda(id), value);
  }

  void check(StmtId id, const std::string& condition) {
    const auto& check = *stmt(id).as<loops::Check>();
    out_.line("if ({}{}!cxxi::within({}, {}, cxxi_record, {})) {};", condition, condition.empty() ? "" : " && ", value_name(check.index),
              text_.expression(check.bound), id.index(), in_lambda_ ? "return false" : "return");
  }

  void update(StmtId id, const std::string& condition) {
    const auto& reduce = *stmt(id).as<loops::Reduce>();
    const std::string when = condition.empty() ? "" : "if (" + condition + ") ", value = value_name(reduce.operand);
    if (strip_) return out_.line("{}r{}.template at<L>(cxxi_group).update({}, cxxi_element);", when, id.index(), value);
    const std::string_view position = !form(reduce.reduction).takes_index() ? "0"
                                      : kernel_.always_index32              ? "cxxi::iota<L, int>(cxxi_element, 1)"
                                                                            : "cxxi::iota<L>(cxxi_element, 1)";
    out_.line("{}r{}.template at<L, decltype(cxxi_set)::value>().update({}, {});", when, id.index(), value, position);
  }

  std::string first_lane(const loops::Index& index) const { return fmt::format("static_cast<index>({})", text_.expression(index.value)); }

  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool lanes(StmtId id) const { return has_lanes(kernel_, slot_, id); }
  std::string width(StmtId id) const { return lanes(id) ? "L" : "1"; }
  std::string tag(StmtId id) const { return cpu_dtype_tag(stmt(id).dtype); }
  void assign(StmtId id, const std::string& value) { out_.line("const auto {} = {};", value_name(id), value); }

  const CpuText& text_;
  const plan::Kernel& kernel_;
  const Slot& slot_;
  const bool in_lambda_;
  const bool strip_;  // reduction states and Row values are arrays over a strip
  TextWriter out_;
  bool marked_ = false;  // a #line is in force
};

}  // namespace

std::string print_steps(const CpuText& text, const kernels::Steps& steps) { return BodyPrinter(text, steps).print(steps.steps); }

}  // namespace cxxinductor::codegen

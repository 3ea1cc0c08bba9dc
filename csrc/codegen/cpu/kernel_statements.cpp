// One statement of a region as C++: functions of kernels_templates/cpu/vector.h, applied to `L` lanes or to one.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "codegen/cpu/kernel_emitter.h"
#include "codegen/cpu/reduction_state.h"
#include "codegen/spelling.h"
#include "support/error.h"
#include "sym/print_c.h"

namespace cxxinductor::codegen {
namespace {

// The op applied to the parameters a, b, c ...
std::string spelling(const ScalarOpInfo& op, DType dtype) {
  const std::array<std::string, 5> names{"a", "b", "c", "d", "e"};
  const std::string_view row = is_float(dtype) ? op.cpu_real : op.cpu_integer;
  return applied_op(op, row, dtype, cpu_compute_type(dtype), std::span(names).first(static_cast<size_t>(op.arity)));
}

std::string parameters(int count, std::string_view type) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{} {}", i > 0 ? ", " : "", type, static_cast<char>('a' + i));
  return text;
}

}  // namespace

std::string cpu_dtype_tag(DType dtype) {
  if (is_opaque(dtype)) throw_unsupported("kernels do not compute with dtype {}", to_string(dtype));
  if (dtype == DType::Bool) return "cxxi::boolean";
  return fmt::format("cxxi::{}", to_string(dtype));
}

std::string_view cpu_compute_type(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return "double";
    case DType::F32:
      return "float";
    case DType::I8:
      return "signed char";
    case DType::I16:
      return "short";
    case DType::I32:
      return "int";
    case DType::I64:
      return "long long";
    case DType::U8:
      return "unsigned char";
    case DType::U16:
      return "unsigned short";
    case DType::U32:
      return "unsigned int";
    case DType::U64:
      return "unsigned long long";
    case DType::Bool:
      return "bool";
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3FN:
    case DType::F8E5M2:
    case DType::C32:
    case DType::C64:
    case DType::C128:
      break;
  }
  throw_internal("{} is no compute type", to_string(dtype));
}

std::string cpu_literal(const Scalar& value) {
  const DType dtype = value.dtype();
  if (dtype == DType::Bool) return value.truth() ? "true" : "false";
  if (is_float(dtype)) {
    const bool wide = dtype == DType::F64;
    const double real = value.real();
    std::string text;
    if (std::isnan(real)) {
      text = fmt::format("{}__builtin_nan{}(\"\")", std::signbit(real) ? "-" : "", wide ? "" : "f");
    } else if (std::isinf(real)) {
      text = fmt::format("{}__builtin_inf{}()", real < 0 ? "-" : "", wide ? "" : "f");
    } else if (real == 0) {  // versions of fmt differ in its exponent
      text = fmt::format("{}0x0p+0{}", std::signbit(real) ? "-" : "", wide ? "" : "f");
    } else {
      text = fmt::format("{:a}{}", real, wide ? "" : "f");
    }
    if (wide || dtype == DType::F32) return text;
    return fmt::format("cxxi::cast<{}, cxxi::f32>({})", cpu_dtype_tag(dtype), text);
  }
  const std::string_view type = cpu_compute_type(dtype);
  if (dtype == DType::U64) return fmt::format("{}ULL", static_cast<uint64_t>(value.integer()));
  if (value.integer() == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807LL - 1)";
  return fmt::format("static_cast<{}>({}LL)", type, value.integer());
}

std::string cpu_math_slot(std::string_view sleef, DType dtype) {
  return fmt::format("cxxi_slot_{}_{}", sleef, to_string(dtype));
}

// ---- expressions ------------------------------------------------------------------------------------------------

std::string CpuKernelEmitter::expression(sym::Expr e, std::string_view lane) const {
  sym::CSpelling spelled;
  spelled.integer_suffix = "LL";
  spelled.symbol = [&](std::string_view name) -> std::string {
    if (const StmtId id = loops::statement_of_symbol(name); id.valid()) {
      return lane.empty() || !has_lanes(stmt(id)) ? value_name(id)
                                                  : fmt::format("cxxi::lane({}, {})", value_name(id), lane);
    }
    for (size_t v = 0; v < kernel_.region.vars.size(); ++v) {
      const VarId var(v);
      if (kernel_.region.vars[var].name != name) continue;
      return lane.empty() || var != vector_var_ ? variable(var) : fmt::format("({} + {})", variable(var), lane);
    }
    return "s_" + identifier(name);
  };
  return sym::to_c(e, kernel_.assumptions, spelled);
}

std::string CpuKernelEmitter::offset_lambda(StmtId id) const {
  return fmt::format("[&](int cxxi_lane) -> index {{ return {}; }}", expression(kernel_.offsets[id], "cxxi_lane"));
}

bool CpuKernelEmitter::consecutive(StmtId id) const {
  if (!vector_var_.valid()) return false;
  sym::Expr coefficient, rest;
  if (!sym::split_linear(kernel_.offsets[id], kernel_.region.symbol(vector_var_), &coefficient, &rest)) return false;
  for (sym::Expr symbol : rest.free_symbols()) {
    const StmtId source = loops::statement_of_symbol(symbol.name());
    if (source.valid() && has_lanes(stmt(source))) return false;
  }
  return coefficient.is_constant(1);
}

std::string CpuKernelEmitter::once_condition(const Stmt& s) const {
  std::string text;
  for (size_t v = 0; v < kernel_.region.vars.size(); ++v) {
    const VarId var(v);
    if (!running_.contains(var) || s.vars.contains(var)) continue;
    text += fmt::format("{}{} == 0", text.empty() ? "" : " && ", variable(var));
  }
  return text;
}

// ---- segments ---------------------------------------------------------------------------------------------------

std::vector<plan::StmtId> CpuKernelEmitter::kept_operands(const std::vector<StmtId>& stmts) const {
  std::set<uint32_t> own, found;
  for (StmtId id : stmts) own.insert(id.index());
  for (StmtId id : stmts) {
    for (StmtId operand : loops::operands(stmt(id))) {
      if (!own.count(operand.index())) found.insert(operand.index());
    }
  }
  std::vector<StmtId> kept_ones;
  for (uint32_t id : found) kept_ones.emplace_back(id);
  return kept_ones;
}

std::vector<plan::StmtId> CpuKernelEmitter::reduces_of(const plan::Segment& segment) const {
  std::vector<StmtId> ids;
  for (StmtId id : segment.stmts) {
    if (stmt(id).as<loops::Reduce>()) ids.push_back(id);
  }
  return ids;
}

std::string CpuKernelEmitter::reduction_type(const loops::Reduce& reduce) const {
  const bool long_positions = form(reduce.reduction).takes_index() && !kernel_.always_index32;
  const DType operand = stmt(reduce.operand).dtype;
  return fmt::format("{}, {}", cpu_state(reduce.reduction, operand, long_positions), cpu_dtype_tag(operand));
}

// Makes a value of an earlier segment available in the body.
void CpuKernelEmitter::emit_kept(StmtId id) {
  const Stmt& s = stmt(id);
  if (!strip_) {  // a Row value has its name at the row's scope already
    if (persistent_.count(id.index())) {
      out_.line("const auto {} = cxxi::load<{}, {}>(w{} + cxxi_element);", value_name(id), cpu_dtype_tag(s.dtype),
                width(s), id.index());
    }
    return;
  }
  StmtId state = id;
  uint32_t result = 0;
  if (const auto* project = s.as<loops::Project>()) {
    state = project->of;
    result = project->result;
  }
  if (!stmt(state).as<loops::Reduce>()) {
    out_.line("const auto {} = cxxi::load<{}, {}>(w{} + ({} - cxxi_strip));", value_name(id), cpu_dtype_tag(s.dtype),
              width(s), id.index(), variable(vector_var_));
    return;
  }
  const std::string value = fmt::format("r{}.template at<L>(cxxi_group).template result<{}>()", state.index(), result);
  out_.line("const auto {} = {};", value_name(id), has_lanes(s) ? value : fmt::format("cxxi::lane({}, 0)", value));
}

// ---- statements -------------------------------------------------------------------------------------------------

void CpuKernelEmitter::mark_origin(const Stmt& s) {
  if (!s.origin.valid() || !origins_.contains(s.origin)) return;
  const Origin& origin = origins_[s.origin];
  if (!origin.call.empty() || !origin.module.empty()) {
    out_.line("// {} {}", one_line(origin.call), one_line(origin.module));
  }
  if (!origin.file.empty()) {
    out_.line("#line {} \"{}\"", std::max(origin.line, 1), one_line(origin.file));
    marked_ = true;
  }
}

void CpuKernelEmitter::emit_statement(StmtId id) {
  const Stmt& s = stmt(id);
  mark_origin(s);
  const std::string name = value_name(id);
  if (const auto* load = s.as<loops::Load>()) {
    out_.line("const auto {} = {};", name, load_text(id, s, *load));
  } else if (const auto* constant = s.as<loops::Constant>()) {
    out_.line("const auto {} = {};", name, cpu_literal(constant->value));
  } else if (const auto* index = s.as<loops::Index>()) {
    out_.line("const auto {} = {};", name, index_text(s, *index));
  } else if (const auto* apply = s.as<loops::Apply>()) {
    out_.line("const auto {} = {};", name, apply_text(s, *apply));
  } else if (const auto* reduce = s.as<loops::Reduce>()) {
    emit_reduce(id, *reduce);
    return;
  } else if (const auto* project = s.as<loops::Project>()) {
    if (strip_) {
      emit_kept(id);
    } else {
      out_.line("const auto {} = t{}.template result<{}>();", name, project->of.index(), project->result);
    }
    return;
  } else if (const auto* store = s.as<loops::Store>()) {
    const std::string condition = once_condition(s);
    out_.line("{}{}", condition.empty() ? "" : "if (" + condition + ") ", store_text(id, s, *store));
    return;
  } else if (const auto* check = s.as<loops::Check>()) {
    emit_check(id, s, *check);
    return;
  }
  if (persistent_.count(id.index())) {
    const std::string at = strip_ ? variable(vector_var_) + " - cxxi_strip" : "cxxi_element";
    out_.line("cxxi::store<{}, {}>(w{} + ({}), {});", cpu_dtype_tag(s.dtype), width(s), id.index(), at, name);
  }
}

std::string CpuKernelEmitter::load_text(StmtId id, const Stmt& s, const loops::Load& load) const {
  const std::string tag = cpu_dtype_tag(s.dtype), lanes = width(s);
  const std::string base = fmt::format("p{}", load.buffer.index());
  const bool direct = !has_lanes(s) || kernel_.access[id] == plan::AccessKind::Vector;
  if (kernel_.access[id] == plan::AccessKind::Staged) {
    return fmt::format("cxxi::load<{}, {}>(w{} + cxxi_element)", tag, lanes, id.index());
  }
  if (!load.mask.valid()) {
    if (direct) return fmt::format("cxxi::load<{}, {}>({} + {})", tag, lanes, base, expression(kernel_.offsets[id]));
    return fmt::format("cxxi::gather<{}, {}>({}, {})", tag, lanes, base, offset_lambda(id));
  }
  const bool wide = has_lanes(s) && (direct || consecutive(id));
  return fmt::format("cxxi::{}<{}, {}>({}, {}, {}, {})", wide ? "load_masked" : "gather_masked", tag, lanes,
                     value_name(load.mask), base, offset_lambda(id), cpu_literal(load.other));
}

std::string CpuKernelEmitter::store_text(StmtId id, const Stmt& s, const loops::Store& store) const {
  const std::string tag = cpu_dtype_tag(s.dtype), lanes = width(s);
  const std::string base = fmt::format("p{}", store.buffer.index()), value = value_name(store.value);
  const bool direct = !has_lanes(s) || kernel_.access[id] == plan::AccessKind::Vector;
  const bool lane_masks = store.mask.valid() && has_lanes(stmt(store.mask));
  if (const auto op = op_of(store.combine)) {
    const std::string compute = cpu_dtype_tag(compute_type(s.dtype)),
                      spelled = spelling(info(*op), compute_type(s.dtype));
    return fmt::format("cxxi::combine<{}, {}, {}>({}, {}, {}, {}, []({} a, {} b) {{ return {}; }});", tag, compute,
                       lanes, store.mask.valid() ? value_name(store.mask) : "true", base, offset_lambda(id), value,
                       cpu_compute_type(compute_type(s.dtype)), cpu_compute_type(compute_type(s.dtype)), spelled);
  }
  if (lane_masks) {
    return fmt::format("cxxi::scatter_masked<{}, {}>({}, {}, {}, {});", tag, lanes, value_name(store.mask), base,
                       offset_lambda(id), value);
  }
  const std::string condition = store.mask.valid() ? fmt::format("if ({}) ", value_name(store.mask)) : "";
  if (direct) {
    return fmt::format("{}cxxi::store<{}, {}>({} + {}, {});", condition, tag, lanes, base,
                       expression(kernel_.offsets[id]), value);
  }
  return fmt::format("{}cxxi::scatter<{}, {}>({}, {}, {});", condition, tag, lanes, base, offset_lambda(id), value);
}

std::string CpuKernelEmitter::first_lane(const loops::Index& index) const {
  return fmt::format("static_cast<index>({})", expression(index.value));
}

std::string CpuKernelEmitter::index_text(const Stmt& s, const loops::Index& index) const {
  if (!has_lanes(s)) return first_lane(index);
  sym::Expr coefficient, rest;
  bool linear = sym::split_linear(index.value, kernel_.region.symbol(vector_var_), &coefficient, &rest);
  for (sym::Expr symbol : index.value.free_symbols()) {
    const StmtId source = loops::statement_of_symbol(symbol.name());
    linear &= !source.valid() || !has_lanes(stmt(source));
  }
  if (linear) return fmt::format("cxxi::iota<L>({}, {})", expression(index.value), expression(coefficient));
  return fmt::format("cxxi::by_lane<long long, L>([&](int cxxi_lane) -> index {{ return {}; }})",
                     expression(index.value, "cxxi_lane"));
}

std::string cpu_apply(const ScalarOpInfo& op, DType from, DType to, const std::string& lanes, const std::vector<std::string>& operands) {
  const std::string list = fmt::format("{}", fmt::join(operands, ", "));
  switch (op.rule) {
    case TypeRule::Identity:
      return list;
    case TypeRule::Cast:
      return fmt::format("cxxi::cast<{}, {}>({})", cpu_dtype_tag(to), cpu_dtype_tag(from), list);
    case TypeRule::Select:
      return fmt::format("cxxi::select({})", list);
    case TypeRule::Same:
    case TypeRule::Predicate:
      break;
  }
  const std::string spelled = spelling(op, from);
  if (op.registered) {  // its text is about one element
    const std::string typed = parameters(op.arity, cpu_compute_type(from));
    return fmt::format("cxxi::apply<{}, {}>([]({}) -> {} {{ return {}; }}, {})", cpu_compute_type(to), lanes, typed, cpu_compute_type(to), spelled, list);
  }
  const std::string function =
      fmt::format("[]({}) -> decltype({}) {{ return {}; }}", parameters(op.arity, "auto"), spelled, spelled);
  if (!op.sleef.empty() && is_float(from)) {
    return fmt::format("cxxi::call_math<{}, {}, {}>({}, {})", cpu_math_slot(op.sleef, from), cpu_compute_type(from), lanes, function, list);
  }
  // A single lane of a function that is composed of vector ones takes the same steps: tails equal the rest bit for bit.
  const bool as_vector = op.traits.transcendental && is_float(from);
  return fmt::format("cxxi::{}<{}, {}>({}, {})", as_vector ? "apply_as_vector" : "apply", cpu_compute_type(to), lanes, function, list);
}

std::string CpuKernelEmitter::apply_text(const Stmt& s, const loops::Apply& apply) const {
  std::vector<std::string> operands;
  for (StmtId operand : apply.operands) {
    const auto* index = stmt(operand).as<loops::Index>();
    operands.push_back(index && uniform_.contains(&s) ? first_lane(*index) : value_name(operand));
  }
  return cpu_apply(info(apply.op), stmt(apply.operands.at(0)).dtype, s.dtype, width(s), operands);
}

void CpuKernelEmitter::emit_reduce(StmtId id, const loops::Reduce& reduce) {
  const std::string value = value_name(reduce.operand);
  if (strip_) {
    out_.line("r{}.template at<L>(cxxi_group).update({}, cxxi_element);", id.index(), value);
    return;
  }
  const bool positions = form(reduce.reduction).takes_index();
  out_.line("r{}.template at<L, decltype(cxxi_set)::value>().update({}, {});", id.index(), value,
            !positions ? "0" : kernel_.always_index32 ? "cxxi::iota<L, int>(cxxi_element, 1)" : "cxxi::iota<L>(cxxi_element, 1)");
}

void CpuKernelEmitter::emit_check(StmtId id, const Stmt& s, const loops::Check& check) {
  std::string condition = once_condition(s);
  if (!condition.empty()) condition += " && ";
  const bool in_body = in_body_;
  out_.line("if ({}!cxxi::within({}, {}, cxxi_record, {})) return{};", condition, value_name(check.index),
            expression(check.bound), id.index(), in_body ? " false" : "");
}

}  // namespace cxxinductor::codegen

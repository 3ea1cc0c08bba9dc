// Structs of states, from templates and the statements of reductions.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "codegen/cpu/cpu_text.h"
#include "codegen/cpu/spelling.h"
#include "codegen/render_template.h"
#include "codegen/spelling.h"
#include "codegen/statement_text.h"
#include "ir/loops/stmt_properties.h"

namespace cxxinductor::codegen {
namespace {

// What has lanes of `dtype` lies as bytes where it is a truth value.
std::string from_member(DType dtype, const std::string& member) { return dtype == DType::Bool ? fmt::format("from_memory<boolean, L>({})", member) : member; }
std::string to_member(DType dtype, const std::string& value) {
  return dtype == DType::Bool ? fmt::format("to_memory<boolean, L>({})", value) : fmt::format("widen<L>({})", value);
}

// Values of cpu/generated_state.h.
class GeneratedState {
 public:
  GeneratedState(Reduction reduction, DType operand, std::string name) : form_(form(reduction)), name_(std::move(name)), operand_(compute_type(operand)) {}

  kernels::Values values() const {
    std::vector<kernels::Values> components;
    for (const TypedName& component : form_.state) {
      const DType dtype = component.dtype(operand_);
      components.push_back({{"type", std::string(dtype == DType::Bool ? "unsigned char" : cpu_compute_type(dtype))}, {"c", "c_" + component.name}});
    }
    std::vector<StatementValue> both = members("");
    for (StatementValue& value : members("b.")) both.push_back(std::move(value));
    return {{"name", name_},
            {"components", std::move(components)},
            {"operand", from_member(operand_, "to_state<D, L>(v)")},
            {"start", assigned(form_.start, {}, "")},
            {"lift", assigned(form_.lift, {{"x", operand_}, {"at", DType::I64}}, "b.")},
            {"merge", assigned(form_.merge, std::move(both), "")},
            {"finish", finished()}};
  }

 private:
  std::vector<StatementValue> members(std::string_view owner) const {
    std::vector<StatementValue> values = component_values(form_.state, operand_, fmt::format("{}c_", owner));
    for (StatementValue& value : values) value.text = from_member(value.dtype, value.text);
    return values;
  }

  template <class Use>
  std::string lines(const ScalarStatements& list, std::vector<StatementValue> inputs, Use use) const {
    const auto apply = [](const ScalarOpInfo& op, DType from, DType to, const std::vector<std::string>& operands) {
      return cpu_apply(op, from, to, "L", operands);
    };
    const StatementSpelling spelling{.apply = apply, .literal = cpu_literal, .variable = [](DType) { return std::string("auto"); }};
    return statement_lines(list, std::move(inputs), operand_, spelling, use);
  }

  // All results are read before the first is assigned.
  std::string assigned(const ScalarStatements& list, std::vector<StatementValue> inputs, std::string_view owner) const {
    return lines(list, std::move(inputs), [&](const std::vector<StatementValue>& results, TextWriter& out) {
      for (size_t c = 0; c < results.size(); ++c) out.line("const auto m{} = {};", c, to_member(results[c].dtype, results[c].text));
      for (size_t c = 0; c < results.size(); ++c) out.line("{}c_{} = m{};", owner, form_.state[c].name, c);
    });
  }

  std::string finished() const {
    return lines(form_.finish, members(""), [&](const std::vector<StatementValue>& results, TextWriter& out) {
      for (size_t r = 0; r < results.size(); ++r) {
        const bool is_narrow = !form_.results[r].fixed && is_float(operand_);
        out.line("{}if constexpr (K == {}) return {};", r > 0 ? "else " : "", r,
                 is_narrow ? fmt::format("from_state<D, L>(widen<L>({}))", results[r].text) : results[r].text);
      }
    });
  }

  const ReductionForm& form_;
  const std::string name_;
  const DType operand_;
};

std::string struct_name(Reduction reduction, DType operand) { return fmt::format("state_{}_{}", identifier(info(reduction).name), to_string(operand)); }

}  // namespace

std::string cpu_state(Reduction reduction, DType operand, bool long_positions) {
  const std::string_view row = info(reduction).cpu;
  if (row.empty()) return fmt::format("cxxi::{}", struct_name(reduction, operand));  // its positions are always long
  return fmt::format("cxxi::{}{}", long_positions ? "long_" : "", row);
}

void emit_cpu_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out) {
  std::set<std::pair<Reduction, DType>> states;
  for (const plan::Kernel* kernel : kernels)
    for (const loops::Stmt& stmt : kernel->region.body)
      if (const auto state = row_state(stmt); state && info(state->reduction).cpu.empty())
        states.emplace(state->reduction, kernel->region.body[state->operand].dtype);
  if (states.empty()) return;
  out.raw_line("namespace cxxi {");
  for (const auto& [reduction, operand] : states) {
    const GeneratedState state(reduction, operand, struct_name(reduction, operand));
    out.raw_line(render_template_file("cpu/generated_state.h", state.values(), spell_plain));
  }
  out.raw_line("}  // namespace cxxi");
}

}  // namespace cxxinductor::codegen

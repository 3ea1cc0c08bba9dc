// Structs of states, from templates and the statements of reductions.
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/spelling.h"
#include "codegen/render_template.h"
#include "codegen/spelling.h"
#include "codegen/statement_text.h"
#include "ir/loops/stmt_properties.h"

namespace cxxinductor::codegen {
namespace {

std::string cuda_statement(const ScalarOpInfo& op, DType from, DType to, const std::vector<std::string>& operands) {
  return op.rule == TypeRule::Cast ? fmt::format("cxxi_cast<{}>({})", cuda_type(to), operands.at(0)) : cuda_apply(op, from, operands);
}

// Values of cuda/generated_state.cuh.
class GeneratedState {
 public:
  GeneratedState(Reduction reduction, DType operand) : form_(form(reduction)), name_(cuda_state(reduction, operand)), operand_(compute_type(operand)) {}

  kernels::Values values() const {
    std::vector<kernels::Values> components;
    std::vector<std::string> lanes;
    for (const TypedName& component : form_.state) {
      components.push_back({{"type", std::string(cuda_type(component.dtype(operand_)))}, {"c", "c_" + component.name}});
      lanes.push_back(fmt::format("cxxi_from_lane(c_{}, mask)", component.name));
    }
    std::vector<StatementValue> both = component_values(form_.state, operand_, "a.c_");
    for (StatementValue& value : component_values(form_.state, operand_, "b.c_")) both.push_back(std::move(value));
    return {{"name", name_},
            {"operand", std::string(cuda_type(operand_))},
            {"components", std::move(components)},
            {"start", lines(form_.start, {}, return_state)},
            {"lift", lines(form_.lift, {{"x", operand_}, {"at", DType::I64}}, return_state)},
            {"merge", lines(form_.merge, std::move(both),
                            [&](const auto& results, TextWriter& out) {
                              for (size_t c = 0; c < results.size(); ++c) out.line("c_{} = {};", form_.state[c].name, results[c].text);
                            })},
            {"lanes", fmt::format("{}", fmt::join(lanes, ", "))},
            {"finish", lines(form_.finish, component_values(form_.state, operand_, "c_"), choose_result)}};
  }

 private:
  template <class Use>
  std::string lines(const ScalarStatements& list, std::vector<StatementValue> inputs, Use use) const {
    const StatementSpelling spelling{.apply = cuda_statement, .literal = cuda_literal, .variable = [](DType dtype) { return std::string(cuda_type(dtype)); }};
    return statement_lines(list, std::move(inputs), operand_, spelling, use);
  }
  static void return_state(const std::vector<StatementValue>& results, TextWriter& out) {
    std::vector<std::string_view> texts;
    for (const StatementValue& result : results) texts.push_back(result.text);
    out.line("return {{{}}};", fmt::join(texts, ", "));
  }
  // The type of a result is that of its statement.
  static void choose_result(const std::vector<StatementValue>& results, TextWriter& out) {
    for (size_t r = 0; r < results.size(); ++r) out.line("{}if constexpr (Which == {}) return {};", r > 0 ? "else " : "", r, results[r].text);
  }

  const ReductionForm& form_;
  const std::string name_;
  const DType operand_;
};

}  // namespace

std::string cuda_state(Reduction reduction, DType operand) {
  std::string text(info(reduction).cuda);
  if (text.empty()) return fmt::format("cxxi_state_{}_{}", identifier(info(reduction).name), to_string(compute_type(operand)));
  if (const size_t at = text.find("{T}"); at != std::string::npos) text.replace(at, 3, cuda_type(compute_type(operand)));
  return text;
}

void emit_cuda_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out) {
  std::set<std::pair<Reduction, DType>> states;
  for (const plan::Kernel* kernel : kernels)
    for (const loops::Stmt& stmt : kernel->region.body)
      if (const auto state = row_state(stmt); state && info(state->reduction).cuda.empty())
        states.emplace(state->reduction, compute_type(kernel->region.body[state->operand].dtype));
  for (const auto& [reduction, operand] : states)
    out.raw_line(render_template_file("cuda/generated_state.cuh", GeneratedState(reduction, operand).values(), spell_plain));
}

}  // namespace cxxinductor::codegen

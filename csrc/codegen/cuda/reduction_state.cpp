#include "codegen/cuda/reduction_state.h"

#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "codegen/cuda/spelling.h"
#include "codegen/spelling.h"
#include "codegen/statement_text.h"

namespace cxxinductor::codegen {
namespace {

std::string cuda_statement(const ScalarOpInfo& op, DType from, DType to, const std::vector<std::string>& operands) {
  return op.rule == TypeRule::Cast ? fmt::format("cxxi_cast<{}>({})", cuda_type(to), operands.at(0)) : cuda_apply(op, from, operands);
}

class StateWriter {
 public:
  StateWriter(Reduction reduction, DType operand, TextWriter& out)
      : form_(form(reduction)), name_(cuda_state(reduction, operand)), operand_(compute_type(operand)), out_(out) {}

  void write() {
    out_.line("struct {} {{", name_);
    out_.indent();
    out_.line("static constexpr bool ordered = true;");
    for (const TypedName& component : form_.state) out_.line("{} c_{};", cuda_type(component.dtype(operand_)), component.name);
    function(fmt::format("static {} start()", name_), [&] { return_state(form_.start, {}); });
    function(fmt::format("static {} of({} x, long long at)", name_, cuda_type(operand_)),
             [&] { return_state(form_.lift, {{"x", operand_}, {"at", DType::I64}}); });
    out_.line("CXXI_FN void update({} x, long long at) {{ merge(of(x, at)); }}", cuda_type(operand_));
    out_.line("template <int N>");
    out_.line("CXXI_FN void update(const {} (&values)[N], int count, long long first) {{", cuda_type(operand_));
    out_.line("#pragma unroll");
    out_.line("  for (int e = 0; e < N; ++e) {{");
    out_.line("    if (e < count) update(values[e], first + e);");
    out_.line("  }}");
    out_.line("}}");
    function(fmt::format("void merge(const {0}& b)", name_), [&] {
      out_.line("const {} a = *this;", name_);
      std::vector<StatementValue> both = component_values(form_.state, operand_, "a.c_");
      for (StatementValue& value : component_values(form_.state, operand_, "b.c_")) both.push_back(std::move(value));
      const std::vector<StatementValue> results = statements(form_.merge, std::move(both));
      for (size_t c = 0; c < results.size(); ++c) out_.line("c_{} = {};", form_.state[c].name, results[c].text);
    });
    std::vector<std::string> lanes;
    for (const TypedName& component : form_.state) lanes.push_back(fmt::format("cxxi_from_lane(c_{}, mask)", component.name));
    out_.line("CXXI_FN {} from_lane(int mask) const {{ return {{{}}}; }}", name_, fmt::join(lanes, ", "));
    write_result();
    out_.dedent();
    out_.line("}};");
  }

 private:
  template <class Body>
  void function(const std::string& head, Body&& body) {
    out_.line("CXXI_FN {} {{", head);
    out_.indent();
    body();
    out_.dedent();
    out_.line("}}");
  }

  std::vector<StatementValue> statements(const ScalarStatements& list, std::vector<StatementValue> inputs) {
    const StatementSpelling spelling{.apply = cuda_statement, .literal = cuda_literal, .variable = [](DType dtype) { return std::string(cuda_type(dtype)); }};
    return emit_statements(list, std::move(inputs), operand_, "n", spelling, out_);
  }

  void return_state(const ScalarStatements& list, std::vector<StatementValue> inputs) {
    std::vector<std::string> texts;
    for (const StatementValue& value : statements(list, std::move(inputs))) texts.push_back(value.text);
    out_.line("return {{{}}};", fmt::join(texts, ", "));
  }

  // The type of a result is that of its statement.
  void write_result() {
    out_.line("template <int Which>");
    function("auto result() const", [&] {
      const std::vector<StatementValue> results = statements(form_.finish, component_values(form_.state, operand_, "c_"));
      for (size_t r = 0; r < results.size(); ++r)
        out_.line("{}if constexpr (Which == {}) return {};", r > 0 ? "else " : "", r, results[r].text);
    });
  }

  const ReductionForm& form_;
  std::string name_;
  DType operand_;
  TextWriter& out_;
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
      if (const auto* reduce = stmt.as<loops::Reduce>(); reduce && info(reduce->reduction).cuda.empty())
        states.emplace(reduce->reduction, compute_type(kernel->region.body[reduce->operand].dtype));
  for (const auto& [reduction, operand] : states) StateWriter(reduction, operand, out).write();
}

}  // namespace cxxinductor::codegen

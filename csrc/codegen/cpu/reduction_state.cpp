#include "codegen/cpu/reduction_state.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "codegen/cpu/spelling.h"
#include "codegen/spelling.h"
#include "codegen/statement_text.h"

namespace cxxinductor::codegen {
namespace {

// What has lanes of `dtype` lies as bytes where it is a truth value.
std::string from_member(DType dtype, const std::string& member) {
  return dtype == DType::Bool ? fmt::format("from_memory<boolean, L>({})", member) : member;
}
std::string to_member(DType dtype, const std::string& value) {
  return dtype == DType::Bool ? fmt::format("to_memory<boolean, L>({})", value) : fmt::format("widen<L>({})", value);
}

class StateWriter {
 public:
  StateWriter(Reduction reduction, DType operand, std::string name, TextWriter& out)
      : form_(form(reduction)), name_(std::move(name)), operand_(compute_type(operand)), out_(out) {}

  void write() {
    out_.raw_line("template <class D, int L>");
    out_.line("struct {} {{", name_);
    out_.indent();
    for (const TypedName& component : form_.state) {
      const DType dtype = component.dtype(operand_);
      out_.line("vec<{}, L> c_{};", dtype == DType::Bool ? "unsigned char" : cpu_compute_type(dtype), component.name);
    }
    function(fmt::format("{}()", name_), [&] { assign(form_.start, {}, ""); });
    out_.raw_line("template <class V, class P>");
    function("void update(V v, P position)", [&] {
      out_.line("const auto x = {};", from_member(operand_, "to_state<D, L>(v)"));
      out_.raw_line("const auto at = widen<L>(convert<long long>(position));");
      out_.line("{} b;", name_);
      assign(form_.lift, {{"x", operand_}, {"at", DType::I64}}, "b.");
      out_.raw_line("merge(b);");
    });
    function(fmt::format("void merge(const {}& b)", name_), [&] {
      std::vector<StatementValue> both = members("");
      for (StatementValue& value : members("b.")) both.push_back(std::move(value));
      assign(form_.merge, std::move(both), "");
    });
    write_lanes();
    out_.line("auto across() const {{ return joined_across<{}, L>(*this); }}", name_);
    write_result();
    out_.dedent();
    out_.raw_line("};");
  }

 private:
  template <class Body>
  void function(const std::string& head, Body&& body) {
    out_.line("{} {{", head);
    out_.indent();
    body();
    out_.dedent();
    out_.raw_line("}");
  }

  std::vector<StatementValue> members(std::string_view owner) const {
    std::vector<StatementValue> values = component_values(form_.state, operand_, fmt::format("{}c_", owner));
    for (StatementValue& value : values) value.text = from_member(value.dtype, value.text);
    return values;
  }

  std::vector<StatementValue> statements(const ScalarStatements& list, std::vector<StatementValue> inputs) {
    const auto apply = [](const ScalarOpInfo& op, DType from, DType to, const std::vector<std::string>& operands) {
      return cpu_apply(op, from, to, "L", operands);
    };
    const StatementSpelling spelling{.apply = apply, .literal = cpu_literal, .variable = [](DType) { return std::string("auto"); }};
    return emit_statements(list, std::move(inputs), operand_, "n", spelling, out_);
  }

  // All results are read before the first is assigned.
  void assign(const ScalarStatements& list, std::vector<StatementValue> inputs, std::string_view owner) {
    const std::vector<StatementValue> results = statements(list, std::move(inputs));
    for (size_t c = 0; c < results.size(); ++c) out_.line("const auto m{} = {};", c, to_member(results[c].dtype, results[c].text));
    for (size_t c = 0; c < results.size(); ++c) out_.line("{}c_{} = m{};", owner, form_.state[c].name, c);
  }

  void write_lanes() {
    out_.raw_line("template <int N, int First>");
    function(fmt::format("{}<D, N> lanes() const", name_), [&] {
      out_.line("{}<D, N> some;", name_);
      for (const TypedName& component : form_.state) out_.line("some.c_{0} = part<N, First>(c_{0});", component.name);
      out_.raw_line("return some;");
    });
  }

  void write_result() {
    out_.raw_line("template <int K>");
    function("auto result() const", [&] {
      const std::vector<StatementValue> results = statements(form_.finish, members(""));
      for (size_t r = 0; r < results.size(); ++r) {
        const bool is_narrow = !form_.results[r].fixed && is_float(operand_);
        out_.line("{}if constexpr (K == {}) return {};", r > 0 ? "else " : "", r,
                  is_narrow ? fmt::format("from_state<D, L>(widen<L>({}))", results[r].text) : results[r].text);
      }
    });
  }

  const ReductionForm& form_;
  std::string name_;
  DType operand_;
  TextWriter& out_;
};

std::string struct_name(Reduction reduction, DType operand) {
  return fmt::format("state_{}_{}", identifier(info(reduction).name), to_string(operand));
}

std::set<std::pair<Reduction, DType>> generated_states(const std::vector<const plan::Kernel*>& kernels) {
  std::set<std::pair<Reduction, DType>> states;
  for (const plan::Kernel* kernel : kernels)
    for (const loops::Stmt& stmt : kernel->region.body)
      if (const auto* reduce = stmt.as<loops::Reduce>(); reduce && info(reduce->reduction).cpu.empty())
        states.emplace(reduce->reduction, kernel->region.body[reduce->operand].dtype);
  return states;
}

}  // namespace

std::string cpu_state(Reduction reduction, DType operand, bool long_positions) {
  const std::string_view row = info(reduction).cpu;
  if (row.empty()) return fmt::format("cxxi::{}", struct_name(reduction, operand));  // its positions are always long
  return fmt::format("cxxi::{}{}", long_positions ? "long_" : "", row);
}

void emit_cpu_states(const std::vector<const plan::Kernel*>& kernels, TextWriter& out) {
  const auto states = generated_states(kernels);
  if (states.empty()) return;
  out.raw_line("namespace cxxi {");
  for (const auto& [reduction, operand] : states) StateWriter(reduction, operand, struct_name(reduction, operand), out).write();
  out.raw_line("}  // namespace cxxi");
}

void visit_cpu_state_ops(const plan::Kernel& kernel, const std::function<void(const ScalarOpInfo& op, DType dtype)>& visit) {
  for (const auto& [reduction, operand] : generated_states({&kernel})) {
    const ReductionForm& of = form(reduction);
    for (const ScalarStatements* statements : {&of.start, &of.lift, &of.merge, &of.finish})
      for (const ScalarStatements::Step& step : statements->steps())
        if (step.literal == ScalarStatements::Literal::None) visit(info(step.op), step.type.value_or(compute_type(operand)));
  }
}

}  // namespace cxxinductor::codegen

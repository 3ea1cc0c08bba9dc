#include "text_pipeline.h"

#include <algorithm>
#include <array>
#include <variant>

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "ir/graph/memory.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "lowering/lower.h"
#include "passes/pass_manager.h"
#include "schedule/schedule.h"
#include "support/error.h"
#include "support/text_cursor.h"

namespace cxxinductor::tools {
namespace {

constexpr std::array<std::string_view, 6> known_steps{"parse", "passes", "lower", "fuse", "plan", "source"};

using Form = std::variant<graph::Graph, loops::Program, plan::Plan, std::string>;

Form parse_form(std::string_view text) {
  const std::string kind = ir_kind(text);
  if (kind == "graph") return graph::parse(text);
  if (kind == "program") return loops::parse(text);
  return plan::parse(text);
}

// The steps that a single word stands for, from this form on.
std::vector<std::string> steps_up_to(const std::string& word, const Form& form) {
  std::vector<std::string> steps;
  if (std::holds_alternative<graph::Graph>(form)) steps = {"lower", "fuse", "plan", "source"};
  if (std::holds_alternative<loops::Program>(form)) steps = {"fuse", "plan", "source"};
  if (std::holds_alternative<plan::Plan>(form)) steps = {"source"};
  const auto last = std::find(steps.begin(), steps.end(), word);
  if (last == steps.end()) return {word};
  steps.erase(last + 1, steps.end());
  return steps;
}

template <class T>
T& expect_form(Form& form, const std::string& step, std::string_view what) {
  if (auto* found = std::get_if<T>(&form)) return *found;
  throw_user_error("the step '{}' expects {}", step, what);
}

std::string source_of(const plan::Plan& plan, const Target& target) {
  std::vector<const plan::Kernel*> kernels;
  for (const plan::Kernel& kernel : plan.kernels) kernels.push_back(&kernel);
  if (target.device == DeviceType::Cpu) return codegen::emit_cpu(kernels, target, plan.origins);
  return codegen::emit_cuda(kernels, {.vectorized = true, .index64 = false}, target, plan.origins);
}

void run_passes(Form& form, const Options& options) {
  if (auto* graph = std::get_if<graph::Graph>(&form))
    passes::run_graph_pipeline(*graph, options);
  else
    passes::run_loops_pipeline(expect_form<loops::Program>(form, "passes", "a graph or a program"), options);
}

void verify_form(const Form& form, const std::string& step) {
  if (const auto* graph = std::get_if<graph::Graph>(&form)) graph::verify_or_throw(*graph, step);
  if (const auto* program = std::get_if<loops::Program>(&form)) loops::verify_or_throw(*program, step);
  if (const auto* plan = std::get_if<plan::Plan>(&form)) plan::verify_or_throw(*plan, step);
}

// eager_peak: of the graph that came, if one came.
void apply(Form& form, const std::string& step, const TextRun& run, std::optional<int64_t> eager_peak) {
  if (step == "passes") {
    run_passes(form, run.options);
  } else if (step == "lower") {
    form = lowering::lower(expect_form<graph::Graph>(form, step, "a graph"));
  } else if (step == "fuse") {
    form = schedule::fuse(std::move(expect_form<loops::Program>(form, step, "a program")), run.target, run.options,
                          nullptr);
  } else if (step == "plan") {
    form = schedule::make_plan(std::move(expect_form<loops::Program>(form, step, "a program")), run.target, run.options,
                               eager_peak);
  } else if (step == "source") {
    form = source_of(expect_form<plan::Plan>(form, step, "a plan"), run.target);
  }
  verify_form(form, step);
}

struct PrintForm {
  std::string operator()(const graph::Graph& graph) const { return graph::print(graph); }
  std::string operator()(const loops::Program& program) const { return loops::print(program); }
  std::string operator()(const plan::Plan& plan) const { return plan::print(plan); }
  std::string operator()(const std::string& source) const { return source; }
};

}  // namespace

std::vector<std::string> parse_steps(std::string_view text) {
  std::vector<std::string> steps;
  TextCursor cursor(text);
  do {
    const std::string word = cursor.identifier("a step");
    if (std::find(known_steps.begin(), known_steps.end(), word) == known_steps.end())
      throw_user_error("unknown step '{}'; known: {}", word, fmt::join(known_steps, ", "));
    steps.push_back(word);
  } while (cursor.accept("|"));
  if (!cursor.at_end()) cursor.fail("'|' and another step");
  return steps;
}

Target parse_target(std::string_view text, std::string_view ir_text) {
  const size_t blank = text.find(' ');
  std::string name(text.substr(0, blank)), arch(blank == std::string_view::npos ? "" : text.substr(blank + 1));
  if (name.empty()) {
    const size_t body = ir_text.find('{');
    name = ir_text.substr(0, body).find(" on cuda") != std::string_view::npos ? "cuda" : "cpu";
  }
  constexpr int h200_multiprocessors = 132, cpu_threads = 4;
  if (name == "cuda") return cuda_target(arch.empty() ? "sm_90a" : arch, h200_multiprocessors);
  if (name == "cpu") return cpu_target(arch.empty() ? "x86-64-v3" : arch, cpu_threads);
  throw_user_error("unknown target '{}'; known: cuda, cpu", name);
}

std::string ir_kind(std::string_view ir_text) {
  TextCursor cursor(ir_text);
  for (const char* kind : {"graph", "program", "plan"})
    if (cursor.looking_at(kind)) return kind;
  cursor.fail("graph, program or plan");
}

std::string run_text(std::string_view ir_text, const TextRun& run) {
  Form form = parse_form(ir_text);
  const std::vector<std::string> steps = run.steps.size() == 1 ? steps_up_to(run.steps[0], form) : run.steps;
  std::optional<int64_t> eager_peak;
  if (const auto* graph = std::get_if<graph::Graph>(&form)) eager_peak = graph::eager_peak(*graph, run.target.device);
  for (const std::string& step : steps) apply(form, step, run, eager_peak);
  return std::visit(PrintForm(), form);
}

}  // namespace cxxinductor::tools

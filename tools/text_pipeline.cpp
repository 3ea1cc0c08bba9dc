#include "text_pipeline.h"

#include <algorithm>
#include <array>
#include <variant>

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "frontend/complex/lower_complex.h"
#include "frontend/import.h"
#include "ir/graph/memory.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "lowering/lower.h"
#include "ir/text_parts.h"
#include "model/decompose/decompose.h"
#include "model/passes/functionalize.h"
#include "model/passes/join_collectives.h"
#include "model/passes/split_gradients.h"
#include "model/schema_text.h"
#include "model/text.h"
#include "model/verify.h"
#include "passes/pass_manager.h"
#include "schedule/schedule.h"
#include "support/error.h"
#include "support/text_cursor.h"

namespace cxxinductor::tools {

extern const std::string_view aten_schemas;  // tools/aten_schemas.txt

namespace {

constexpr std::array<std::string_view, 12> known_steps{"parse",  "functionalize", "decompose", "recompute_forms", "split_gradients", "join_collectives", "import",
                                                        "passes", "lower",         "fuse",      "plan",            "source"};

using Form = std::variant<model::CallGraph, graph::Graph, loops::Program, plan::Plan, std::string>;

Form parse_form(std::string_view text) {
  const std::string kind = ir_kind(text);
  if (kind == "calls") return model::parse(text);
  if (kind == "graph") return graph::parse(text);
  if (kind == "program") return loops::parse(text);
  return plan::parse(text);
}

// The steps that a single word stands for, from this form on.
std::vector<std::string> steps_up_to(const std::string& word, const Form& form) {
  std::vector<std::string> steps;
  if (std::holds_alternative<model::CallGraph>(form)) steps = {"import", "lower", "fuse", "plan", "source"};
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

// A text for each device that has kernels.
std::string source_of(const plan::Plan& plan, const Targets& targets) {
  std::string text;
  for (Device device : plan.devices) {
    std::vector<const plan::Kernel*> kernels;
    for (const plan::Kernel& kernel : plan.kernels)
      if (kernel.device == device) kernels.push_back(&kernel);
    if (kernels.empty() && device != plan.devices.front()) continue;
    const Target& target = targets.of(device);
    text += target.device == DeviceType::Cpu
                ? codegen::emit_cpu(kernels, target, plan.origins)
                : codegen::emit_cuda(kernels, {.vectorized = true, .index64 = false}, plan.origins);
  }
  return text;
}

void run_passes(Form& form, const Options& options) {
  if (auto* graph = std::get_if<graph::Graph>(&form))
    passes::run_graph_pipeline(*graph, options);
  else
    passes::run_loops_pipeline(expect_form<loops::Program>(form, "passes", "a graph or a program"), options);
}

const model::SchemaSource& schemas_of_aten() {
  static const model::SchemaTable schemas(aten_schemas);
  return schemas;
}

graph::Graph import_calls(const model::CallGraph& calls, const Targets& targets) {
  const model::SchemaSource& schemas = schemas_of_aten();
  frontend::ImportEnvironment environment;
  for (Device device : targets.devices())
    if (device.type == DeviceType::Cuda) environment.gpus.emplace(device, targets.of(device));
  return frontend::import_graph(frontend::lower_complex(calls, schemas), schemas, environment);
}

// Inputs named "gradient..." are gradients of the first results, one each; the other results are gradients of inputs.
std::string split_text(const model::CallGraph& joint) {
  std::vector<uint32_t> gradients;
  for (uint32_t i = 0; i < joint.inputs.size(); ++i)
    if (joint.values[joint.inputs[i]].name.starts_with("gradient")) gradients.push_back(i);
  const model::SplitGraphs split = model::split_gradients(joint, gradients.size(), gradients, schemas_of_aten());
  for (const model::CallGraph* half : {&split.forward, &split.backward}) require_valid("half of the split", model::verify(*half));
  return fmt::format("{}{}; kept: {} bytes\n", model::print(split.forward), model::print(split.backward), model::kept_bytes(split));
}

// The calls, and what explain() says of them.
std::string join_text(const model::CallGraph& calls, const Options& options) {
  const model::CallGraph joined = model::join_collectives(calls, schemas_of_aten(), options.collective_bucket_bytes, false);
  require_valid("calls with joined collectives", model::verify(joined));
  std::string text = model::print(joined);
  for (const std::string& note : joined.collective_notes) text += "; " + note + "\n";
  return text;
}

void verify_form(const Form& form, const std::string& step) {
  if (const auto* calls = std::get_if<model::CallGraph>(&form)) require_valid("call graph after " + step, model::verify(*calls));
  if (const auto* graph = std::get_if<graph::Graph>(&form)) graph::verify_or_throw(*graph, step);
  if (const auto* program = std::get_if<loops::Program>(&form)) loops::verify_or_throw(*program, step);
  if (const auto* plan = std::get_if<plan::Plan>(&form)) plan::verify_or_throw(*plan, step);
}

// eager_peaks: of the graph that came, if one came.
void apply(Form& form, const std::string& step, const TextRun& run, const std::map<Device, int64_t>& eager_peaks) {
  if (step == "functionalize") {
    form = model::functionalize(expect_form<model::CallGraph>(form, step, "calls"), schemas_of_aten());
  } else if (step == "decompose" || step == "recompute_forms") {
    const auto table = step == "decompose" ? model::Fragments::Decompositions : model::Fragments::RecomputeForms;
    form = model::decompose(expect_form<model::CallGraph>(form, step, "calls"), schemas_of_aten(), table);
  } else if (step == "split_gradients") {
    form = split_text(expect_form<model::CallGraph>(form, step, "calls"));
  } else if (step == "join_collectives") {
    form = join_text(expect_form<model::CallGraph>(form, step, "calls"), run.options);
  } else if (step == "import") {
    form = import_calls(expect_form<model::CallGraph>(form, step, "calls"), run.targets);
  } else if (step == "passes") {
    run_passes(form, run.options);
  } else if (step == "lower") {
    form = lowering::lower(expect_form<graph::Graph>(form, step, "a graph"));
  } else if (step == "fuse") {
    form = schedule::fuse(std::move(expect_form<loops::Program>(form, step, "a program")), run.targets, run.options,
                          nullptr);
  } else if (step == "plan") {
    form = schedule::make_plan(std::move(expect_form<loops::Program>(form, step, "a program")), run.targets, run.options,
                               eager_peaks);
  } else if (step == "source") {
    form = source_of(expect_form<plan::Plan>(form, step, "a plan"), run.targets);
  }
  verify_form(form, step);
}

struct PrintForm {
  std::string operator()(const model::CallGraph& calls) const { return model::print(calls); }
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

namespace {

Target target_of(Device device, const std::string& arch) {
  constexpr int h200_multiprocessors = 132, cpu_threads = 4;
  if (device.type == DeviceType::Cuda) return cuda_target(arch.empty() ? "sm_90a" : arch, h200_multiprocessors);
  return cpu_target(arch.empty() ? "x86-64-v3" : arch, cpu_threads);
}

// Those that the text names behind "on", in order, GPUs first; "cuda" is the first GPU.
std::vector<Device> devices_named_in(std::string_view ir_text) {
  std::vector<Device> devices;
  constexpr std::string_view mark = " on ";
  for (size_t at = ir_text.find(mark); at != std::string_view::npos; at = ir_text.find(mark, at + 1)) {
    std::string_view word = ir_text.substr(at + mark.size());
    const auto device = find_device(word.substr(0, word.find_first_of(" ,()={\n")));
    if (device && std::find(devices.begin(), devices.end(), *device) == devices.end()) devices.push_back(*device);
  }
  if (devices.empty()) devices.push_back({});
  std::stable_partition(devices.begin(), devices.end(), [](Device device) { return device.type == DeviceType::Cuda; });
  return devices;
}

}  // namespace

Targets parse_targets(std::string_view text, std::string_view ir_text) {
  Targets targets;
  if (text.empty())
    for (Device device : devices_named_in(ir_text)) targets.add(device, target_of(device, ""));
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    const size_t blank = item.find(' ');
    const std::string_view name = item.substr(0, blank);
    const auto device = find_device(name);
    if (!device) throw_user_error("unknown target '{}'; known: cuda, cpu", name);
    targets.add(*device, target_of(*device, blank == std::string_view::npos ? "" : std::string(item.substr(blank + 1))));
  }
  return targets;
}

std::string ir_kind(std::string_view ir_text) {
  TextCursor cursor(ir_text);
  for (const char* kind : {"calls", "graph", "program", "plan"})
    if (cursor.looking_at(kind)) return kind;
  cursor.fail("calls, graph, program or plan");
}

std::string run_text(std::string_view ir_text, const TextRun& run) {
  Form form = parse_form(ir_text);
  const std::vector<std::string> steps = run.steps.size() == 1 ? steps_up_to(run.steps[0], form) : run.steps;
  std::map<Device, int64_t> eager_peaks;
  if (const auto* graph = std::get_if<graph::Graph>(&form)) eager_peaks = graph::eager_peaks(*graph);
  for (const std::string& step : steps) apply(form, step, run, eager_peaks);
  return std::visit(PrintForm(), form);
}

}  // namespace cxxinductor::tools

#include "text_pipeline.h"

#include <algorithm>
#include <array>

#include "ir/text_parts.h"
#include "kernels/bodies.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/print_body.h"
#include "kernels/body/verify_body.h"
#include "model/decompose/decompose.h"
#include "model/passes/functionalize.h"
#include "model/passes/join_collectives.h"
#include "model/passes/split_gradients.h"
#include "model/schema_text.h"
#include "model/text.h"
#include "model/verify.h"
#include "support/error.h"

namespace cxxinductor::tools {

extern const std::string_view aten_schemas;  // tools/aten_schemas.txt

namespace {

using driver::FormKind;
using driver::PipelineState;
using driver::Stage;

const model::SchemaSource& schemas_of_aten() {
  static const model::SchemaTable schemas(aten_schemas);
  return schemas;
}

model::CallGraph& calls_of(PipelineState& state) { return std::get<model::CallGraph>(state.form); }

bool functionalize(PipelineState& state) {
  state.form = model::functionalize(calls_of(state), schemas_of_aten());
  return true;
}

template <model::Fragments table>
bool decompose(PipelineState& state) {
  state.form = model::decompose(calls_of(state), schemas_of_aten(), table);
  return true;
}

// Inputs named "gradient..." are gradients of the first results, one each; the other results are gradients of inputs.
bool split_gradients(PipelineState& state) {
  const model::CallGraph& joint = calls_of(state);
  std::vector<uint32_t> gradients;
  for (uint32_t i = 0; i < joint.inputs.size(); ++i)
    if (joint.values[joint.inputs[i]].name.starts_with("gradient")) gradients.push_back(i);
  const model::SplitGraphs split = model::split_gradients(joint, gradients.size(), gradients, schemas_of_aten());
  for (const model::CallGraph* half : {&split.forward, &split.backward}) require_valid("half of the split", model::verify(*half));
  state.form = fmt::format("{}{}; kept: {} bytes\n", model::print(split.forward), model::print(split.backward), model::kept_bytes(split));
  return true;
}

// The calls, and what explain() says of them.
bool join_collectives(PipelineState& state) {
  const model::CallGraph joined = model::join_collectives(calls_of(state), schemas_of_aten(), state.inputs.options.collective_bucket_bytes, false);
  require_valid("calls with joined collectives", model::verify(joined));
  std::string text = model::print(joined);
  for (const std::string& note : joined.collective_notes) text += "; " + note + "\n";
  state.form = std::move(text);
  return true;
}

// Rewrites of calls, which the outer layers run before the pipeline, in the order that suits their caller.
constexpr Stage call_stages[] = {
    {"functionalize", "calls that write to calls that return", FormKind::Calls, FormKind::Calls, functionalize},
    {"decompose", "ops that the importer does not read to ops that it does", FormKind::Calls, FormKind::Calls, decompose<model::Fragments::Decompositions>},
    {"recompute_forms", "softmaxes and pools to what a backward pass keeps less of", FormKind::Calls, FormKind::Calls,
     decompose<model::Fragments::RecomputeForms>},
    {"split_gradients", "a function and its gradients to the texts of two graphs", FormKind::Calls, FormKind::Text, split_gradients},
    {"join_collectives", "small collectives to fewer, larger ones, and notes on what was joined", FormKind::Calls, FormKind::Text, join_collectives},
};

// What the emitters will print of each kernel.
bool lower_bodies(PipelineState& state) {
  std::string text;
  for (const plan::Kernel& kernel : std::get<plan::Plan>(state.form).kernels)
    for (const auto& [name, body] : kernels::lower_bodies(kernel)) {
      require_valid(fmt::format("the body of {}, {},", kernel.name, name), kernels::verify_body(kernel, body));
      text += fmt::format("{} {}: {}", kernel.name, name, kernels::print_body(kernel, body));
    }
  state.form = std::move(text);
  return true;
}

constexpr Stage plan_stages[] = {{"bodies", "a plan to the bodies of its kernels", FormKind::Plan, FormKind::Text, lower_bodies}};

// Steps that are not stages: "parse" reads alone; "passes" is the pipeline of the form, whichever it is.
constexpr std::array<std::string_view, 2> other_steps{"parse", "passes"};

std::vector<std::string_view> known_steps() {
  std::vector<std::string_view> names(other_steps.begin(), other_steps.end());
  for (const std::span<const Stage> table : {std::span<const Stage>(call_stages), driver::stage_table(), std::span<const Stage>(plan_stages)})
    for (const Stage& stage : table) names.push_back(stage.name);
  return names;
}

// One step as it stands.
std::span<const Stage> stages_of(std::string_view step, FormKind kind) {
  if (step == "parse") return {};
  if (const auto* found = std::ranges::find(call_stages, step, &Stage::name); found != std::end(call_stages)) return {found, 1};
  if (const auto* found = std::ranges::find(plan_stages, step, &Stage::name); found != std::end(plan_stages)) return {found, 1};
  if (step == "passes") step = kind == FormKind::Graph ? "graph-passes" : "loops-passes";
  return driver::stages_between(step, step);
}

// A single word stands for the pipeline up to it, where the form has still to go through that.
std::span<const Stage> stages_up_to(std::string_view word, FormKind kind) {
  const std::span<const Stage> all = driver::stage_table();
  const auto last = std::ranges::find(all, word, &Stage::name), first = std::ranges::find(all, kind, &Stage::takes);
  return last < all.end() && first <= last ? std::span<const Stage>(first, last + 1) : stages_of(word, kind);
}

}  // namespace

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos || end == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

std::vector<std::string> parse_steps(std::string_view text) {
  const std::vector<std::string_view> known = known_steps();
  std::vector<std::string> steps;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('|', at), text.size());
    steps.push_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
    if (std::ranges::find(known, steps.back()) == known.end()) throw_user_error("unknown step '{}'; known: {}", steps.back(), fmt::join(known, ", "));
  }
  return steps;
}

std::vector<std::string> steps_between(std::string_view first, std::string_view last) {
  if (first.empty()) return {std::string(driver::stages_between(last, last).front().name)};
  std::vector<std::string> steps{"parse"};  // with which one stage alone is not taken for all up to it
  for (const Stage& stage : driver::stages_between(first, last)) steps.emplace_back(stage.name);
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

driver::Form run_steps(std::string_view ir_text, const TextRun& run) {
  PipelineState state;
  state.form = driver::parse_form(ir_text);
  state.inputs.targets = run.targets;
  state.inputs.options = run.options;
  state.inputs.observer = run.observer;
  state.inputs.schemas = &schemas_of_aten();
  for (Device device : run.targets.devices())
    if (device.type == DeviceType::Cuda) state.inputs.environment.gpus.emplace(device, run.targets.of(device));
  driver::verify_or_throw(state.form, "parse");
  const std::vector<std::string>& steps = run.steps;
  if (steps.size() == 1 && steps[0] == plan_stages[0].name && driver::kind_of(state.form) != FormKind::Plan)
    driver::run_stages(stages_up_to("fit-memory", driver::kind_of(state.form)), state);
  if (steps.size() == 1)
    driver::run_stages(stages_up_to(steps[0], driver::kind_of(state.form)), state);
  else
    for (const std::string& step : steps) driver::run_stages(stages_of(step, driver::kind_of(state.form)), state);
  return std::move(state.form);
}

std::string run_text(std::string_view ir_text, const TextRun& run) { return driver::print(run_steps(ir_text, run)); }

}  // namespace cxxinductor::tools

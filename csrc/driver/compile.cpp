#include "driver/compile.h"

#include <algorithm>

#include "codegen/source_text.h"
#include "driver/dump.h"
#include "driver/plan_cache.h"
#include "driver/single_launch.h"
#include "ir/device_types.h"
#include "ir/graph/memory.h"
#include "ir/graph/verify.h"
#include "ir/plan/text.h"
#include "runtime/disk_cache.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

void collect_sources(const plan::Plan& plan, const Targets& targets, Report& report) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(k)];
    report.kernel_plans.push_back(plan::print(single_launch(plan, plan::KernelId(k))));
    report.kernel_sources.push_back(
        {kernel.name, kernel.device, codegen::source_text(kernel, targets.of(kernel.device), plan.origins, codegen::Templates::Included)});
  }
}

void collect_texts(const plan::Plan& plan, const Targets& targets, Report& report) {
  for (const plan::MissedFusion& missed : plan.missed_fusions)
    report.missed_fusion_text += fmt::format("{} -> {}: {} ({} bytes)\n", missed.producer, missed.consumer, missed.reason, missed.bytes);
  collect_sources(plan, targets, report);
}

void collect_externs(const plan::Plan& plan, const frontend::CallReasons& reasons, Report& report) {
  for (const plan::Step& step : plan.steps) {
    const auto* call = std::get_if<plan::CallExtern>(&step);
    if (call == nullptr) continue;
    report.externs.push_back(call->callee);
    const auto found = reasons.find(call->callee);
    const std::string known(found == reasons.end() ? frontend::reason_of_call(call->callee) : "");
    report.extern_reasons.try_emplace(call->callee, found == reasons.end() ? std::set{known} : found->second);
  }
}

}  // namespace

std::vector<Device> devices_of(const graph::Graph& graph) {
  std::vector<Device> devices;
  for (const graph::Value& value : graph.values)
    if (std::ranges::find(devices, value.device) == devices.end()) devices.push_back(value.device);
  if (devices.empty()) devices.push_back({});
  std::ranges::stable_partition(devices, has_streams);
  return devices;
}

namespace {

// What is no stage of the table, since it takes more than a form.
template <class F>
auto measure(const Request& request, std::string name, F&& work) {
  stop_if(request.interrupted);
  return request.timer->measure(std::move(name), std::forward<F>(work));
}

std::string source_of(const PipelineState& planned) {
  PipelineState state{.inputs = planned.inputs, .form = planned.form};
  run_stages(stages_between("source", "source"), state);
  return std::get<std::string>(std::move(state.form));
}

// Where it makes a plan, it takes the request's graph.
PipelineState find_or_make_plan(Request& request) {
  runtime::DiskCache* cache = request.plan_cache;
  // Who asks for the forms of all stages, or for their verification, wants them to run.
  const bool reads = cache && !request.keep_texts && !request.observer && request.options.verify != "each";
  const std::string key = cache ? measure(request, "plan key", [&] { return plan_key(request); }) : std::string();
  runtime::EntryLock lock;
  if (reads)
    if (auto stored = measure(request, "find plan", [&] { return read_plan(*cache, key, lock, request.interrupted); }))
      return {.inputs = request, .form = std::move(stored->plan), .const_graph = std::move(stored->const_graph)};
  if (request.before_planning) request.before_planning(request.targets);
  if (request.options.verify != "off") measure(request, "verify import", [&] { graph::verify_or_throw(request.graph, "import"); });
  PipelineState made{.inputs = request, .form = std::move(request.graph)};
  const std::string imported = request.keep_texts ? print(made.form) : std::string();
  run_stages(stages_between("graph-passes", "fit-memory"), made);
  if (request.keep_texts) {
    made.texts["import"] = imported;
    made.texts["source"] = source_of(made);
  }
  if (cache) measure(request, "write plan", [&] { write_plan(*cache, key, std::get<plan::Plan>(made.form), made.const_graph); });
  return made;
}

Compilation::ConstGraph compile_const_graph(const Request& request, passes::ConstGraph const_graph) {
  Request once = request;
  once.graph = std::move(const_graph.graph);
  once.late_inputs.clear();  // numbers of the other graph's inputs
  Compilation compiled = compile(std::move(once));
  return {std::move(compiled.executable), std::move(compiled.report), std::move(const_graph.inputs)};
}

runtime::GraphSettings graph_settings(const Options& options) {
  using runtime::UseGraphs;
  const std::string& use = options.cuda_graphs;
  return {use == "off" ? UseGraphs::Off : use == "auto" ? UseGraphs::Auto : use == "on" ? UseGraphs::On : UseGraphs::AtOnce, options.graph_branches};
}

// The last stages of every compile.
void load(plan::Plan plan, const Request& request, Compilation& out) {
  collect_externs(plan, request.call_reasons, out.report);
  if (request.keep_texts) {
    collect_texts(plan, request.targets, out.report);
    out.report.settings_text = settings_text(request.options, request.targets, request.text_passes);
  }
  if (!request.make_provider) return;
  auto kernels = request.make_provider(plan, request.targets);
  measure(request, "compile kernels", [&] { kernels->prepare(plan, request.interrupted); });
  out.executable = measure(request, "executable",
                           [&] { return std::make_shared<runtime::Executable>(std::move(plan), kernels, *request.host, graph_settings(request.options)); });
}

void write_times(StageTimer timer, Report& report) {
  report.times = std::move(timer.times);
  report.pass_times = std::move(timer.pass_times);
}

}  // namespace

Compilation compile(Request request) {
  Compilation out;
  Report& report = out.report;
  StageTimer timer;
  request.timer = &timer;
  if (request.graph.eager_peaks.empty()) request.graph.eager_peaks = graph::eager_peaks(request.graph);
  for (const std::shared_ptr<const TextPass>& pass : request.text_passes) report.text_passes.push_back(describe(*pass));
  PipelineState planned = find_or_make_plan(request);
  report.texts = std::move(planned.texts);
  report.eager_numerics = request.options.eager_numerics();
  if (planned.const_graph)
    out.const_graph = measure(request, "compile const_graph", [&] { return compile_const_graph(request, std::move(*planned.const_graph)); });

  load(std::get<plan::Plan>(std::move(planned.form)), request, out);
  write_times(std::move(timer), report);
  return out;
}

Compilation compile_plan(std::string_view text, Request request) {
  Compilation out;
  StageTimer timer;
  request.timer = &timer;
  out.report.eager_numerics = request.options.eager_numerics();
  plan::Plan plan = measure(request, "read plan", [&] { return plan::parse(text); });
  if (request.keep_texts) {
    out.report.texts["fit-memory"] = text;
    out.report.texts["source"] = source_of({.inputs = request, .form = plan});
  }
  load(std::move(plan), request, out);
  write_times(std::move(timer), out.report);
  return out;
}

}  // namespace cxxinductor::driver

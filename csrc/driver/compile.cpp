#include "driver/compile.h"

#include <algorithm>
#include <chrono>

#include "codegen/source_text.h"
#include "driver/plan_cache.h"
#include "driver/single_launch.h"
#include "ir/device_types.h"
#include "ir/graph/memory.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "ir/plan/memory.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "lowering/lower.h"
#include "passes/graph/split_const_graph.h"
#include "passes/pass_manager.h"
#include "runtime/disk_cache.h"
#include "schedule/schedule.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

// Also where a compile may be stopped, and where IRs are verified at the boundaries of stages, which is a stage too.
class Stopwatch {
 public:
  explicit Stopwatch(const Request& request)
      : interrupted_(request.interrupted), verify_(request.options.verify != "off") {}
  template <class F>
  auto stage(std::string name, F&& work) {
    stop_if(interrupted_);
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    times_.push_back(
        {std::move(name), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    return result;
  }
  // Throws when the IR is invalid after the stage. Nothing with verify=off.
  template <class IR>
  void verify(const IR& ir, const char* after) {
    if (!verify_) return;
    stage(fmt::format("verify {}", after), [&] {
      verify_or_throw(ir, after);  // the IR's own
      return true;
    });
  }
  // A stage that is a pipeline: each of its passes is timed, too.
  template <class F>
  std::vector<passes::PassTime> pipeline(std::string name, F&& work) {
    std::vector<passes::PassTime> run = stage(std::move(name), work);
    for (const passes::PassTime& pass : run) pass_times_[std::string(pass.name)] += pass.seconds;
    return run;
  }
  void write_to(Report& report) {
    report.times = std::move(times_);
    report.pass_times = std::move(pass_times_);
  }

 private:
  std::vector<StageTime> times_;
  std::map<std::string, double> pass_times_;
  const InterruptCheck& interrupted_;
  bool verify_;
};

void collect_sources(const plan::Plan& plan, const Targets& targets, Report& report) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(k)];
    report.kernel_plans.push_back(plan::print(single_launch(plan, plan::KernelId(k))));
    report.kernel_sources.push_back({kernel.name, kernel.device,
                                     codegen::source_text(kernel, targets.of(kernel.device), plan.origins, codegen::Templates::Included)});
  }
}

void collect_texts(const plan::Plan& plan, const Targets& targets, Report& report) {
  report.plan_text = plan::print(plan);
  for (const plan::MissedFusion& missed : plan.missed_fusions)
    report.missed_fusion_text +=
        fmt::format("{} -> {}: {} ({} bytes)\n", missed.producer, missed.consumer, missed.reason, missed.bytes);
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

// From the graph to a plan, fusions with this reach.
plan::Plan plan_with_limit(const Request& request, schedule::LiveRangeLimit limit, Report& report, Stopwatch& watch) {
  const Options& options = request.options;
  loops::Program program = watch.stage("lower", [&] { return lowering::lower(request.graph); });
  watch.verify(program, "lower");
  if (request.keep_texts) report.loops_text = loops::print(program);

  std::vector<plan::MissedFusion> missed_fusions;
  if (options.fusion)
    program = watch.stage(
        "fuse", [&] {
          return schedule::fuse(std::move(program), request.targets, options, &missed_fusions, limit, request.late_inputs);
        });
  watch.pipeline("loops passes", [&] { return passes::run_loops_pipeline(program, options); });
  watch.verify(program, "fuse");
  if (request.keep_texts) report.fused_text = loops::print(program);

  plan::Plan plan = watch.stage("plan", [&] {
    return schedule::make_plan(std::move(program), request.targets, options, *request.eager_peaks, std::move(missed_fusions));
  });
  watch.verify(plan, "plan");
  return plan;
}

constexpr int64_t rounding = 4096;  // of blocks, ours being more and smaller ones than eager's

// A plan that holds more than eager on some device is made again with fusions that stretch lives less and less; the first
// that holds no more is taken, else the one that exceeds eager least.
plan::Plan plan_graph(const Request& request, Report& report, Stopwatch& watch) {
  constexpr size_t limits[] = {64, 8, 0};
  plan::Plan best = plan_with_limit(request, {}, report, watch);
  int64_t least = plan::bytes_beyond_eager(best);
  if (!request.options.fusion) return best;
  for (size_t limit : limits) {
    if (least <= rounding) break;
    Report again;
    plan::Plan plan = plan_with_limit(request, limit, again, watch);
    const int64_t beyond = plan::bytes_beyond_eager(plan);
    if (beyond >= least) continue;
    least = beyond;
    best = std::move(plan);
    report.fused_text = std::move(again.fused_text);
  }
  return best;
}

struct Planned {
  plan::Plan plan;
  std::optional<passes::ConstGraph> const_graph;  // what is computed once; request.graph takes it as inputs
  Report report;                                  // its texts
  std::vector<std::string_view> spenders;         // passes that changed the graph and may have spent memory, in their order
};

// Leaves request.graph as the passes make it.
Planned plan_request(Request& request, Stopwatch& watch) {
  Planned out;
  const Options& options = request.options;
  for (const passes::PassTime& pass :
       watch.pipeline("graph passes", [&] { return passes::run_graph_pipeline(request.graph, options); }))
    if (pass.changed && pass.spends_memory) out.spenders.push_back(pass.name);
  watch.verify(request.graph, "graph passes");
  // With check, each call is checked as a whole.
  if (options.freezing && options.check == "off")
    out.const_graph = watch.stage("const_graph", [&] { return passes::split_const_graph(request.graph); });
  if (out.const_graph) watch.verify(request.graph, "const_graph");
  if (request.keep_texts) out.report.graph_text = graph::print(request.graph);
  out.plan = plan_graph(request, out.report, watch);
  return out;
}

// Where passes spent memory that eager does not have, they are left out one by one, the last one first; the first plan that
// holds no more than eager is taken, else the one that exceeds it least.
Planned plan_within_eager(Request& request, Stopwatch& watch) {
  const Request original = request;
  Planned best = plan_request(request, watch);
  int64_t least = plan::bytes_beyond_eager(best.plan);
  std::string skipped = original.options.skip_passes;
  const std::vector<std::string_view> spenders = best.spenders;
  for (size_t s = spenders.size(); s-- > 0 && least > rounding;) {
    skipped += fmt::format(",{}", spenders[s]);
    Request without = original;
    without.options.skip_passes = skipped;
    Planned planned = plan_request(without, watch);
    const int64_t beyond = plan::bytes_beyond_eager(planned.plan);
    if (beyond >= least) continue;
    least = beyond;
    best = std::move(planned);
    request = std::move(without);
  }
  return best;
}

Planned find_or_make_plan(Request& request, Stopwatch& watch) {
  runtime::DiskCache* cache = request.plan_cache;
  // Who asks for the texts of all stages, or for their verification, wants them to run.
  const bool reads = cache && !request.keep_texts && request.options.verify != "each";
  const std::string key = cache ? watch.stage("plan key", [&] { return plan_key(request); }) : std::string();
  runtime::EntryLock lock;
  if (reads)
    if (auto stored = watch.stage("find plan", [&] { return read_plan(*cache, key, lock, request.interrupted); })) {
      Planned found;
      found.plan = std::move(stored->plan);
      found.const_graph = std::move(stored->const_graph);
      return found;
    }
  watch.verify(request.graph, "import");
  Planned made = plan_within_eager(request, watch);
  if (cache)
    watch.stage("write plan", [&] {
      write_plan(*cache, key, made.plan, made.const_graph);
      return true;
    });
  return made;
}

Compilation::ConstGraph compile_const_graph(const Request& request, passes::ConstGraph const_graph) {
  Request once = request;
  once.graph = std::move(const_graph.graph);
  once.eager_peaks.reset();
  Compilation compiled = compile(std::move(once));
  return {std::move(compiled.executable), std::move(compiled.report), std::move(const_graph.inputs)};
}

runtime::GraphSettings graph_settings(const Options& options) {
  using runtime::UseGraphs;
  const std::string& use = options.cuda_graphs;
  return {use == "off" ? UseGraphs::Off : use == "auto" ? UseGraphs::Auto : use == "on" ? UseGraphs::On : UseGraphs::AtOnce, options.graph_branches};
}

// The last stages of every compile.
void load(plan::Plan plan, const Request& request, Stopwatch& watch, Compilation& out) {
  collect_externs(plan, request.call_reasons, out.report);
  if (request.keep_texts) collect_texts(plan, request.targets, out.report);
  if (!request.make_provider) return;
  auto kernels = request.make_provider(plan, request.targets);
  watch.stage("compile kernels", [&] {
    kernels->prepare(plan, request.interrupted);
    return true;
  });
  out.executable = watch.stage(
      "executable", [&] { return std::make_shared<runtime::Executable>(std::move(plan), kernels, *request.host, graph_settings(request.options)); });
}

}  // namespace

Compilation compile(Request request) {
  Compilation out;
  Report& report = out.report;
  Stopwatch watch(request);
  if (!request.eager_peaks) request.eager_peaks = graph::eager_peaks(request.graph);
  Planned planned = find_or_make_plan(request, watch);
  report = std::move(planned.report);
  report.eager_numerics = request.options.eager_numerics();
  if (planned.const_graph)
    out.const_graph = watch.stage("compile const_graph",
                                  [&] { return compile_const_graph(request, std::move(*planned.const_graph)); });

  load(std::move(planned.plan), request, watch, out);
  watch.write_to(report);
  return out;
}

Compilation compile_plan(std::string_view text, const Request& request) {
  Compilation out;
  Stopwatch watch(request);
  out.report.eager_numerics = request.options.eager_numerics();
  load(watch.stage("read plan", [&] { return plan::parse(text); }), request, watch, out);
  watch.write_to(out.report);
  return out;
}

}  // namespace cxxinductor::driver

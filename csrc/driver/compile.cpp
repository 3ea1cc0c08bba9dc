#include "driver/compile.h"

#include <chrono>

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "driver/single_launch.h"
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
#include "schedule/schedule.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

// Also where a compile may be stopped.
class Stopwatch {
 public:
  Stopwatch(std::vector<StageTime>& times, const InterruptCheck& interrupted)
      : times_(times), interrupted_(interrupted) {}
  template <class F>
  auto stage(std::string name, F&& work) {
    stop_if(interrupted_);
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    times_.push_back(
        {std::move(name), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    return result;
  }

 private:
  std::vector<StageTime>& times_;
  const InterruptCheck& interrupted_;
};

// As the runtime decides for the variant that it compiles first.
bool needs_index64(const plan::Kernel& kernel) {
  return !kernel.always_index32 && sym::bounds(kernel.index_limit, kernel.assumptions).low >= int64_t{1} << 31;
}

void collect_sources(const plan::Plan& plan, const Target& target, Report& report) {
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(k)];
    report.kernel_plans.push_back(plan::print(single_launch(plan, plan::KernelId(k))));
    const std::vector<const plan::Kernel*> one{&kernel};
    report.kernel_sources.emplace_back(
        kernel.name,
        target.device == DeviceType::Cuda
            ? codegen::emit_cuda(one, {.vectorized = true, .index64 = needs_index64(kernel)}, target, plan.origins)
            : codegen::emit_cpu(one, target, plan.origins));
  }
}

void collect_texts(const plan::Plan& plan, const Target& target, Report& report) {
  report.plan_text = plan::print(plan);
  for (const plan::MissedFusion& missed : plan.missed_fusions)
    report.missed_fusion_text += fmt::format("{} -> {}: {}\n", missed.producer, missed.consumer, missed.reason);
  collect_sources(plan, target, report);
}

}  // namespace

Device main_device(const graph::Graph& graph) {
  Device found;
  for (const graph::Value& value : graph.values) {
    if (value.device.type != DeviceType::Cuda) continue;
    if (found.type == DeviceType::Cuda && found != value.device)
      throw_unsupported("one graph over two GPUs ({} and {})", to_string(found), to_string(value.device));
    found = value.device;
  }
  return found;
}

namespace {

// From the graph to a plan, fusions with this reach.
plan::Plan plan_with_limit(const Request& request, schedule::LiveRangeLimit limit, int64_t eager_peak, Report& report,
                           Stopwatch& watch) {
  const Options& options = request.options;
  const bool verify = options.verify != "off";
  loops::Program program = watch.stage("lower", [&] { return lowering::lower(request.graph); });
  if (verify) loops::verify_or_throw(program, "lower");
  if (request.keep_texts) report.loops_text = loops::print(program);

  std::vector<plan::MissedFusion> missed_fusions;
  if (options.fusion)
    program = watch.stage(
        "fuse", [&] { return schedule::fuse(std::move(program), request.target, options, &missed_fusions, limit); });
  watch.stage("loops passes", [&] { return passes::run_loops_pipeline(program, options); });
  if (verify) loops::verify_or_throw(program, "fuse");
  if (request.keep_texts) report.fused_text = loops::print(program);

  plan::Plan plan =
      watch.stage("plan", [&] { return schedule::make_plan(std::move(program), request.target, options, eager_peak); });
  plan.missed_fusions.insert(plan.missed_fusions.begin(), missed_fusions.begin(), missed_fusions.end());
  if (verify) plan::verify_or_throw(plan, "plan");
  return plan;
}

constexpr int64_t rounding = 4096;  // of blocks, ours being more and smaller ones than eager's

// A plan that holds more than eager is made again with fusions that stretch lives less and less; the first that holds
// no more is taken, else the one that holds least.
plan::Plan plan_graph(const Request& request, int64_t eager_peak, Report& report, Stopwatch& watch) {
  constexpr size_t limits[] = {64, 8, 0};
  plan::Plan best = plan_with_limit(request, {}, eager_peak, report, watch);
  int64_t least = plan::profile_memory(best).peak;
  if (!request.options.fusion) return best;
  for (size_t limit : limits) {
    if (least <= eager_peak + rounding) break;
    Report again;
    plan::Plan plan = plan_with_limit(request, limit, eager_peak, again, watch);
    const int64_t peak = plan::profile_memory(plan).peak;
    if (peak >= least) continue;
    least = peak;
    best = std::move(plan);
    report.fused_text = std::move(again.fused_text);
  }
  return best;
}

// A graph as the passes leave it, and its plan.
struct Planned {
  Request request;
  std::optional<passes::ConstGraph> const_graph;  // what is computed once; the graph takes it as inputs
  plan::Plan plan;
  Report report;
  std::string spenders;  // passes that changed the graph and may have spent memory, as in options.skip_passes
};

Planned plan_request(Request request, int64_t eager_peak) {
  Planned out{std::move(request), {}, {}, {}, {}};
  const Options& options = out.request.options;
  Stopwatch watch(out.report.times, out.request.interrupted);
  for (const passes::PassTime& pass :
       watch.stage("graph passes", [&] { return passes::run_graph_pipeline(out.request.graph, options); }))
    if (pass.changed && pass.spends_memory) out.spenders += fmt::format(",{}", pass.name);
  // With check, each call is checked as a whole.
  if (options.freezing && options.check == "off")
    out.const_graph =
        watch.stage("const_graph", [&] { return passes::split_const_graph(out.request.graph); });
  if (out.const_graph && options.verify != "off") graph::verify_or_throw(out.request.graph, "const_graph");
  if (out.request.keep_texts) out.report.graph_text = graph::print(out.request.graph);
  out.plan = plan_graph(out.request, eager_peak, out.report, watch);
  return out;
}

// Where passes spent memory that eager does not have, the plan without them is taken if it holds less.
Planned plan_within(Request request, int64_t eager_peak) {
  Request plain = request;
  Planned planned = plan_request(std::move(request), eager_peak);
  const int64_t peak = plan::profile_memory(planned.plan).peak;
  if (planned.spenders.empty() || peak <= eager_peak + rounding) return planned;
  plain.options.skip_passes += planned.spenders;
  Planned again = plan_request(std::move(plain), eager_peak);
  return plan::profile_memory(again.plan).peak < peak ? std::move(again) : std::move(planned);
}

Compilation::ConstGraph compile_preparation(const Request& request, passes::ConstGraph const_graph) {
  Request once = request;
  once.graph = std::move(const_graph.graph);
  once.eager_peak.reset();
  Compilation compiled = compile(std::move(once));
  return {std::move(compiled.executable), std::move(compiled.report), std::move(const_graph.inputs)};
}

}  // namespace

Compilation compile(Request request) {
  if (request.options.verify != "off") graph::verify_or_throw(request.graph, "import");
  const int64_t eager_peak =
      request.eager_peak ? *request.eager_peak : graph::eager_peak(request.graph, request.target.device);
  Planned planned = plan_within(std::move(request), eager_peak);
  const Request& done = planned.request;
  Compilation out;
  out.report = std::move(planned.report);
  Report& report = out.report;
  Stopwatch watch(report.times, done.interrupted);
  report.eager_numerics = done.options.eager_numerics();
  if (planned.const_graph) {
    out.const_graph = watch.stage("compile const_graph", [&] {
      return compile_preparation(done, std::move(*planned.const_graph));
    });
  }

  for (const plan::Step& step : planned.plan.steps) {
    if (const auto* call = std::get_if<plan::CallExtern>(&step)) report.externs.push_back(call->callee);
  }
  if (done.keep_texts) collect_texts(planned.plan, done.target, report);

  auto kernels = done.make_provider(planned.plan, done.target);
  watch.stage("compile kernels", [&] {
    kernels->prepare(planned.plan, done.interrupted);
    return true;
  });
  out.executable = watch.stage("executable", [&] {
    return std::make_shared<runtime::Executable>(std::move(planned.plan), kernels, *done.host);
  });
  return out;
}

}  // namespace cxxinductor::driver

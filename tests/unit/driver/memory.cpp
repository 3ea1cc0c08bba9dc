// Plans that would hold more than eager are made again with fusions that keep less alive.
#include "ir/plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "driver/compile.h"
#include "ir/graph/memory.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;

namespace {

constexpr Device gpu{DeviceType::Cuda, 0}, cpu{};

Targets targets() {
  Targets all = cuda_target("sm_90a", 132);
  all.add(cpu, cpu_target("x86-64-v3", 4));
  return all;
}

// A residual stream with a branch a layer, of which one row is read in the end: cheap to compute from all branches.
std::string residual_stream(int layers) {
  std::string text = "graph @f on cuda:0 (%x: f32[256, 1024], %w: f32[1024, 1024]) {\n";
  std::string stream = "x";
  for (int k = 0; k < layers; ++k) {
    text += fmt::format("  %a{0} = exp(%{1})\n", k, stream);
    text += fmt::format("  %b{0}: f32[256, 1024] = extern \"aten::mm\"($0, $1) with (%a{0}, %w) planned_out\n", k);
    text += fmt::format("  %s{0} = add(%{1}, %b{0})\n", k, stream);
    stream = fmt::format("s{}", k);
  }
  return text + fmt::format("  %row: f32[1, 1024] = slice<dim=0, start=0, step=1>(%{})\n  %y = mul(%row, 2.0)\n  return %y\n}}\n", stream);
}

// Logits that leave the graph, and a loss of them.
constexpr const char* logits_with_loss = R"(graph @f on cuda:0 (%x: bf16[8192, 768], %w: bf16[50257, 768]) {
  %t = permute<dims=[1, 0]>(%w)
  %0: bf16[8192, 50257] = extern "aten::mm"($0, $1) with (%x, %t) planned_out
  %a = cast<f32>(%0)
  %m = reduce<max, dims=[1], keepdim>(%a)
  %n: f32[8192, 50257] = expand(%m)
  %b = sub(%a, %n)
  %e = exp(%b)
  %c = reduce<sum, dims=[1]>(%e)
  return %0, %c
})";

// Results of calls that are added up one after the other: no two need to be alive at once. They come from the CPU, whose
// tensor changes between them, or from the device itself.
std::string sum_of_calls(int calls, bool uploads) {
  std::string text = fmt::format("graph @f on cuda:0 (%x: f32[512, 512], %t: f32[512, 512]{}) {{\n", uploads ? " on cpu" : "");
  std::string sum = "x", from = "t";
  for (int k = 0; k < calls; ++k) {
    text += uploads ? fmt::format(
                          "  %c{0} = sin(%{1})\n  %u{0}: f32[512, 512] = extern \"aten::_to_copy\"($0, device = "
                          "device(cuda:0)) with (%c{0})\n",
                          k, from)
                    : fmt::format("  %u{}: f32[512, 512] = extern \"test::f\"($0, {}) with (%t)\n", k, k);
    text += fmt::format("  %a{0} = add(%{1}, %u{0})\n  %s{0} = tanh(%a{0})\n", k, sum);
    if (uploads) from = fmt::format("c{}", k);
    sum = fmt::format("s{}", k);
  }
  return text + fmt::format("  return %{}\n}}\n", sum);
}

// After the stages from the graph passes on.
driver::PipelineState run_to(std::string_view last, const std::string& text, driver::StageTimer& timer, std::optional<int64_t> eager_peak = {}) {
  driver::PipelineState state{.inputs = {.targets = cuda_target("sm_90a", 132)}, .form = graph::parse(text)};
  if (eager_peak) std::get<graph::Graph>(state.form).eager_peaks = {{gpu, *eager_peak}};
  state.inputs.timer = &timer;
  driver::run_stages(driver::stages_between("graph-passes", last), state);
  return state;
}

int64_t plans_made(const driver::StageTimer& timer) { return std::ranges::count(timer.times, "select-kernels", &driver::StageTime::stage); }

plan::Plan planned(const graph::Graph& graph, std::optional<int64_t> eager_peak = {}) {
  runtime::PlainHost host;
  driver::Request request;
  request.graph = graph;
  if (eager_peak) request.graph.eager_peaks = {{gpu, *eager_peak}};
  request.targets = targets();
  request.host = &host;
  plan::Plan plan;
  request.make_provider = [&](const plan::Plan& made, const Targets&) {
    plan = made;
    return std::make_shared<runtime::FunctionProvider>(std::vector<runtime::KernelBody>());
  };
  driver::compile(std::move(request));
  return plan;
}

}  // namespace

TEST_CASE("a plan above eager's peak is made again", "[driver][memory]") {
  const graph::Graph graph = graph::parse(residual_stream(24));
  const int64_t eager = graph::eager_peaks(graph).at(gpu);
  // The branches, all kept for the row, are what fusion by time alone would hold.
  const plan::Plan first = driver::plan_of(graph, cuda_target("sm_90a", 132));
  CHECK(plan::profile_memory(first).peak > eager);

  const plan::Plan plan = planned(graph);
  CHECK(plan.eager_peaks.at(gpu) == eager);
  CHECK(plan::profile_memory(plan).peak <= eager);
}

TEST_CASE("a plan within eager's peak is kept, one above it is made again at most 12 times", "[driver][memory]") {
  driver::StageTimer timer;
  const driver::PipelineState within = run_to("fit-memory", residual_stream(1), timer);
  CHECK(plans_made(timer) == 1);
  CHECK_FALSE(within.graphs.imported);
  CHECK_FALSE(within.graphs.lowered);
  // No plan of this graph holds nothing.
  driver::StageTimer all;
  const driver::PipelineState never = run_to("fit-memory", logits_with_loss, all, 0);
  CHECK(plans_made(all) > 4);
  CHECK(plans_made(all) <= 12);
  CHECK(std::ranges::count(all.times, "fit-memory", &driver::StageTime::stage) == 1);
  driver::StageTimer first;
  CHECK(plan::bytes_beyond_eager(std::get<plan::Plan>(never.form)) <=
        plan::bytes_beyond_eager(std::get<plan::Plan>(run_to("merge-kernels", logits_with_loss, first, 0).form)));
}

TEST_CASE("a run that begins after lowering keeps its plan", "[driver][memory]") {
  driver::StageTimer timer;
  driver::PipelineState state = run_to("lower", residual_stream(24), timer);
  state.graphs = {};
  driver::run_stages(driver::stages_between("fuse", "merge-kernels"), state);
  const std::string plan = driver::print(state.form);
  CHECK(plan::bytes_beyond_eager(std::get<plan::Plan>(state.form)) > 4096);
  driver::run_stages(driver::stages_between("fit-memory", "fit-memory"), state);
  CHECK(driver::print(state.form) == plan);
}

TEST_CASE("times of a stage leave out those of stages inside of it", "[driver]") {
  driver::StageTimer timer;
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const auto start = std::chrono::steady_clock::now();
  timer.measure("outer", [&] {
    for (int i = 0; i < 2; ++i) timer.measure("inner", pause);
  });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  REQUIRE(timer.times.size() == 3);
  double sum = 0;
  for (const driver::StageTime& time : timer.times) sum += time.seconds;
  CHECK(timer.times[2].stage == "outer");
  CHECK(timer.times[0].seconds >= 0.02);
  CHECK(sum <= taken.count());
}

TEST_CASE("results of calls that are added up are not all kept for one kernel", "[driver][memory]") {
  for (const bool uploads : {true, false})
    for (const int calls : {2, 6, 7, 40}) {
      const graph::Graph graph = graph::parse(sum_of_calls(calls, uploads));
      const plan::Plan plan = planned(graph);
      INFO(plan::print(plan));
      for (const auto& [device, eager] : graph::eager_peaks(graph)) CHECK(plan::profile_memory(plan, device).peak <= eager);
      const auto on_gpu = [&](const plan::Step& step) {
        const auto* launch = std::get_if<plan::Launch>(&step);
        return launch && plan.kernels[launch->kernel].device == gpu;
      };
      CHECK(std::ranges::count_if(plan.steps, on_gpu) < calls);  // the first two fuse
    }
}

TEST_CASE("plans with products of unaligned rows hold no more than eager", "[driver][memory]") {
  constexpr const char* graphs[] = {// Logits that leave the graph.
                                    R"(graph @f on cuda:0 (%x: bf16[8192, 768], %w: bf16[50257, 768]) {
  %t = permute<dims=[1, 0]>(%w)
  %h = exp(%x)
  %0: bf16[8192, 50257] = extern "aten::mm"($0, $1) with (%h, %t) planned_out
  return %0
})",
                                    logits_with_loss,
                                    // A gradient of logits in two products.
                                    R"(graph @f on cuda:0 (%g: bf16[8192, 50257], %w: bf16[50257, 768], %h: bf16[8192, 768]) {
  %d = neg(%g)
  %t = permute<dims=[1, 0]>(%d)
  %0: bf16[50257, 768] = extern "aten::mm"($0, $1) with (%t, %h) planned_out
  %1: bf16[8192, 768] = extern "aten::mm"($0, $1) with (%d, %w) planned_out
  return %0, %1
})"};
  for (const char* text : graphs) {
    const graph::Graph graph = graph::parse(text);
    INFO(text);
    CHECK(plan::profile_memory(planned(graph)).peak <= graph::eager_peaks(graph).at(gpu));
  }
}

TEST_CASE("a pass that spends memory eager does not have is left out", "[driver][memory]") {
  // Beside the loss the graph's nodes leave room for padded logits; the calls that it was made of do not.
  const graph::Graph graph = graph::parse(logits_with_loss);
  constexpr int64_t logits = int64_t{8192} * 50257 * 2, calls = logits + (int64_t{1} << 20);
  CHECK(graph::eager_peaks(graph).at(gpu) > 2 * logits + (int64_t{1} << 28));
  CHECK(plan::profile_memory(planned(graph)).peak > calls);
  CHECK(plan::profile_memory(planned(graph, calls)).peak <= calls);
}

// Faults made on purpose: a wrong pass, a wrong fusion, a pass and a stage that throw, a wrong kernel. Bisection names each.
#include "driver/bisect.h"

#include <algorithm>

#include "driver/compile.h"
#include "driver/interp_check.h"
#include "ir/plan/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using driver::BisectReport;
using driver::BisectRequest;
using driver::FormKind;
using driver::PipelineState;
using driver::Stage;
using Symptom = BisectReport::Symptom;

namespace {

constexpr const char* chain = R"(graph @f(%x: f32[8, 4]) {
  %0 = add(%x, 1.0)
  %1 = exp(%0)
  %2 = reduce<sum, dims=[1]>(%1)
  %3 = relu(%2)
  %4 = mul(%3, 2.0)
  return %4
}
)";

BisectRequest request_of(std::string_view text, std::vector<int64_t> sizes = {8, 4}) {
  BisectRequest request;
  request.form = driver::parse_form(text);
  request.inputs.targets = cpu_target("x86-64-v3", 1);
  interp::Tensor tensor{DType::F32, sizes, {}};
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  for (int64_t i = 0; i < count; ++i) tensor.elements.push_back(Scalar::from_real(DType::F32, static_cast<double>(i % 7) / 4));
  request.arguments.tensors = {tensor};
  return request;
}

// The stages of the table, with others in the place of those of their names.
std::vector<Stage> stages_with(std::vector<Stage> others) {
  std::vector<Stage> stages;
  for (const Stage& stage : driver::stages_between("graph-passes", "fit-memory")) {
    const auto other = std::ranges::find(others, stage.name, &Stage::name);
    stages.push_back(other == others.end() ? stage : *other);
  }
  return stages;
}

bool rename(graph::Graph& graph, const Options&) {
  graph.name += "_renamed";
  return true;
}
bool nothing(graph::Graph&, const Options&) { return false; }
bool multiply_in_place_of_adding(graph::Graph& graph, const Options&) {
  for (graph::Node& node : graph.nodes)
    if (auto* elementwise = node.as<graph::Elementwise>(); elementwise && elementwise->op == ScalarOp::Add) elementwise->op = ScalarOp::Mul;
  return true;
}
bool fail(graph::Graph&, const Options&) { throw InternalError("this pass is broken"); }

using GraphPass = passes::Pass<graph::Graph>;
constexpr GraphPass wrong_passes[] = {
    {"rename", "", rename}, {"nothing", "", nothing}, {"rename-again", "", rename}, {"wrong", "", multiply_in_place_of_adding}, {"rename-last", "", rename},
};
constexpr GraphPass failing_passes[] = {{"rename", "", rename}, {"broken", "", fail}};

template <auto& pipeline>
bool run_passes(PipelineState& state) {
  state.graph_passes = passes::run_pipeline(std::span<const GraphPass>(pipeline), std::get<graph::Graph>(state.form), state.inputs.options);
  std::erase_if(state.graph_passes, [](const passes::PassTime& pass) { return !pass.changed; });
  return !state.graph_passes.empty();
}

// Fuses as ever, but from the second fusion on takes an exponential for a square root.
bool fuse_wrongly(PipelineState& state) {
  state.form = schedule::fuse(std::get<loops::Program>(state.form), state.inputs.targets, state.inputs.options, nullptr, {}, {}, &state.fusions);
  if (state.fusions.accepted < 2) return true;
  for (loops::Step& step : std::get<loops::Program>(state.form).steps)
    for (loops::Stmt& stmt : std::get<loops::Region>(step).body)
      if (auto* apply = stmt.as<loops::Apply>(); apply && apply->op == ScalarOp::Exp) apply->op = ScalarOp::Sqrt;
  return true;
}

bool plan_no_fused_regions(PipelineState& state) {
  for (const loops::Step& step : std::get<loops::Program>(state.form).steps)
    if (std::get<loops::Region>(step).body.size() > 6) throw InternalError("a region too long to plan");
  driver::run_stages(driver::stages_between("select-kernels", "select-kernels"), state);
  return true;
}

using runtime::KernelBody;

KernelBody pointwise(float (*f)(float)) {
  return [f](std::span<void* const> buffers, std::span<const int64_t>, int64_t) {
    for (int i = 0; i < 32; ++i) static_cast<float*>(buffers.back())[i] = f(static_cast<const float*>(buffers[0])[i]);
  };
}

// Runs plans whose kernels are these, under check=interp.
std::string run_functions(const plan::Plan& plan, const Options& options, const std::vector<KernelBody>& bodies) {
  runtime::PlainHost host;
  driver::Request request;
  request.targets = cpu_target("x86-64-v3", 1);
  request.host = &host;
  request.make_provider = [&](const plan::Plan&, const Targets&) { return std::make_shared<runtime::FunctionProvider>(bodies); };
  const driver::Compilation compilation = driver::compile_plan(plan::print(plan), std::move(request));
  driver::InterpCheck check(options, [](std::string) {});
  std::vector<runtime::Value> inputs;
  for (int64_t rows : {8, 4}) inputs.emplace_back(runtime::make_tensor(host, {rows, 4}));
  try {
    compilation.executable->run(host, std::move(inputs), {.check_inputs = true, .observer = &check});
  } catch (const KernelMismatch& mismatch) {
    return mismatch.what();
  }
  return "";
}

// aten::mm with a matrix of halves.
std::vector<interp::Tensor> multiply_by_halves(const std::string&, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  interp::Tensor result = operands.at(0);
  const auto columns = static_cast<size_t>(result.sizes.at(1));
  for (size_t i = 0; i < result.elements.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < columns; ++k) sum += operands[0].elements[i / columns * columns + k].as_real() / 2;
    result.elements[i] = Scalar::from_real(DType::F32, sum);
  }
  return {result};
}

}  // namespace

TEST_CASE("bisection of a right graph finds nothing", "[bisect]") {
  const BisectReport report = driver::bisect(request_of(chain));
  CHECK(report.symptom == Symptom::None);
  CHECK_FALSE(report.culprit);
  CHECK(driver::describe(report) == "nothing is wrong: all stages agree\nnote: kernels were not run\n");
}

TEST_CASE("bisection names a wrong pass and which application of a pass it is", "[bisect]") {
  BisectRequest request = request_of(chain);
  const std::vector<Stage> stages = stages_with({{"graph-passes", "", FormKind::Graph, FormKind::Graph, run_passes<wrong_passes>}});
  request.stages = stages;
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Differs);
  CHECK(report.stage == "graph-passes");
  CHECK_THAT(report.detail, mentions("output 0: f32[8]: 8 of 8 elements differ"));
  REQUIRE(report.culprit);
  CHECK(report.culprit->name == "wrong");
  CHECK(report.culprit->kind == BisectReport::Culprit::Kind::Pass);
  CHECK(report.culprit->number == 3);
  CHECK(report.culprit->stage == "graph-passes");
  CHECK(report.culprit->avoided_by == "pass_limit=2");
  const std::string text = driver::describe(report);
  CHECK_THAT(text, mentions("guilty: pass wrong (pass_limit=3), in stage graph-passes"));
  CHECK_THAT(text, mentions("  -   %0 = add(%x, 1.0)"));
  CHECK_THAT(text, mentions("  +   %0 = mul(%x, 1.0)"));
  CHECK_THAT(text, mentions("option pass_limit=2"));
}

TEST_CASE("bisection names a wrong pass of the user's", "[bisect]") {
  BisectRequest request = request_of(chain);
  const auto replace = [](const std::string& text) {
    std::string changed = text;
    const size_t at = changed.find("exp(");
    return at == std::string::npos ? changed : changed.replace(at, 3, "sin");
  };
  const auto same = [](const std::string& text) { return text; };
  request.inputs.text_passes = {std::make_shared<driver::TextPass>("quiet", "lower", "1", same),
                                std::make_shared<driver::TextPass>("faulty", "lower", "1", replace)};
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Differs);
  CHECK(report.stage == "lower");
  REQUIRE(report.culprit);
  CHECK(report.culprit->name == "faulty");
  CHECK(report.culprit->avoided_by == "skip_passes=faulty");
  const std::string text = driver::describe(report);
  CHECK(report.culprit->kind == BisectReport::Culprit::Kind::TextPass);
  CHECK_THAT(text, mentions("guilty: registered pass faulty, after stage lower"));
  CHECK_THAT(text, mentions("= sin("));
}

TEST_CASE("bisection names a wrong fusion by its regions", "[bisect]") {
  BisectRequest request = request_of(chain);
  const std::vector<Stage> stages = stages_with({{"fuse", "", FormKind::Loops, FormKind::Loops, fuse_wrongly}});
  request.stages = stages;
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Differs);
  CHECK(report.stage == "fuse");
  REQUIRE(report.culprit);
  CHECK(report.culprit->kind == BisectReport::Culprit::Kind::Fusion);
  CHECK(report.culprit->number == 2);
  CHECK_THAT(report.culprit->name, mentions("merges region @"));
  CHECK_THAT(report.culprit->name, mentions(" and region @"));
  CHECK(report.culprit->avoided_by == "fusion_limit=1");
  for (const std::string& text : {report.culprit->before, report.culprit->after}) CHECK(text.starts_with("program @f"));
}

TEST_CASE("bisection names a pass that throws as far as it can be left out", "[bisect]") {
  BisectRequest request = request_of(chain);
  const std::vector<Stage> stages = stages_with({{"graph-passes", "", FormKind::Graph, FormKind::Graph, run_passes<failing_passes>}});
  request.stages = stages;
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Fails);
  CHECK(report.stage == "graph-passes");
  CHECK(report.detail == "this pass is broken");
  REQUIRE(report.culprit);
  CHECK(report.culprit->number == 2);
  CHECK(report.culprit->stage == "graph-passes");
  CHECK(report.culprit->avoided_by == "pass_limit=1");
}

TEST_CASE("bisection of a stage that fails finds the fusion that it fails on", "[bisect]") {
  BisectRequest request = request_of(chain);
  const std::vector<Stage> stages = stages_with({{"select-kernels", "", FormKind::Loops, FormKind::Plan, plan_no_fused_regions}});
  request.stages = stages;
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Fails);
  CHECK(report.stage == "select-kernels");
  REQUIRE(report.culprit);
  CHECK(report.culprit->kind == BisectReport::Culprit::Kind::Fusion);
  CHECK(report.culprit->stage == "fuse");
  CHECK_THAT(driver::describe(report), mentions("stage select-kernels fails\n  a region too long to plan\n"));
}

TEST_CASE("bisection of a stage that is wrong by itself blames no pass", "[bisect]") {
  BisectRequest request = request_of(chain);
  const std::vector<Stage> stages = stages_with({{"lower", "", FormKind::Graph, FormKind::Loops, [](PipelineState& state) {
                                                    driver::run_stages(driver::stages_between("lower", "lower"), state);
                                                    auto& region = std::get<loops::Region>(std::get<loops::Program>(state.form).steps.back());
                                                    for (loops::Stmt& stmt : region.body)
                                                      if (auto* apply = stmt.as<loops::Apply>()) apply->op = ScalarOp::Sub;
                                                    return true;
                                                  }}});
  request.stages = stages;
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Differs);
  CHECK(report.stage == "lower");
  CHECK_FALSE(report.culprit);
  CHECK_THAT(driver::describe(report), mentions("no single pass or fusion is guilty"));
}

TEST_CASE("bisection names a wrong kernel", "[bisect]") {
  const char* const two_kernels = R"(graph @f(%x: f32[8, 4], %w: f32[4, 4]) {
  %0 = add(%x, 1.0)
  %1: f32[8, 4] = extern "aten::mm"($0, $1) with (%0, %w) planned_out
  %2 = mul(%1, 3.0)
  return %2
}
)";
  BisectRequest request = request_of(two_kernels);
  interp::Tensor weights{DType::F32, {4, 4}, std::vector(16, Scalar::from_real(DType::F32, 0.5))};
  request.arguments.tensors.push_back(weights);
  request.make_externs = [] { return multiply_by_halves; };
  const std::vector<KernelBody> right{pointwise([](float x) { return x + 1; }), pointwise([](float x) { return x * 3; })};
  const std::vector<KernelBody> wrong{pointwise([](float x) { return x + 1.5f; }), right[1]};
  const auto bisect_with = [&](const std::vector<KernelBody>& bodies) {
    BisectRequest with = request;
    with.run_kernels = [&](const plan::Plan& plan, const Options& options) { return run_functions(plan, options, bodies); };
    return driver::bisect(std::move(with));
  };
  CHECK(driver::describe(bisect_with(right)) == "nothing is wrong: all stages agree\n");
  const BisectReport report = bisect_with(wrong);
  CHECK(report.symptom == Symptom::KernelDiffers);
  CHECK_THAT(report.detail, mentions("kernel k0_add"));
  CHECK_FALSE(report.culprit);
}

TEST_CASE("bisection finds what a caller calls bad", "[bisect]") {
  BisectRequest request = request_of(chain);
  request.judge = [](const Options& options) { return options.fusion_limit < 0 || options.fusion_limit >= 3 ? std::string("too slow") : std::string(); };
  BisectReport report = driver::bisect(request);
  CHECK(report.symptom == Symptom::Judged);
  REQUIRE(report.culprit);
  CHECK(report.culprit->kind == BisectReport::Culprit::Kind::Fusion);
  CHECK(report.culprit->number == 3);
  CHECK(report.culprit->avoided_by == "fusion_limit=2");
  request.judge = [](const Options& options) { return options.skip_passes.empty() ? std::string("too slow") : std::string(); };
  report = driver::bisect(request);
  CHECK(report.symptom == Symptom::Judged);
  CHECK_FALSE(report.culprit);
}

TEST_CASE("a reference from elsewhere that differs from the first form blames the import", "[bisect]") {
  BisectRequest request = request_of(chain);
  request.expected = std::vector{interp::Tensor{DType::F32, {8}, std::vector(8, Scalar::from_real(DType::F32, 1))}};
  const BisectReport report = driver::bisect(std::move(request));
  CHECK(report.symptom == Symptom::Differs);
  CHECK(report.stage == "import");
  CHECK_FALSE(report.culprit);
}

TEST_CASE("forms that cannot be interpreted are compiled all the same, and a note says so", "[bisect]") {
  const BisectReport report = driver::bisect(request_of("graph @f(%x: f32[8, 4]) {\n  %0: f32[8, 4] = extern \"test::op\"($0) with (%x)\n  return %0\n}\n"));
  CHECK(report.symptom == Symptom::None);
  REQUIRE(report.notes.size() == 2);
  CHECK_THAT(report.notes[0], mentions("forms were not interpreted"));
}

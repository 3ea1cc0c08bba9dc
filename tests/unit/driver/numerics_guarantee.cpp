// What contracts say, and plans of a single launch.
#include "driver/numerics_guarantee.h"

#include "driver/compile.h"
#include "driver/single_launch.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using driver::AccuracyLevel;

namespace {

plan::Plan plan_of(const std::string& text, const Target& target = cpu_target("x86-64-v3", 1)) {
  runtime::PlainHost host;
  driver::Request request;
  request.graph = graph::parse(text);
  request.targets = target;
  request.host = &host;
  request.make_provider = [](const plan::Plan&, const Targets&) { return std::make_shared<runtime::FunctionProvider>(std::vector<runtime::KernelBody>()); };
  return driver::compile(std::move(request)).executable->plan();
}

driver::NumericsGuarantee numerics_guarantee_of(const std::string& body, const std::string& device = "cpu", bool eager = true) {
  const std::string on = device == "cpu" ? "" : " on " + device;
  const plan::Plan plan = plan_of(fmt::format("graph @f{}(%x: bf16[4, 8], %y: f32[4, 8]) {{\n{}\n}}\n", on, body),
                                  device == "cpu" ? cpu_target("x86-64-v3", 1) : cuda_target("sm_90a", 132));
  REQUIRE(plan.kernels.size() == 1);
  return driver::numerics_guarantee_of(plan.kernels[plan::KernelId(0)], plan.origins, eager);
}

}  // namespace

TEST_CASE("kernels that only move data are exact", "[driver][accuracy]") {
  const driver::NumericsGuarantee guarantee = numerics_guarantee_of("  %0 = cat<dim=0>(%y, %y)\n  return %0");
  CHECK(guarantee.accuracy == AccuracyLevel::Exact);
  CHECK(guarantee.details.empty());
}

TEST_CASE("rounding points, sums and functions are read off the plan", "[driver][accuracy]") {
  const driver::NumericsGuarantee rounded = numerics_guarantee_of(
      "  %0 = mul(%x, 3.0) from \"m.py\":1 \"\" \"aten.mul.Tensor\"\n"
      "  %1 = add(%0, 1.0) from \"m.py\":2 \"\" \"aten.add.Tensor\"\n  return %1");
  CHECK(rounded.accuracy == AccuracyLevel::BitEqual);
  CHECK(rounded.details == std::vector<std::string>{"rounds to bf16 where eager does: aten.mul.Tensor, aten.add.Tensor"});

  const driver::NumericsGuarantee sum =
      numerics_guarantee_of("  %0 = exp(%y)\n  %1 = reduce<sum, dims=[1]>(%0) from \"m.py\":2 \"\" \"aten.sum.dim_IntList\"\n  return %1");
  CHECK(sum.accuracy == AccuracyLevel::OrderChanged);
  REQUIRE(sum.details.size() == 2);
  CHECK(sum.details[0] == "sum of 8 elements in f32, in another order than eager's: aten.sum.dim_IntList");
  CHECK(sum.details[1] == "functions within a unit or two of eager's last bit: exp");
}

TEST_CASE("functions are eager's own on the GPU, and anything goes when numerics are fast", "[driver][accuracy]") {
  const std::string body = "  %0 = exp(%y)\n  return %0";
  CHECK(numerics_guarantee_of(body).accuracy == AccuracyLevel::LastBits);
  CHECK(numerics_guarantee_of(body, "cuda:0").accuracy == AccuracyLevel::BitEqual);
  CHECK(numerics_guarantee_of(body, "cuda:0", false).accuracy == AccuracyLevel::Fast);
}

TEST_CASE("random words that kernels draw with more calls than eager are named", "[driver][accuracy]") {
  const driver::NumericsGuarantee guarantee = numerics_guarantee_of(
      "  %0: i64[4, 8] = full(7)\n  %1 = cast<i64>(%y)\n"
      "  %2 = philox_pair(%0, %1, %1, 0) from \"m.py\":3 \"\" \"aten.randint.default\"\n  return %2",
      "cuda:0");
  REQUIRE(!guarantee.details.empty());
  CHECK(guarantee.details.back() == "a call of Philox an element, also where eager's threads take several numbers of one: aten.randint.default");
}

TEST_CASE("a plan of a single launch stands alone", "[driver][dump]") {
  const plan::Plan plan = plan_of(R"(graph @f(sym s0, %x: f32[s0, 8], %w: f32[8, 8]) where 2 <= s0 <= 100 {
  %0 = add(%x, 1.0)
  %1: f32[s0, 8] = extern "aten::mm"($0, $1) with (%0, %w) planned_out
  %2 = mul(%1, %x)
  return %2
}
)");
  REQUIRE(plan.kernels.size() == 2);
  const plan::Plan single = driver::single_launch(plan, plan::KernelId(1));
  plan::verify_or_throw(single, "single_launch");
  const std::string text = plan::print(single);
  CHECK(plan::print(plan::parse(text)) == text);
  CHECK(single.steps.size() == 1);
  CHECK(single.outputs.empty());
  REQUIRE(single.inputs.size() == 3);  // two operands, one of which becomes the result, s0
  CHECK(single.inputs[2].symbol == "s0");
  CHECK(single.assumptions.range("s0") == sym::Interval{2, 100});
  CHECK(single.symbols.size() == 1);
}

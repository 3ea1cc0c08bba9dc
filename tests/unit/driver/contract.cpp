// What contracts say, and plans of a single launch.
#include "driver/contract.h"

#include "driver/compile.h"
#include "driver/single_launch.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using driver::Grade;

namespace {

plan::Plan plan_of(const std::string& text, const Target& target = cpu_target("x86-64-v3", 1)) {
  runtime::PlainHost host;
  driver::Request request;
  request.graph = graph::parse(text);
  request.targets = target;
  request.host = &host;
  request.make_provider = [](const plan::Plan&, const Targets&) {
    return std::make_shared<runtime::FunctionProvider>(std::vector<runtime::KernelBody>());
  };
  return driver::compile(std::move(request)).executable->plan();
}

driver::Contract contract_of(const std::string& body, const std::string& device = "cpu", bool eager = true) {
  const std::string on = device == "cpu" ? "" : " on " + device;
  const plan::Plan plan = plan_of(fmt::format("graph @f{}(%x: bf16[4, 8], %y: f32[4, 8]) {{\n{}\n}}\n", on, body),
                                  device == "cpu" ? cpu_target("x86-64-v3", 1) : cuda_target("sm_90a", 132));
  REQUIRE(plan.kernels.size() == 1);
  return driver::contract_of(plan.kernels[plan::KernelId(0)], plan.origins, eager);
}

}  // namespace

TEST_CASE("kernels that only move data are exact", "[driver][contract]") {
  const driver::Contract contract = contract_of("  %0 = cat<dim=0>(%y, %y)\n  return %0");
  CHECK(contract.grade == Grade::Exact);
  CHECK(contract.facts.empty());
}

TEST_CASE("rounding points, sums and functions are read off the plan", "[driver][contract]") {
  const driver::Contract rounded = contract_of(
      "  %0 = mul(%x, 3.0) from \"m.py\":1 \"\" \"aten.mul.Tensor\"\n"
      "  %1 = add(%0, 1.0) from \"m.py\":2 \"\" \"aten.add.Tensor\"\n  return %1");
  CHECK(rounded.grade == Grade::BitEqual);
  CHECK(rounded.facts == std::vector<std::string>{"rounds to bf16 where eager does: aten.mul.Tensor, aten.add.Tensor"});

  const driver::Contract sum = contract_of(
      "  %0 = exp(%y)\n  %1 = reduce<sum, dims=[1]>(%0) from \"m.py\":2 \"\" \"aten.sum.dim_IntList\"\n  return %1");
  CHECK(sum.grade == Grade::OrderChanged);
  REQUIRE(sum.facts.size() == 2);
  CHECK(sum.facts[0] == "sum of 8 elements in f32, in another order than eager's: aten.sum.dim_IntList");
  CHECK(sum.facts[1] == "functions within a unit or two of eager's last bit: exp");
}

TEST_CASE("functions are eager's own on the GPU, and anything goes when numerics are fast", "[driver][contract]") {
  const std::string body = "  %0 = exp(%y)\n  return %0";
  CHECK(contract_of(body).grade == Grade::LastBits);
  CHECK(contract_of(body, "cuda:0").grade == Grade::BitEqual);
  CHECK(contract_of(body, "cuda:0", false).grade == Grade::Fast);
}

TEST_CASE("random words that kernels draw with more calls than eager are named", "[driver][contract]") {
  const driver::Contract contract = contract_of(
      "  %0: i64[4, 8] = full(7)\n  %1 = cast<i64>(%y)\n"
      "  %2 = philox_pair(%0, %1, %1, 0) from \"m.py\":3 \"\" \"aten.randint.default\"\n  return %2",
      "cuda:0");
  REQUIRE(!contract.facts.empty());
  CHECK(contract.facts.back() ==
        "a call of Philox an element, also where eager's threads take several numbers of one: aten.randint.default");
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
  CHECK(single.facts.range("s0") == sym::Interval{2, 100});
  CHECK(single.symbols.size() == 1);
}

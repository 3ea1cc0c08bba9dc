// Fusion is near-linear in the number of nodes.

#include "unit/catch.h"
#include "unit/schedule/allocations.h"
#include "unit/schedule/fusion_programs.h"

using namespace fusion_tests;

namespace {

graph::Graph chain(int nodes) {
  graph::Graph g;
  graph::Builder builder(g);
  Device cuda{DeviceType::Cuda, 0};
  graph::ValueId value = builder.input("x", DType::F32, cuda, {64, 512}, {512, 1});
  for (int i = 0; i < nodes; ++i) value = builder.elementwise(i % 2 ? ScalarOp::Neg : ScalarOp::Exp, {value});
  builder.output(value);
  return g;
}

graph::Graph blocks(int nodes) {
  graph::Graph g;
  graph::Builder builder(g);
  Device cuda{DeviceType::Cuda, 0};
  graph::ValueId value = builder.input("x", DType::F32, cuda, {64, 512}, {512, 1});
  for (int i = 0; i < nodes; i += 12) {
    graph::ValueId sum = builder.reduce(Reduction::Sum, value, {1}, true)[0];
    graph::ValueId centred = builder.elementwise(ScalarOp::Sub, {value, sum});
    graph::ValueId square = builder.elementwise(ScalarOp::Mul, {centred, centred});
    graph::ValueId spread = builder.elementwise(ScalarOp::Rsqrt, {builder.reduce(Reduction::Sum, square, {1}, true)[0]});
    graph::ValueId normed = builder.elementwise(ScalarOp::Mul, {centred, spread});
    graph::Extern twice;
    twice.callee = "test::twice";
    twice.args = {Arg(OperandRef{0})};
    graph::Value result = g.values[normed];
    result.name.clear();
    graph::ValueId called = builder.call_extern(twice, {normed}, {result})[0];
    graph::ValueId active = builder.elementwise(ScalarOp::Gelu, {called});
    value = builder.elementwise(ScalarOp::Add, {active, value});
  }
  builder.output(value);
  return g;
}

struct Effort {
  uint64_t allocations;
  size_t regions_left;
};

Effort fuse(const graph::Graph& g) {
  loops::Program program = lowering::lower(g);
  std::vector<plan::MissedFusion> missed_fusions;
  const uint64_t allocations = cxxinductor::testing::allocations();
  const loops::Program fused = schedule::fuse(std::move(program), cuda_target("sm_90a", 132), {}, &missed_fusions);
  return {cxxinductor::testing::allocations() - allocations, regions(fused).size()};
}

}  // namespace

// Counted in allocations, which are the same in each run: bodies that are made and compared.
TEST_CASE("fusing four times as many nodes takes about four times the work", "[schedule][fusion]") {
  for (auto make : {chain, blocks}) {
    const Effort small = fuse(make(1000)), large = fuse(make(4000));
    INFO("1,000 nodes: " << small.allocations << " allocations; 4,000 nodes: " << large.allocations);
    CHECK(large.allocations <= 4.4 * static_cast<double>(small.allocations));
    CHECK(large.regions_left <= 4 * small.regions_left + 1);
    CHECK(small.regions_left < 200);
  }
}

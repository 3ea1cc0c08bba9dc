// Fusion is near-linear in the number of nodes.
#include <chrono>

#include "unit/catch.h"
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
    graph::ValueId spread =
        builder.elementwise(ScalarOp::Rsqrt, {builder.reduce(Reduction::Sum, square, {1}, true)[0]});
    graph::ValueId normed = builder.elementwise(ScalarOp::Mul, {centred, spread});
    graph::Extern twice;
    twice.callee = "test::twice";
    twice.args = {Arg(Hole{0})};
    graph::Value result = g.values[normed];
    result.name.clear();
    graph::ValueId called = builder.call_extern(twice, {normed}, {result})[0];
    graph::ValueId active = builder.elementwise(ScalarOp::Gelu, {called});
    value = builder.elementwise(ScalarOp::Add, {active, value});
  }
  builder.output(value);
  return g;
}

double seconds(const graph::Graph& g, size_t* regions_left) {
  loops::Program program = lowering::lower(g);
  std::vector<plan::Refusal> refusals;
  const auto start = std::chrono::steady_clock::now();
  loops::Program fused = schedule::fuse(std::move(program), cuda_target("sm_90a", 132), {}, &refusals);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  *regions_left = regions(fused).size();
  return taken.count();
}

}  // namespace

TEST_CASE("fusing twice as many nodes takes about twice as long", "[schedule][fusion]") {
  for (auto make : {chain, blocks}) {
    size_t small_count = 0, large_count = 0;
    const double small = seconds(make(5000), &small_count), large = seconds(make(10000), &large_count);
    CHECK(small <= 2.0);
    // Loose: other work shares the machine.
    CHECK(large <= 4 * small + 0.1);
    CHECK(large_count <= 2 * small_count + 1);
    CHECK(small_count < 1000);
  }
}

// Fusion is near-linear in the number of nodes.
#include <ctime>
#include <limits>

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

// The least of five runs in the process's CPU time: what else runs on the machine changes neither by much.
double seconds(const graph::Graph& g, size_t* regions_left) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    loops::Program program = lowering::lower(g);
    std::vector<plan::Refusal> refusals;
    const std::clock_t start = std::clock();
    loops::Program fused = schedule::fuse(std::move(program), cuda_target("sm_90a", 132), {}, &refusals);
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    *regions_left = regions(fused).size();
  }
  return least;
}

}  // namespace

TEST_CASE("fusing twice as many nodes takes about twice as long", "[schedule][fusion]") {
  for (auto make : {chain, blocks}) {
    size_t small_count = 0, large_count = 0;
    const double small = seconds(make(5000), &small_count), large = seconds(make(10000), &large_count);
    INFO("5,000 nodes: " << small << " s, 10,000 nodes: " << large << " s");
    CHECK(small <= 2.0);
    CHECK(large <= 2.5 * small);
    CHECK(large_count <= 2 * small_count + 1);
    CHECK(small_count < 1000);
  }
}

// What is computed once, and what stays in the calls' graph.
#include "passes/graph/split_const_graph.h"

#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "passes/pass_manager.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

// Both graphs' texts after the pipeline, the const_graph's first; "" for one that is not there.
std::string split(std::string_view text) {
  graph::Graph g = graph::parse(text);
  passes::run_graph_pipeline(g, {});
  const std::string whole = graph::print(g);
  const auto const_graph = passes::split_const_graph(g);
  graph::verify_or_throw(g, "split");
  if (!const_graph) {
    CHECK(graph::print(g) == whole);
    return "";
  }
  graph::verify_or_throw(const_graph->graph, "const_graph");
  REQUIRE(const_graph->inputs.size() == const_graph->graph.inputs.size());
  std::string positions;
  for (const uint32_t position : const_graph->inputs) positions += " " + std::to_string(position);
  return "of" + positions + "\n" + graph::print(const_graph->graph) + graph::print(g);
}

}  // namespace

TEST_CASE("weights are turned to channels-last once", "[passes][freezing]") {
  CHECK(split(
            R"(graph @f on cuda:0 (%x: bf16[8, 3, 32, 32], %w: bf16[64, 3, 3, 3] frozen, %u: bf16[64, 64, 3, 3] frozen) {
  %0: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%x, %w)
  %1 = relu(%0)
  %2: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%1, %u)
  %3 = relu(%2)
  return %3
})") == R"(of 1 2
graph @f_const on cuda:0 (%w: bf16[64, 3, 3, 3], %u: bf16[64, 64, 3, 3]) {
  %5 strides [27, 1, 9, 3] = identity(%w)
  %6 strides [576, 1, 192, 64] = identity(%u)
  return %5, %6
}
graph @f on cuda:0 (%x: bf16[8, 3, 32, 32], %w: bf16[64, 3, 3, 3] frozen, %u: bf16[64, 64, 3, 3] frozen, %5: bf16[64, 3, 3, 3] strides [27, 1, 9, 3] from "prepared 5", %6: bf16[64, 64, 3, 3] strides [576, 1, 192, 64] from "prepared 6") {
  %4 strides [3072, 1, 96, 3] = identity(%x)
  %0: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%4, %5)
  %1 strides [65536, 1, 2048, 64] = relu(%0)
  %2: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%1, %6)
  %3 = relu(%2)
  return %3
}
)");
}

TEST_CASE("weights are cast once, views of casts are made in every call", "[passes][freezing]") {
  CHECK(split(R"(graph @f(%x: f32[4, 64], %w: f32[96, 64] frozen, %b: f32[96]) {
  %0 = cast<bf16>(%x)
  %1 = cast<bf16>(%w)
  %2 = permute<dims=[1, 0]>(%1)
  %3: bf16[4, 96] = extern "aten::mm"($0, $1) with (%0, %2)
  %4 = cast<f32>(%3)
  %5 = add(%4, %b)
  return %5
})") == R"(of 1
graph @f_const(%w: f32[96, 64]) {
  %1 = cast<bf16>(%w)
  return %1
}
graph @f(%x: f32[4, 64], %w: f32[96, 64] frozen, %b: f32[96], %1: bf16[96, 64] from "prepared 1") {
  %0 = cast<bf16>(%x)
  %2 = permute<dims=[1, 0]>(%1)
  %3: bf16[4, 96] = extern "aten::mm"($0, $1) with (%0, %2)
  %4 = cast<f32>(%3)
  %b.expanded0: f32[4, 96] = expand(%b)
  %5 = add(%4, %b.expanded0)
  return %5
}
)");
}

TEST_CASE("kernels widen what they read", "[passes][freezing]") {
  CHECK(split(R"(graph @f(%x: f32[8, 64], %m: bf16[64] frozen, %v: bf16[64] frozen, %w: bf16[64, 64] frozen) {
  %0 = cast<f32>(%v)
  %1 = rsqrt(%0)
  %2 = cast<f32>(%m)
  %3: f32[8, 64] = expand(%2)
  %4 = sub(%x, %3)
  %5: f32[8, 64] = expand(%1)
  %6 = mul(%4, %5)
  %7 = cast<f32>(%w)
  %8: f32[8, 64] = extern "aten::mm"($0, $1) with (%6, %7)
  return %8
})") == R"(of 2 3
graph @f_const(%v: bf16[64], %w: bf16[64, 64]) {
  %0 = cast<f32>(%v)
  %1 = rsqrt(%0)
  %7 = cast<f32>(%w)
  return %1, %7
}
graph @f(%x: f32[8, 64], %m: bf16[64] frozen, %v: bf16[64] frozen, %w: bf16[64, 64] frozen, %1: f32[64] from "prepared 1", %7: f32[64, 64] from "prepared 7") {
  %2 = cast<f32>(%m)
  %3: f32[8, 64] = expand(%2)
  %4 = sub(%x, %3)
  %5: f32[8, 64] = expand(%1)
  %6 = mul(%4, %5)
  %8: f32[8, 64] = extern "aten::mm"($0, $1) with (%6, %7)
  return %8
}
)");
}

TEST_CASE("a constant that frozen inputs are computed with is in both graphs", "[passes][freezing]") {
  CHECK(split(R"(graph @f(%x: f32[64], %w: f32[64] frozen) {
  %0: i64[64] = iota<start=0, step=1>()
  %1 = cast<f32>(%0)
  %2 = mul(%w, %1)
  %3 = add(%x, %2)
  %4 = sub(%3, %1)
  return %4
})") == R"(of 1
graph @f_const(%w: f32[64]) {
  %0: i64[64] = iota<start=0, step=1>()
  %1 = cast<f32>(%0)
  %2 = mul(%w, %1)
  return %2
}
graph @f(%x: f32[64], %w: f32[64] frozen, %2: f32[64] from "prepared 2") {
  %0: i64[64] = iota<start=0, step=1>()
  %1 = cast<f32>(%0)
  %3 = add(%x, %2)
  %4 = sub(%3, %1)
  return %4
}
)");
}

TEST_CASE("outputs, written inputs, checked indices and large results stay", "[passes][freezing]") {
  CHECK(split(R"(graph @f(%x: f32[64], %w: f32[64] frozen) {
  %0 = exp(%w)
  %1: f32[8, 8] = reshape(%0)
  %2 = add(%x, %0)
  return %1, %2
})")
            .empty());
  CHECK(split(R"(graph @f(%x: f32[64], %w: f32[64] frozen) {
  %0 = exp(%w)
  %1 = add(%x, %0)
  final %w = %1
  return %1
})")
            .empty());
  CHECK(split(R"(graph @f(%x: f32[2], %w: f32[64] frozen, %i: i64[2] frozen) {
  %0: f32[2] = gather<source=[-1], index_dims=[0]>(%w, %i)
  %1 = add(%x, %0)
  return %1
})")
            .empty());
  CHECK(split(R"(graph @f(%x: f32[1024, 1024], %w: f32[1024, 1] frozen) {
  %0: f32[1024, 1024] = expand(%w)
  %1 = exp(%0)
  %2: f32[1024, 1024] = extern "aten::mm"($0, $1) with (%x, %1)
  return %2
})")
            .empty());
}

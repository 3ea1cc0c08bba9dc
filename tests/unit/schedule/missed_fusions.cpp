// What must stay apart, and the reasons given.
#include "unit/catch.h"
#include "unit/schedule/fusion_programs.h"

using namespace fusion_tests;

namespace {

std::string reasons(const Fused& f) {
  std::string text;
  for (const plan::MissedFusion& missed : f.missed_fusions) text += fmt::format("{} -> {}: {}\n", missed.producer, missed.consumer, missed.reason);
  return text;
}

}  // namespace

TEST_CASE("a step between two regions keeps them apart", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[8, 8]) {
    %a = exp(%x)
    %b: f32[8, 8] = extern "test::twice"($0) with (%a)
    %c = add(%a, %b)
    return %c
  })");
  CHECK(regions(f.fused).size() == 2);
  CHECK(reasons(f).find("the call test::twice needs the producer and is needed by the consumer") != std::string::npos);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("reductions over different variables stay apart", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[300, 8]) {
    %a = reduce<sum, dims=[1]>(%x)
    %b = reduce<sum>(%a)
    return %b
  })");
  CHECK(regions(f.fused).size() == 2);
  CHECK(reasons(f).find("the reductions run over different variables") != std::string::npos);
}

TEST_CASE("what varies over the reduced rows after a reduction across columns stays apart", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[64, 300]) {
    %m = reduce<max, dims=[0], keepdim>(%x)
    %me: f32[64, 300] = expand(%m)
    %d = sub(%x, %me)
    return %d
  })");
  CHECK(regions(f.fused).size() == 2);
  CHECK(reasons(f).find("across columns") != std::string::npos);
}

TEST_CASE("few long rows do not swallow element work", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[4, 200000]) {
    %m = reduce<max, dims=[1], keepdim>(%x)
    %me: f32[4, 200000] = expand(%m)
    %d = sub(%x, %me)
    %e = exp(%d)
    return %e
  })");
  INFO(loops::print(f.fused));
  CHECK(regions(f.fused).size() == 3);  // pieces, their maximum, the elements
  CHECK(reasons(f).find("few long rows") != std::string::npos);
}

TEST_CASE("bodies and buffer counts have limits", "[schedule][fusion]") {
  std::string text = "graph @f on cuda:0 (%x: f32[64, 64]) {\n  %v0 = exp(%x)\n";
  for (int i = 1; i < 100; ++i) text += fmt::format("  %v{} = exp(%v{})\n", i, i - 1);
  Options options;
  options.max_fusion_size = 32;
  Fused f = fuse_text(text + "  return %v99\n}", cuda_target("sm_90a", 132), options);
  for (const loops::Region* region : regions(f.fused)) CHECK(region->body.size() <= 32);
  CHECK(regions(f.fused).size() == 4);
  CHECK(reasons(f).find("statements, more than 32") != std::string::npos);

  std::string inputs, sum = "  %s0 = exp(%x0)\n";
  for (int i = 0; i < 40; ++i) inputs += fmt::format("{}%x{}: f32[64, 64]", i ? ", " : "", i);
  for (int i = 1; i < 40; ++i) sum += fmt::format("  %s{} = add(%s{}, %x{})\n", i, i - 1, i);
  f = fuse_text("graph @f on cuda:0 (" + inputs + ") {\n" + sum + "  return %s39\n}");
  CHECK(regions(f.fused).size() == 2);
  CHECK(reasons(f).find("buffers, more than 24") != std::string::npos);
}

TEST_CASE("an input that is overwritten is read first where coordinates differ", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[5, 5], %y: f32[5, 5]) {
    %t = permute<dims=[1, 0]>(%x)
    %e = exp(%t)
    %s = sin(%x)
    final %x = %e
    final %y = %x
    return %s, %x, %t
  })");
  INFO(loops::print(f.fused));
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
  CHECK(reasons(f).find("overwritten in place is read at other coordinates") != std::string::npos);
}

TEST_CASE("an input is not overwritten before another mutation reads it", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[8, 4], %y: f32[8, 4]) {
    %a = clamp(%x, -8.0, 8.0)
    %m = reduce<max, dims=[1], keepdim>(%a)
    %me: f32[8, 4] = expand(%m)
    %d = sub(%a, %me)
    %z = maximum(%d, %y)
    final %x = %y
    final %y = %z
    return
  })");
  INFO(loops::print(f.fused));
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("expensive work is not repeated over a broadcast", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%t: f32[1000], %x: f32[100000, 1000]) {
    %a = exp(%t)
    %b = sin(%a)
    %c = tanh(%b)
    %ce: f32[100000, 1000] = expand(%c)
    %y = mul(%x, %ce)
    return %y
  })");
  CHECK(regions(f.fused).size() == 2);
  CHECK(reasons(f).find("would cost more than its parts") != std::string::npos);
}

TEST_CASE("what needs inputs that come late stays apart from what does not", "[schedule][fusion]") {
  const graph::Graph graph = graph::parse(R"(graph @f on cuda:0 (%x: f32[64, 64], %late: f32[64, 64]) {
    %a = exp(%x)
    %b = add(%a, %late)
    %c = neg(%b)
    %d = neg(%a)
    return %c, %d
  })");
  const loops::Program lowered = lowering::lower(graph);
  const Target target = cuda_target("sm_90a", 132);
  CHECK(regions(schedule::fuse(lowered, target, {}, nullptr)).size() == 1);
  const loops::Program apart = schedule::fuse(lowered, target, {}, nullptr, {}, {1});
  INFO(loops::print(apart));
  CHECK(regions(apart).size() == 2);
  CHECK(regions(schedule::fuse(lowered, target, {}, nullptr, {}, {0, 1})).size() == 1);
}

// Option fusion_limit: the first fusions of a program, whatever kind they are, and a program that means the same with each limit.
#include "unit/catch.h"
#include "unit/schedule/fusion_programs.h"
#include "unit/schedule/random_graph.h"

using namespace fusion_tests;

namespace {

struct Limited {
  Fused f;
  schedule::FusionCount count;
};

Limited fuse_with(std::string_view text, int64_t limit) {
  Options options;
  options.fusion_limit = limit;
  const Target target = cuda_target("sm_90a", 132);
  Limited limited;
  limited.f.graph = graph::parse(text);
  limited.f.lowered = lowering::lower(limited.f.graph);
  limited.f.fused = schedule::fuse(limited.f.lowered, target, options, &limited.f.missed_fusions, {}, {}, &limited.count);
  loops::verify_or_throw(limited.f.fused, "fuse");
  return limited;
}

constexpr const char* merges = R"(graph @f on cuda:0 (%x: f32[64, 32]) {
  %m = reduce<max, dims=[1], keepdim>(%x)
  %me: f32[64, 32] = expand(%m)
  %d = sub(%x, %me)
  %e = exp(%d)
  %s = reduce<sum, dims=[1], keepdim>(%e)
  %se: f32[64, 32] = expand(%s)
  %y = div(%e, %se)
  return %y
})";
constexpr const char* inlines = R"(graph @f on cuda:0 (%x: f32[64]) {
  %0 = cast<f64>(%x)
  %1: f32[64, 64] = expand(%x)
  %2 = exp(%1)
  %3 = reduce<sum>(%0)
  %4 = reduce<sum, dims=[0]>(%2)
  return %3, %4
})";
constexpr const char* splits = R"(graph @f on cuda:0 (%x: f32[300000]) {
  %0 = mul(%x, 2.0)
  %1 = reduce<sum>(%0)
  return %1
})";

}  // namespace

TEST_CASE("each limit of fusions leaves a program that means the same", "[schedule][fusion]") {
  for (const char* text : {merges, inlines}) {
    const Limited all = fuse_with(text, -1);
    CHECK(all.count.refused.empty());
    REQUIRE(all.count.accepted >= 2);
    for (int64_t limit = 0; limit <= std::ssize(regions(all.f.lowered)) + 8; ++limit) {
      const Limited some = fuse_with(text, limit);
      INFO(loops::print(some.f.fused));
      CHECK(some.count.accepted == std::min<size_t>(all.count.accepted, static_cast<size_t>(limit)));
      CHECK(some.count.refused.empty() == (static_cast<size_t>(limit) >= all.count.accepted));
      CHECK(worst_difference(some.f, arguments_for(some.f.graph, {})) <= 1);
    }
    CHECK(loops::print(fuse_with(text, static_cast<int64_t>(all.count.accepted)).f.fused) == loops::print(all.f.fused));
  }
}

TEST_CASE("without fusions a program has the regions that it had", "[schedule][fusion]") {
  const Limited none = fuse_with(merges, 0);
  CHECK(regions(none.f.fused).size() == regions(none.f.lowered).size());
  CHECK(none.count.refused.find(" region @") != std::string::npos);
  CHECK(none.f.missed_fusions.size() >= 4);
}

TEST_CASE("a reduction that is split counts as a fusion", "[schedule][fusion]") {
  const Limited all = fuse_with(splits, -1);
  REQUIRE(all.count.accepted == 2);
  CHECK(regions(fuse_with(splits, 1).f.fused).size() == 1);
  CHECK(fuse_with(splits, 1).count.refused.starts_with("splits the reductions of region @"));
  CHECK(regions(all.f.fused).size() == 2);
}

TEST_CASE("each limit of fusions keeps the values of random graphs", "[schedule][fusion][fuzz]") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const std::string text = graph::print(RandomGraph(seed).make());
    INFO("seed " << seed << "\n" << text);
    const auto accepted = static_cast<int64_t>(fuse_with(text, -1).count.accepted);
    for (int64_t limit = 0; limit < accepted; ++limit) {
      const Limited some = fuse_with(text, limit);
      INFO("limit " << limit << "\n" << loops::print(some.f.fused));
      REQUIRE_FALSE(some.count.refused.empty());
      REQUIRE(worst_difference(some.f, arguments_for(some.f.graph, {{"s0", 3}}, seed)) <= 1);
    }
  }
}

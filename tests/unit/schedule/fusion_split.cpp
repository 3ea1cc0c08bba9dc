// Long reductions in few rows become two regions.
#include "unit/catch.h"
#include "unit/schedule/fusion_programs.h"

using namespace fusion_tests;

TEST_CASE("a full sum is reduced in pieces; its prologue's store stays with the pieces", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[256, 512]) {
    %a = relu(%x)
    %b = mul(%a, 2.0)
    %s = reduce<sum>(%a)
    %n = div(%s, 131072.0)
    return %n, %b
  })");
  INFO(loops::print(f.fused));
  auto found = regions(f.fused);
  REQUIRE(found.size() == 2);
  CHECK(count_stores(*found[0]) == 2);
  CHECK(found[1]->vars.size() == 1);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("lengths without good divisors and symbolic ones are cut by a mask", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[131101], %y: bf16[s0, 1000]) where 8192 <= s0 <= 100000 {
    %m = reduce<max>(%x)
    %p = reduce<min>(%x)
    %f = cast<f32>(%y)
    %s = reduce<sum, dims=[0]>(%f)
    %any = reduce<any>(%y)
    return %m, %p, %s, %any
  })");
  INFO(loops::print(f.fused));
  CHECK(regions(f.fused).size() == 6);
  for (int64_t rows : {1, 64}) CHECK(worst_difference(f, arguments_for(f.graph, {{"s0", rows}})) <= 1);
}

TEST_CASE("welford pieces of equal length combine", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[64, 3, 32, 32]) {
    %mean, %m2 = reduce<welford, dims=[0, 2, 3]>(%x)
    %v = div(%m2, 65536.0)
    return %mean, %v
  })");
  INFO(loops::print(f.fused));
  CHECK(regions(f.fused).size() == 2);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("short reductions, many rows and reductions that are read again stay whole", "[schedule][fusion]") {
  for (const char* text : {R"(graph @f on cuda:0 (%x: f32[1000]) {
         %s = reduce<sum>(%x)
         return %s
       })",
                           R"(graph @f on cuda:0 (%x: f32[4096, 1024]) {
         %s = reduce<sum, dims=[1]>(%x)
         return %s
       })",
                           R"(graph @f on cuda:0 (%x: f32[300000]) {
         %s = reduce<argmax>(%x)
         return %s
       })"})
    CHECK(regions(fuse_text(text).fused).size() == 1);
}

TEST_CASE("an index is checked in every region that reads with it", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[5, 40000], %i: i64[2]) {
    %g: f32[2, 40000] = gather<source=[-1, 1], index_dims=[0]>(%x, %i)
    %s = reduce<sum, dims=[1]>(%g)
    return %s
  })");
  INFO(loops::print(f.fused));
  auto found = regions(f.fused);
  REQUIRE(found.size() == 2);
  CHECK(std::any_of(found[0]->body.begin(), found[0]->body.end(), [](const loops::Stmt& stmt) { return stmt.as<loops::Check>() != nullptr; }));
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

// The patterns that models are made of: how many regions they become, and that their values stay.
#include "unit/catch.h"
#include "unit/schedule/fusion_programs.h"

using namespace fusion_tests;

namespace {

void check_one_region(std::string_view text, const interp::Symbols& symbols = {}) {
  Fused f = fuse_text(text);
  INFO(loops::print(f.fused));
  CHECK(regions(f.fused).size() == 1);
  CHECK(worst_difference(f, arguments_for(f.graph, symbols)) <= 1);
}

}  // namespace

TEST_CASE("softmax of a biased row is one region", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%x: bf16[s0, 10], %b: bf16[10]) where 1 <= s0 <= 65536 {
    %bb: bf16[s0, 10] = expand(%b)
    %0 = add(%x, %bb)
    %1 = cast<f32>(%0)
    %2 = reduce<max, dims=[1], keepdim>(%1)
    %3: f32[s0, 10] = expand(%2)
    %4 = sub(%1, %3)
    %5 = exp(%4)
    %6 = reduce<sum, dims=[1], keepdim>(%5)
    %7: f32[s0, 10] = expand(%6)
    %8 = div(%5, %7)
    %9 = cast<bf16>(%8)
    return %9
  })",
                   {{"s0", 7}});
}

TEST_CASE("bias, residual and layer norm are one region that also stores the residual sum", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: bf16[4, 8, 16], %r: bf16[4, 8, 16], %b: bf16[16], %w: bf16[16]) {
    %be: bf16[4, 8, 16] = expand(%b)
    %0 = add(%x, %be)
    %1 = add(%0, %r)
    %2 = cast<f32>(%1)
    %mean, %m2 = reduce<welford, dims=[2], keepdim>(%2)
    %me: f32[4, 8, 16] = expand(%mean)
    %d = sub(%2, %me)
    %v = div(%m2, 16.0)
    %ve = add(%v, 0.00001)
    %rs = rsqrt(%ve)
    %rse: f32[4, 8, 16] = expand(%rs)
    %n = mul(%d, %rse)
    %wc = cast<f32>(%w)
    %we: f32[4, 8, 16] = expand(%wc)
    %nw = mul(%n, %we)
    %o = cast<bf16>(%nw)
    %f: bf16[32, 16] = reshape(%o)
    %mm: bf16[32, 16] = extern "test::twice"($0) with (%f)
    %mr: bf16[4, 8, 16] = reshape(%mm)
    %o2 = add(%mr, %1)
    return %o2
  })");
  INFO(loops::print(f.fused));
  auto found = regions(f.fused);
  REQUIRE(found.size() == 2);
  CHECK(count_stores(*found[0]) == 2);
  CHECK(f.missed_fusions.size() == 1);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("RMS norm is one region", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%x: bf16[s0, 32], %w: bf16[32]) where 1 <= s0 <= 4096 {
    %0 = cast<f32>(%x)
    %1 = mul(%0, %0)
    %2 = reduce<sum, dims=[1], keepdim>(%1)
    %3 = div(%2, 32.0)
    %4 = add(%3, 0.000001)
    %5 = rsqrt(%4)
    %6: f32[s0, 32] = expand(%5)
    %7 = mul(%0, %6)
    %8 = cast<bf16>(%7)
    %9: bf16[s0, 32] = expand(%w)
    %10 = mul(%8, %9)
    return %10
  })",
                   {{"s0", 5}});
}

TEST_CASE("batch norm inference with activation is one pointwise region", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%x: f32[2, 3, 4, 4], %m: f32[3], %v: f32[3], %w: f32[3], %b: f32[3]) {
    %ve = add(%v, 0.5)
    %ab = abs(%ve)
    %r = rsqrt(%ab)
    %m4: f32[3, 1, 1] = reshape(%m)
    %me: f32[2, 3, 4, 4] = expand(%m4)
    %r4: f32[3, 1, 1] = reshape(%r)
    %re: f32[2, 3, 4, 4] = expand(%r4)
    %w4: f32[3, 1, 1] = reshape(%w)
    %we: f32[2, 3, 4, 4] = expand(%w4)
    %b4: f32[3, 1, 1] = reshape(%b)
    %be: f32[2, 3, 4, 4] = expand(%b4)
    %0 = sub(%x, %me)
    %1 = mul(%0, %re)
    %2 = mul(%1, %we)
    %3 = add(%2, %be)
    %4 = relu(%3)
    return %4
  })");
}

TEST_CASE("log softmax and the loss gather are one region, the mean another", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: bf16[64, 50], %t: i64[64]) {
    %1 = cast<f32>(%x)
    %2 = reduce<max, dims=[1], keepdim>(%1)
    %2e: f32[64, 50] = expand(%2)
    %3 = sub(%1, %2e)
    %4 = exp(%3)
    %5 = reduce<sum, dims=[1], keepdim>(%4)
    %6 = log(%5)
    %6e: f32[64, 50] = expand(%6)
    %7 = sub(%3, %6e)
    %t1: i64[64, 1] = reshape(%t)
    %8: f32[64, 1] = gather<source=[0, -1], index_dims=[0, 1]>(%7, %t1)
    %9: f32[64] = reshape(%8)
    %10 = neg(%9)
    %11 = reduce<sum>(%10)
    %12 = div(%11, 64.0)
    return %12
  })");
  INFO(loops::print(f.fused));
  CHECK(regions(f.fused).size() == 2);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("embedding, positions and layer norm are one region", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%ids: i64[2, s0], %wte: bf16[11, 8], %wpe: bf16[16, 8]) where 2 <= s0 <= 16 {
    %e: bf16[2, s0, 8] = gather<source=[-1, 2], index_dims=[0, 1]>(%wte, %ids)
    %i: i64[s0] on cuda:0 = iota<start=0, step=1>()
    %p: bf16[s0, 8] = gather<source=[-1, 1], index_dims=[0]>(%wpe, %i)
    %pe: bf16[2, s0, 8] = expand(%p)
    %h = add(%e, %pe)
    %2 = cast<f32>(%h)
    %mean, %m2 = reduce<welford, dims=[2], keepdim>(%2)
    %me: f32[2, s0, 8] = expand(%mean)
    %d = sub(%2, %me)
    %vm = div(%m2, 8.0)
    %ve = add(%vm, 0.00001)
    %rs = rsqrt(%ve)
    %rse: f32[2, s0, 8] = expand(%rs)
    %n = mul(%d, %rse)
    %o = cast<bf16>(%n)
    return %h, %o
  })",
                   {{"s0", 5}});
}

TEST_CASE("the mask of attention is computed where it is used", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%x: f32[2, 3, s0, s0], %pad: bool[2, s0]) where 2 <= s0 <= 4096 {
    %i: i64[s0] on cuda:0 = iota<start=0, step=1>()
    %r: i64[s0, 1] = reshape(%i)
    %re: i64[s0, s0] = expand(%r)
    %c: i64[1, s0] = reshape(%i)
    %ce: i64[s0, s0] = expand(%c)
    %m = le(%ce, %re)
    %z: f32[] on cuda:0 = full(-inf)
    %ze: f32[s0, s0] = expand(%z)
    %w = where(%m, 0.0, %ze)
    %w4: f32[2, 3, s0, s0] = expand(%w)
    %y = add(%x, %w4)
    %pr: bool[2, 1, 1, s0] = reshape(%pad)
    %pe: bool[2, 3, s0, s0] = expand(%pr)
    %y2 = where(%pe, %y, -1e9)
    %mx = reduce<max, dims=[3], keepdim>(%y2)
    %mxe: f32[2, 3, s0, s0] = expand(%mx)
    %d = sub(%y2, %mxe)
    %e = exp(%d)
    %su = reduce<sum, dims=[3], keepdim>(%e)
    %sue: f32[2, 3, s0, s0] = expand(%su)
    %p = div(%e, %sue)
    return %p
  })",
                   {{"s0", 4}});
}

TEST_CASE("heads split off a projection are copied with the bias added, without divisions", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: bf16[2, s0, 24], %b: bf16[24]) where 1 <= s0 <= 4096 {
    %be: bf16[2, s0, 24] = expand(%b)
    %y = add(%x, %be)
    %q: bf16[2, s0, 8] = slice<dim=2, start=0, step=1>(%y)
    %k: bf16[2, s0, 8] = slice<dim=2, start=8, step=1>(%y)
    %v: bf16[2, s0, 8] = slice<dim=2, start=16, step=1>(%y)
    %q1: bf16[2, s0, 2, 4] = reshape(%q)
    %q2 = permute<dims=[0, 2, 1, 3]>(%q1)
    %q3 strides [8*s0, 4*s0, 4, 1] = identity(%q2)
    %k1: bf16[2, s0, 2, 4] = reshape(%k)
    %k2 = permute<dims=[0, 2, 1, 3]>(%k1)
    %k3 = identity(%k2)
    %v1: bf16[2, s0, 2, 4] = reshape(%v)
    %v2 = permute<dims=[0, 2, 1, 3]>(%v1)
    %v3 = gelu(%v2)
    %v4 = permute<dims=[0, 2, 1, 3]>(%v3)
    %v5: bf16[2, s0, 8] = reshape(%v4)
    %v6 = cast<f32>(%v5)
    %s = reduce<sum, dims=[2]>(%v6)
    return %q3, %k3, %s
  })");
  std::string text = loops::print(f.fused);
  INFO(text);
  CHECK(regions(f.fused).size() == 3);
  CHECK_FALSE(has_buffer(f.fused, "y"));
  CHECK(text.find("floordiv") == std::string::npos);
  CHECK(text.find("mod(") == std::string::npos);
  CHECK(worst_difference(f, arguments_for(f.graph, {{"s0", 3}})) <= 1);
}

TEST_CASE("a rotary embedding is one region", "[schedule][fusion]") {
  check_one_region(
      R"(graph @f on cuda:0 (%x: bf16[2, s0, 16], %b: bf16[16], %cos: bf16[s0, 8], %sin: bf16[s0, 8]) where 2 <= s0 <= 4096 {
    %be: bf16[2, s0, 16] = expand(%b)
    %y = add(%x, %be)
    %q1: bf16[2, s0, 2, 8] = reshape(%y)
    %q = permute<dims=[0, 2, 1, 3]>(%q1)
    %ce: bf16[2, 2, s0, 8] = expand(%cos)
    %se: bf16[2, 2, s0, 8] = expand(%sin)
    %a = mul(%q, %ce)
    %x1: bf16[2, 2, s0, 4] = slice<dim=3, start=0, step=1>(%q)
    %x2: bf16[2, 2, s0, 4] = slice<dim=3, start=4, step=1>(%q)
    %n = neg(%x2)
    %rot = cat<dim=3>(%n, %x1)
    %c = mul(%rot, %se)
    %o = add(%a, %c)
    return %o
  })",
      {{"s0", 3}});
}

TEST_CASE("norm backward: rows in one region, columns in another, nothing stored between", "[schedule][fusion]") {
  Fused f = fuse_text(
      R"(graph @f on cuda:0 (%dy: bf16[512, 64], %x: bf16[512, 64], %mean: f32[512, 1], %rstd: f32[512, 1], %w: bf16[64]) {
    %g = cast<f32>(%dy)
    %xf = cast<f32>(%x)
    %me: f32[512, 64] = expand(%mean)
    %re: f32[512, 64] = expand(%rstd)
    %d = sub(%xf, %me)
    %xh = mul(%d, %re)
    %wf = cast<f32>(%w)
    %we: f32[512, 64] = expand(%wf)
    %gw = mul(%g, %we)
    %s1 = reduce<sum, dims=[1], keepdim>(%gw)
    %gx = mul(%gw, %xh)
    %s2 = reduce<sum, dims=[1], keepdim>(%gx)
    %s1e: f32[512, 64] = expand(%s1)
    %s2e: f32[512, 64] = expand(%s2)
    %t = mul(%gw, 64.0)
    %t1 = sub(%t, %s1e)
    %t2 = mul(%xh, %s2e)
    %t3 = sub(%t1, %t2)
    %rn = div(%rstd, 64.0)
    %rne: f32[512, 64] = expand(%rn)
    %dxf = mul(%t3, %rne)
    %dx = cast<bf16>(%dxf)
    %gxh = mul(%g, %xh)
    %dw = reduce<sum, dims=[0]>(%gxh)
    %dwb = cast<bf16>(%dw)
    %db = reduce<sum, dims=[0]>(%g)
    %dbb = cast<bf16>(%db)
    return %dx, %dwb, %dbb
  })");
  INFO(loops::print(f.fused));
  CHECK(regions(f.fused).size() == 2);
  for (const loops::Buffer& buffer : f.fused.buffers) CHECK(buffer.role != loops::Buffer::Role::Temporary);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

TEST_CASE("an optimiser step updates its tensors in place in one region", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%p: f32[6, 5], %g: f32[6, 5], %m: f32[6, 5]) {
    %m1 = mul(%m, 0.9)
    %g1 = mul(%g, 0.1)
    %mn = add(%m1, %g1)
    %u = mul(%mn, 0.001)
    %pn = sub(%p, %u)
    final %p = %pn
    final %m = %mn
    return %u
  })");
}

TEST_CASE("reductions of one row, of a split row and of siblings share a region", "[schedule][fusion]") {
  check_one_region(R"(graph @f on cuda:0 (%x: f32[64, 24]) {
    %max = reduce<max, dims=[1]>(%x)
    %arg = reduce<argmax, dims=[1]>(%x)
    %h: f32[64, 4, 6] = reshape(%x)
    %e = exp(%h)
    %sum = reduce<sum, dims=[1, 2]>(%e)
    return %max, %arg, %sum
  })");
}

TEST_CASE("group norm normalises split channels in one region", "[schedule][fusion]") {
  Fused f = fuse_text(R"(graph @f on cuda:0 (%x: f32[64, 6, 4], %w: f32[6]) {
    %g: f32[64, 2, 12] = reshape(%x)
    %mean, %m2 = reduce<welford, dims=[2], keepdim>(%g)
    %me: f32[64, 2, 12] = expand(%mean)
    %d = sub(%g, %me)
    %v = div(%m2, 12.0)
    %r = rsqrt(%v)
    %re: f32[64, 2, 12] = expand(%r)
    %n = mul(%d, %re)
    %y: f32[64, 6, 4] = reshape(%n)
    %w1: f32[6, 1] = reshape(%w)
    %we: f32[64, 6, 4] = expand(%w1)
    %o = mul(%y, %we)
    return %o
  })");
  std::string text = loops::print(f.fused);
  INFO(text);
  CHECK(regions(f.fused).size() == 1);
  CHECK(text.find("floordiv") == std::string::npos);
  CHECK(worst_difference(f, arguments_for(f.graph, {})) <= 1);
}

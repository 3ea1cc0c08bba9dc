// One region a node: the text of what each kind of node becomes.
#include "interp/interp.h"
#include "ir/graph/text.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "lowering/lower.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

std::string lowered(std::string_view text) {
  loops::Program program = lowering::lower(graph::parse(text));
  loops::verify_or_throw(program, "lower");
  return loops::print(program);
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("elementwise ops compute in the compute type and round once", "[lowering]") {
  CHECK(lowered(R"(graph @f(%x: bf16[s0, 4], %k: f32[]) where 1 <= s0 {
  %0 = add_alpha(%x, %k, 0.5)
  return %0
})") == R"(program @f(@x: bf16[s0, 4], @k: f32[]) where 1 <= s0 {
  output @0: bf16[s0, 4] fixed
  region @n_0 over i0 < s0, i1 < 4 {
    %0 = load @x[i0, i1]  ; (i0 i1)
    %1 = cast<f32>(%0)  ; (i0 i1)
    %2 = load @k[]  ; ()
    %3 = constant f32(0.5)  ; ()
    %4 = add_alpha(%1, %2, %3)  ; (i0 i1)
    %5 = cast<bf16>(%4)  ; (i0 i1)
    store @0[i0, i1] = %5  ; (i0 i1)
  }
  return @0
}
)");
}

TEST_CASE("conversions and copies read the stored element", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: bf16[4], %c: bool[4]) {
    %0 = cast<i32>(%x)
    %1 = identity(%x)
    %2 = where(%c, %x, 1.5)
    return %0, %1, %2
  })");
  INFO(text);
  CHECK(contains(text, "%0 = load @x[i0]  ; (i0)\n    %1 = cast<i32>(%0)"));
  CHECK(contains(text, "%0 = load @x[i0]  ; (i0)\n    store @1[i0] = %0"));
  CHECK(contains(text, "where(%0, %2, %3)"));
}

TEST_CASE("reductions cover all operand dimensions and keep what is kept", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: bf16[3, 4, 5], %s: f32[]) {
    %0 = reduce<max, dims=[1], keepdim>(%x)
    %1 = reduce<argmax>(%x)
    %f = cast<f32>(%x)
    %mean, %m2 = reduce<welford, dims=[0, 2]>(%f)
    %2 = reduce<sum>(%s)
    return %0, %1, %mean, %m2, %2
  })");
  INFO(text);
  CHECK(contains(text, "store @0[i0, 0, i2]"));
  CHECK(contains(text, "reduce<argmax>(%1) over i0, i1, i2"));
  CHECK(contains(text, "project<1>"));
  CHECK(contains(text, "region @n_2 over i0 < 1 {"));
}

TEST_CASE("a reduction over a broadcast dimension keeps varying over it", "[lowering]") {
  graph::Graph g = graph::parse(R"(graph @f(%x: f32[3, 1]) {
    %e: f32[3, 5] = expand(%x)
    %s = reduce<sum, dims=[1]>(%e)
    return %s
  })");
  loops::Program program = lowering::lower(g);
  CHECK(loops::verify(program).empty());
  interp::Arguments arguments{{{DType::F32, {3, 1}, {}}}, {}};
  for (int i = 0; i < 3; ++i) arguments.tensors[0].elements.push_back(Scalar::from_real(DType::F32, i + 1));
  auto result = interp::run(program, arguments);
  CHECK(result.at(0).elements[2].real() == 15);
}

TEST_CASE("views compose into coordinates and leave no divisions", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: f32[2, s0, 12]) where 1 <= s0 {
    %h: f32[2, s0, 3, 4] = reshape(%x)
    %p = permute<dims=[0, 2, 1, 3]>(%h)
    %e = exp(%p)
    %m: f32[6, s0, 4] = reshape(%e)
    %n = neg(%m)
    %back: f32[2, 3, s0, 4] = reshape(%n)
    %q = permute<dims=[0, 2, 1, 3]>(%back)
    %c: f32[2, s0, 12] = reshape(%q)
    %r = sin(%c)
    return %r
  })");
  INFO(text);
  CHECK(contains(text, "load @x[i0, i2, 4*i1 + i3]"));
  CHECK(contains(text, "load @n[3*i0 + i2, i1, i3]"));
  CHECK(contains(text, "store @r[i0, i1, 4*i2 + i3]"));
  CHECK_FALSE(contains(text, "floordiv"));
  CHECK_FALSE(contains(text, "mod("));
}

TEST_CASE("symbolic merges split the loop too", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: f32[s0, s1, 8]) where 1 <= s0, 1 <= s1 {
    %t = permute<dims=[1, 0, 2]>(%x)
    %m: f32[s0*s1, 8] = reshape(%t)
    %e = exp(%m)
    return %e
  })");
  INFO(text);
  CHECK_FALSE(contains(text, "floordiv"));
  CHECK_FALSE(contains(text, "mod("));
}

TEST_CASE("slices, flips and expands are coordinates", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: f32[10, 6], %b: f32[6, 1]) {
    %s: f32[4, 6] = slice<dim=0, start=1, step=2>(%x)
    %f = flip<dims=[1]>(%s)
    %e: f32[4, 6, 5] = expand(%b)
    %0 = exp(%f)
    %1 = exp(%e)
    return %0, %1
  })");
  INFO(text);
  CHECK(contains(text, "load @x[2*i0 + 1, -i1 + 5]"));
  CHECK(contains(text, "load @b[i1, 0]"));
}

TEST_CASE("pad and cat read under masks, gather checks and wraps", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: bf16[4, 5], %i: i64[3], %u: u8[3]) {
    %0: bf16[4, 8] = pad<low=[0, 1], fill=bf16(2.0)>(%x)
    %1 = cat<dim=0>(%x, %x)
    %2: bf16[3, 5] = gather<source=[-1, 1], index_dims=[0]>(%x, %i)
    %3: bf16[3, 5] = gather<source=[-1, 1], index_dims=[0], no_check>(%x, %u)
    return %0, %1, %2, %3
  })");
  INFO(text);
  CHECK(contains(text, "load @x[i0, i1 - 1] if"));
  CHECK(contains(text, "load @x[i0 - 4, i1] if"));
  CHECK(contains(text, "check %5 < (4) \"index i of dimension 0 of size 4\""));
  CHECK(contains(text, "load @x[%1, i1]"));  // unsigned: neither wrapped nor checked
}

TEST_CASE("empty, scalar and constant programs lower", "[lowering]") {
  std::string text = lowered(R"(graph @f(%x: f32[0, 4], %s: f32[]) {
    %0 = exp(%x)
    %r: f32[4, 0] = reshape(%x)
    %1 = neg(%r)
    %2 = reduce<sum, dims=[0]>(%x)
    %3 = exp(%s)
    %4: bf16[2] on cpu = full(0.1)
    %5: f32[7] on cpu = iota<start=3, step=2>()
    return %0, %1, %2, %3, %4, %5
  })");
  INFO(text);
  CHECK(contains(text, "constant bf16("));
  CHECK(contains(text, "index(2*i0 + 3)"));
}

// Outputs, mutations and externs: what aliases what, and which copies are made.
#include "ir/graph/text.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "lowering/lower.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

loops::Program lower_text(std::string_view text) {
  loops::Program program = lowering::lower(graph::parse(text));
  loops::verify_or_throw(program, "lower");
  return program;
}

size_t region_count(const loops::Program& program) {
  size_t count = 0;
  for (const loops::Step& step : program.steps) count += std::holds_alternative<loops::Region>(step);
  return count;
}

}  // namespace

TEST_CASE("outputs alias what they alias in eager", "[lowering]") {
  loops::Program p = lower_text(R"(graph @f(%x: f32[4, 6], sym s0) {
    %t = permute<dims=[1, 0]>(%x)
    %e = exp(%x)
    %v: f32[2, 12] = reshape(%e)
    %c: f32[24] = reshape(%t)
    return %x, %t, %e, %v, %c, expr(2*s0), none
  })");
  using Kind = loops::ProgramOutput::Kind;
  REQUIRE(p.outputs.size() == 7);
  CHECK((p.outputs[0].kind == Kind::Tensor && p.outputs[0].buffer == p.inputs[0].buffer));
  CHECK((p.outputs[1].kind == Kind::View && p.outputs[1].view.buffer == p.inputs[0].buffer));
  CHECK(p.outputs[2].kind == Kind::Tensor);
  CHECK((p.outputs[3].kind == Kind::View && p.outputs[3].view.buffer == p.outputs[2].buffer));
  // A transposed tensor cannot be flattened in place: a copy.
  CHECK(p.outputs[4].kind == Kind::Tensor);
  CHECK(p.buffers[p.outputs[4].buffer].role == loops::Buffer::Role::Output);
  CHECK(p.outputs[5].kind == Kind::Symbol);
  CHECK(p.outputs[6].kind == Kind::None);
  CHECK(region_count(p) == 2);
}

TEST_CASE("an output has the strides that are asked for", "[lowering]") {
  loops::Program p = lower_text(R"(graph @f(%x: f32[4, 6] strides [1, 4]) {
    %e strides [1, 4] = exp(%x)
    %t = permute<dims=[1, 0]>(%e)
    return %t
  })");
  CHECK(p.buffers[p.outputs[0].view.buffer].strides == std::vector<sym::Expr>{1, 4});
  CHECK(p.outputs[0].view.strides == std::vector<sym::Expr>{4, 1});
}

TEST_CASE("mutations are last and never read what another one wrote", "[lowering]") {
  loops::Program p = lower_text(R"(graph @f(%x: f32[4, 4], %y: f32[4, 4]) {
    %e = exp(%x)
    final %x = %y
    final %y = %x
    return %e, %x
  })");
  INFO(loops::print(p));
  // x and y are saved, x is also handed out as it was: n_e, three copies, two stores.
  REQUIRE(region_count(p) == 6);
  for (size_t last = 4; last < 6; ++last) CHECK(std::get<loops::Region>(p.steps[last]).name == (last == 4 ? "m_x" : "m_y"));
  CHECK(p.outputs[1].buffer != p.inputs[0].buffer);
}

TEST_CASE("externs see strided windows and copies only where there is none", "[lowering]") {
  loops::Program p = lower_text(R"(graph @f(%x: f32[8, 6]) {
    %t = permute<dims=[1, 0]>(%x)
    %s: f32[3, 8] = slice<dim=0, start=1, step=2>(%t)
    %f = flip<dims=[0]>(%x)
    %r: f32[48] = reshape(%t)
    %0: f32[3, 8] = extern "test::a"($0, $1, $2, $3) with (%s, %f, %r, expr(7))
    return %0
  })");
  INFO(loops::print(p));
  const auto& call = std::get<loops::ExternCall>(p.steps.back());
  const auto& window = std::get<loops::View>(call.operands[0]);
  CHECK(window.buffer == p.inputs[0].buffer);
  CHECK(window.strides == std::vector<sym::Expr>{2, 6});
  CHECK(window.offset == sym::Expr(1));
  CHECK(std::get<loops::View>(call.operands[1]).buffer != p.inputs[0].buffer);
  CHECK(std::get<loops::View>(call.operands[2]).buffer != p.inputs[0].buffer);
  CHECK(region_count(p) == 2);
}

TEST_CASE("an extern cannot write into a view that strides do not express", "[lowering]") {
  CHECK_THROWS_AS(lower_text(R"(graph @f(%x: f32[8, 6]) {
    %f = flip<dims=[0]>(%x)
    extern "test::a_"($0) with (%f) mutates [0] ordered
    return
  })"),
                  Unsupported);
}

TEST_CASE("what kernels cannot express is unsupported", "[lowering]") {
  CHECK_THROWS_AS(lower_text(R"(graph @f on cuda:0 (%x: f32[8], %k: f32[8] on cpu) {
    %0 = mul(%x, %k)
    return %0
  })"),
                  Unsupported);
  CHECK_THROWS_AS(lower_text(R"(graph @f(%x: f32[i0]) where 1 <= i0 {
    %0 = exp(%x)
    return %0
  })"),
                  Unsupported);
}

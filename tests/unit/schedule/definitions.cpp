// Graphs whose sizes are data, through lowering, fusion and planning: every IR means the same, whatever the data.
#include "interp/interp.h"
#include "ir/graph/text.h"
#include "ir/plan/symbols.h"
#include "lowering/lower.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/plan_programs.h"

using namespace cxxinductor;
using namespace cxxinductor::schedule;

namespace {

constexpr const char* chosen = R"(graph @chosen(%x: f32[8], %m: bool[8], %n: i64[]) where 0 <= u0 <= 8, 0 <= u1 <= 4 {
  %0 = exp(%x)
  %1: f32[u0] = extern "aten::masked_select"($0, $1) with (%0, %m) defines [u0 = result 0 dim 0]
  %2 = mul(%1, 2.0)
  %3 = reduce<sum>(%2)
  extern "aten::_local_scalar_dense"($0) with (%n) defines [u1 = value]
  extern "aten::_assert_scalar"($0, "u0 is at least u1") with (expr(min(1, max(0, u0 - u1 + 1)))) ordered
  %4: f32[u1] = slice<dim=0, start=0, step=1>(%2)
  %5: f32[u1] = expand(%3)
  %6 = add(%4, %5)
  %7 = reduce<sum>(%6)
  %8: f32[8] = expand(%7)
  %9 = add(%x, %8)
  return %2, %9, expr(u0 + u1)
}
)";

interp::Tensor tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& numbers) {
  interp::Tensor made{dtype, std::move(sizes), {}};
  for (double number : numbers) made.elements.push_back(cast(Scalar::from_real(DType::F64, number), dtype));
  return made;
}

std::vector<interp::Tensor> select_masked(const std::string& callee, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  REQUIRE(callee == "aten::masked_select");
  interp::Tensor found{DType::F32, {0}, {}};
  for (size_t i = 0; i < operands[0].elements.size(); ++i)
    if (operands[1].elements[i].integer() != 0) found.elements.push_back(operands[0].elements[i]);
  found.sizes[0] = static_cast<int64_t>(found.elements.size());
  return {found};
}

}  // namespace

TEST_CASE("what uses a size stands behind its definition and its assertions, fused as ever", "[schedule][interp]") {
  const graph::Graph graph = graph::parse(chosen);
  const loops::Program lowered = lowering::lower(graph);
  const loops::Program fused = fuse(lowered, test::cpu(), Options(), nullptr);
  const plan::Plan plan = test::make_plan(fused, test::cpu(), Options());
  CHECK(plan.kernels.size() <= 5);
  CHECK(plan::find_definition_times(plan).size() == 2);
  for (int count : {0, 1, 5, 8})
    for (int n : {0, 1, 4}) {
      interp::Arguments arguments;
      std::vector<double> mask(8, 0);
      for (int i = 0; i < count; ++i) mask[static_cast<size_t>((3 * i) % 8)] = 1;
      arguments.tensors = {tensor(DType::F32, {8}, {0, 1, -1, 0.5, 2, -2, 0.25, 1.5}), tensor(DType::Bool, {8}, mask),
                           tensor(DType::I64, {}, {static_cast<double>(n)})};
      if (n > count) {
        CHECK_THROWS_WITH(interp::run(graph, arguments, select_masked), "u0 is at least u1");
        CHECK_THROWS_AS(interp::run(fused, arguments, select_masked), FailedAssertion);
        CHECK_THROWS_WITH(interp::run(plan, arguments, select_masked), "u0 is at least u1");
        continue;
      }
      const std::vector<interp::Tensor> expected = interp::run(graph, arguments, select_masked);
      CHECK(expected[2].elements[0].integer() == count + n);
      for (const auto& found :
           {interp::run(lowered, arguments, select_masked), interp::run(fused, arguments, select_masked), interp::run(plan, arguments, select_masked)})
        for (size_t i = 0; i < expected.size(); ++i) CHECK(interp::compare(expected[i], found.at(i)) <= 1);
    }
}

TEST_CASE("temporaries of a size that is data share an arena that is taken when it is known", "[schedule][memory]") {
  const plan::Plan plan = test::plan_for(R"(program @p on DEVICE (@x: f32[8], @m: f32[8]) where 0 <= u0 <= 1000 {
    temporary @a: f32[8]
    temporary @s: f32[u0]
    temporary @b: f32[u0, 4]
    temporary @c: f32[u0, 4]
    output @y: f32[8]
    @a = extern "aten::f"($0) with (@x) planned_out
    @s = extern "aten::g"($0) with (@a) defines [u0 = result 0 dim 0]
    @b = extern "aten::h"($0) with (@s) planned_out
    @c = extern "aten::h"($0) with (@b) planned_out
    @y = extern "aten::f"($0) with (@c) planned_out
    return @y
  }
)",
                                         test::cpu());
  REQUIRE(plan.arenas.size() == 2);
  CHECK(plan.arenas[0].bytes.is_constant());
  CHECK(!plan.arenas[1].bytes.is_constant());
}

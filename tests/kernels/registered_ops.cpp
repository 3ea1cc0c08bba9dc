// Ops and reductions that a user registers, whose text and structs are generated, in every kind of kernel of both targets against the interpreter.
#include "ir/registered_ops.h"

#include "kernels/against_interpreter.h"
#include "unit/replaced.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

// Moments as welford has them, a state of three dtypes; two results.
const RegisteredReduction moments{.overload = "tests::moments",
                                  .state = "mean:T m2:T n:u32",
                                  .results = "mean:T m2:T",
                                  .start = "mean = 0, m2 = 0, n = 0",
                                  .lift = "mean = x, m2 = 0, n = 1",
                                  .merge =
                                      "n = add(a.n, b.n), empty = eq(b.n, 0), delta = sub(b.mean, a.mean), all = cast<T>(n), right = cast<T>(b.n),"
                                      "mean = where(empty, a.mean, add(a.mean, div(mul(delta, right), all))),"
                                      "m2 = where(empty, a.m2, add(add(a.m2, b.m2), div(mul(mul(mul(delta, delta), cast<T>(a.n)), right), all)))",
                                  .finish = ""};
// A finish statement; integers too. Components are called what generated text calls other things.
const RegisteredReduction spread{.overload = "tests::spread",
                                 .state = "a:T x:T",
                                 .results = "spread:T",
                                 .start = "a = highest, x = lowest",
                                 .lift = "a = x, x = x",
                                 .merge = "a = minimum(a.a, b.a), x = maximum(a.x, b.x)",
                                 .finish = "spread = sub(x, a)",
                                 .order_matters = false};
// A truth value and a position: whether all elements are positive, and where the first is that is not.
const RegisteredReduction first_negative{.overload = "tests::first_negative",
                                         .state = "all:bool first:i64",
                                         .results = "all:bool first:i64",
                                         .start = "all = 1, first = highest",
                                         .lift = "all = ge(x, 0), first = where(ge(x, 0), highest, at)",
                                         .merge = "all = logical_and(a.all, b.all), first = minimum(a.first, b.first)",
                                         .finish = "",
                                         .order_matters = false};
// A transcendental op in the statements, and an op of the user's.
const RegisteredOp soft_square{.overload = "tests::soft_square",
                               .arguments = {"x", "beta"},
                               .transcendental = true,
                               .cuda = "soft_square({0}, {T}({1}))",
                               .cpu = "soft_square({0}, {T}({1}))",
                               .cuda_source = "template <class T> __device__ T soft_square(T x, T beta) { return x * x / (cxxi_abs(x) + beta); }",
                               .cpu_source = "template <class T> inline T soft_square(T x, T beta) { return x * x / ((x < 0 ? -x : x) + beta); }",
                               .definition = "result = div(mul(x, x), add(abs(x), beta))"};
const RegisteredReduction soft_sum{.overload = "tests::soft_sum",
                                   .state = "total:T",
                                   .results = "log:T",
                                   .start = "total = 0",
                                   .lift = "total = tests.soft_square(x, 2)",
                                   .merge = "total = add(a.total, b.total)",
                                   .finish = "log = log(add(total, 1))"};

void register_all() {
  add_scalar_op(soft_square);
  for (const RegisteredReduction& reduction : {moments, spread, first_negative, soft_sum}) add_reduction(reduction);
}

void compare(const std::string& text, const std::vector<interp::Symbols>& calls, double tolerance_scale = 1) {
  const std::string on_cpu = on_device(text, "cpu");
  CpuProgram cpu(on_cpu);
  CudaProgram cuda(on_device(text, "cuda:0"), plan::Variant{});
  CudaProgram scalar(on_device(text, "cuda:0"), plan::Variant{.vectorized = false});
  const loops::Program program = loops::parse(on_cpu);
  for (const interp::Symbols& symbols : calls) {
    const interp::Arguments arguments = arguments_of(program, symbols);
    const std::vector<interp::Tensor> expected = interp::run(program, arguments);
    check_against(expected, run_compiled(cpu, arguments), tolerance_scale);
    check_against(expected, run_compiled(cuda, arguments), tolerance_scale);
    check_against(expected, run_compiled(scalar, arguments), tolerance_scale);
  }
}

// All four reductions of x over one of its dimensions.
constexpr const char* reductions = R"(program @p on DEVICE (@x: f32[s0, s1]) where 1 <= s0 <= 5000, 1 <= s1 <= 5000 {
  output @mean: f32[KEPT]
  output @m2: f32[KEPT]
  output @spread: f32[KEPT]
  output @all: bool[KEPT]
  output @first: i64[KEPT]
  output @log: f32[KEPT]
  region @n over i < KEPT, j < REDUCED {
    %x = load @x[COORDINATES]
    %m = reduce<tests.moments>(%x) over j
    %m2 = project<1>(%m)
    %s = reduce<tests.spread>(%x) over j
    %a = reduce<tests.first_negative>(%x) over j
    %f = project<1>(%a)
    %l = reduce<tests.soft_sum>(%x) over j
    store @mean[i] = %m
    store @m2[i] = %m2
    store @spread[i] = %s
    store @all[i] = %a
    store @first[i] = %f
    store @log[i] = %l
  }
  return @mean, @m2, @spread, @all, @first, @log
})";

}  // namespace

TEST_CASE("registered reductions over rows", "[cuda][cpu]") {
  register_all();
  const std::string text = replaced(replaced(replaced(reductions, "KEPT", "s0"), "REDUCED", "s1"), "COORDINATES", "i, j");
  compare(text, {{{"s0", 3}, {"s1", 1}}, {{"s0", 3}, {"s1", 7}}, {{"s0", 2}, {"s1", 100}}, {{"s0", 2}, {"s1", 1500}}});
  const std::string constant = replaced(text, ", 1 <= s1 <= 5000", "");
  for (const char* length : {"3", "64", "1000"}) compare(replaced(constant, "s1", length), {{{"s0", 4}}});
}

TEST_CASE("registered reductions over columns", "[cuda][cpu]") {
  register_all();
  const std::string text = replaced(replaced(replaced(reductions, "KEPT", "s1"), "REDUCED", "s0"), "COORDINATES", "j, i");
  compare(text, {{{"s0", 1}, {"s1", 3}}, {{"s0", 7}, {"s1", 40}}, {{"s0", 600}, {"s1", 33}}});
}

TEST_CASE("registered reductions of other dtypes", "[cuda][cpu]") {
  register_all();
  const char* text = R"(program @p on DEVICE (@x: DTYPE[s0, 70]) where 1 <= s0 <= 1000 {
    output @spread: DTYPE[s0]
    output @first: i64[s0]
    region @n over i < s0, j < 70 {
      %x = load @x[i, j]
      %s = reduce<tests.spread>(%x) over j
      %a = reduce<tests.first_negative>(%x) over j
      %f = project<1>(%a)
      store @spread[i] = %s
      store @first[i] = %f
    }
    return @spread, @first
  })";
  for (const char* dtype : {"i32", "i64", "i8", "f64", "u8"}) {
    INFO(dtype);
    compare(replaced(text, "DTYPE", dtype), {{{"s0", 3}}});
  }
}

TEST_CASE("registered ops in pointwise kernels and beside reductions", "[cuda][cpu]") {
  register_all();
  compare(R"(program @p on DEVICE (@x: bf16[s0, 37], @b: f64[s0, 37]) where 1 <= s0 <= 1000 {
    output @y: bf16[s0, 37]
    output @z: f64[s0, 37]
    region @n over i < s0, j < 37 {
      %0 = load @x[i, j]
      %x = cast<f32>(%0)
      %beta = constant f32(0.5)
      %f = tests.soft_square(%x, %beta)
      %y = cast<bf16>(%f)
      store @y[i, j] = %y
      %w = load @b[i, j]
      %g = tests.soft_square(%w, %w)
      store @z[i, j] = %g
    }
    return @y, @z
  })",
          {{{"s0", 1}}, {{"s0", 130}}});
  compare(R"(program @p on DEVICE (@x: f32[s0, 200]) where 1 <= s0 <= 1000 {
    output @y: f32[s0, 200]
    region @n over i < s0, j < 200 {
      %x = load @x[i, j]
      %beta = constant f32(0.5)
      %f = tests.soft_square(%x, %beta)
      %s = reduce<tests.soft_sum>(%f) over j
      %y = div(%f, %s)
      store @y[i, j] = %y
    }
    return @y
  })",
          {{{"s0", 5}}});
}

TEST_CASE("a target without an expression refuses the op", "[cuda][cpu]") {
  add_scalar_op({.overload = "tests::of_cuda", .arguments = {"x"}, .cuda = "({0} + {T}(1))"});
  const char* text = R"(program @p on DEVICE (@x: f32[10]) {
    output @y: f32[10]
    region @n over i < 10 { %x = load @x[i] %y = tests.of_cuda(%x) store @y[i] = %y }
    return @y
  })";
  CHECK_NOTHROW(CudaProgram(on_device(text, "cuda:0"), plan::Variant{}));
  CHECK_THROWS_WITH(CpuProgram(on_device(text, "cpu")), mentions("tests.of_cuda is registered without an expression for this target"));
}

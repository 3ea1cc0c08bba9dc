// Graph passes on texts: what goes, what must stay.
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "passes/pass_manager.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

std::string after_passes(std::string_view text) {
  graph::Graph g = graph::parse(text);
  Options options;
  options.verify = "each";
  passes::run_graph_pipeline(g, options);
  return graph::print(g);
}

}  // namespace

TEST_CASE("dead nodes go, side effects and checked gathers stay", "[passes]") {
  CHECK(after_passes(R"(graph @f(%x: f32[4], %i: i64[2]) {
  %0 = exp(%x)
  %1 = neg(%0)
  %2: f32[2] = gather<source=[-1], index_dims=[0]>(%x, %i)
  %3: f32[4] = extern "test::pure"($0) with (%x)
  extern "test::log"($0) with (%0) ordered
  return %x
})") == R"(graph @f(%x: f32[4], %i: i64[2]) {
  %0 = exp(%x)
  %2: f32[2] = gather<source=[-1], index_dims=[0]>(%x, %i)
  extern "test::log"($0) with (%0) ordered
  return %x
}
)");
}

TEST_CASE("equal nodes merge unless their storage leaves the graph", "[passes]") {
  CHECK(after_passes(R"(graph @f(%x: f32[4, 4]) {
  %0 = exp(%x)
  %1 = exp(%x)
  %t = permute<dims=[1, 0]>(%0)
  %u = permute<dims=[1, 0]>(%1)
  %2 = add(%t, %u)
  %3 = neg(%2)
  %4 = neg(%2)
  return %3, %4
})") == R"(graph @f(%x: f32[4, 4]) {
  %0 = exp(%x)
  %t = permute<dims=[1, 0]>(%0)
  %2 = add(%t, %t)
  %3 = neg(%2)
  %4 = neg(%2)
  return %3, %4
}
)");
}

TEST_CASE("constants fold into immediates and evaluate", "[passes]") {
  CHECK(after_passes(R"(graph @f(%x: bf16[4, 3], %n: f32[]) {
  %0: bf16[3] = full(0.1)
  %1: bf16[4, 3] = expand(%0)
  %2 = mul(%x, %1)
  %3: f32[] = full(2.0)
  %4 = sqrt(%3)
  %5: f32[2] = full(3.0)
  %6 = add(%5, %n)
  return %2, %4, %6
})") == R"(graph @f(%x: bf16[4, 3], %n: f32[]) {
  %2 = mul(%x, 0.100097656)
  %4: f32[] = full(1.4142135)
  %5: f32[2] = full(3.0)
  %6 = add(%5, %n)
  return %2, %4, %6
}
)");
}

TEST_CASE("only exact identities are removed", "[passes]") {
  CHECK(after_passes(R"(graph @f(%x: f32[4], %h: bf16[4], %i: i64[4]) {
  %0 = mul(%x, 1.0)
  %1 = add(%0, 0.0)
  %2 = sub(%1, 0.0)
  %3 = div(%2, 1.0)
  %4 = cast<f32>(%h)
  %5 = cast<bf16>(%4)
  %6 = neg(%5)
  %7 = cast<bf16>(%3)
  %8 = cast<f32>(%7)
  %9 = add(%i, 0)
  %10 = mul(%9, 1)
  %11 = neg(%10)
  %12: f32[4] = reshape(%8)
  %13 = neg(%12)
  %14 = identity(%x)
  return %6, %11, %13, %14
})") == R"(graph @f(%x: f32[4], %h: bf16[4], %i: i64[4]) {
  %1 = add(%x, 0.0)
  %6 = neg(%h)
  %7 = cast<bf16>(%1)
  %8 = cast<f32>(%7)
  %11 = neg(%i)
  %13 = neg(%8)
  %14 = identity(%x)
  return %6, %11, %13, %14
}
)");
}

// Logits, and the sums of a loss, whose f32 values eager holds.
TEST_CASE("matrix products of unaligned rows get padded operands where that pays", "[passes]") {
  CHECK(after_passes(R"(graph @f on cuda:0 (%x: bf16[8192, 768], %w: bf16[50257, 768]) {
  %t = permute<dims=[1, 0]>(%w)
  %0: bf16[8192, 50257] = extern "aten::mm"($0, $1) with (%x, %t) planned_out flexible_strides
  %a = cast<f32>(%0)
  %b = exp(%a)
  %c = reduce<sum, dims=[1]>(%b)
  return %c
})") == R"(graph @f on cuda:0 (%x: bf16[8192, 768], %w: bf16[50257, 768]) {
  %1: bf16[50264, 768] = pad<low=[0, 0], fill=bf16(0.0)>(%w)
  %2 = permute<dims=[1, 0]>(%1)
  %3: bf16[8192, 50264] = extern "aten::mm"($0, $1) with (%x, %2) planned_out flexible_strides
  %4: bf16[8192, 50257] = slice<dim=1, start=0, step=1>(%3)
  %5 = identity(%4)
  %a = cast<f32>(%5)
  %b = exp(%a)
  %c = reduce<sum, dims=[1]>(%b)
  return %c
}
)");
  const std::string small = R"(graph @f on cuda:0 (%x: bf16[16, 768], %w: bf16[768, 50257]) {
  %0: bf16[16, 50257] = extern "aten::mm"($0, $1) with (%x, %w) planned_out flexible_strides
  return %0
}
)";
  CHECK(after_passes(small) == small);
}

TEST_CASE("a product stays as it is where eager has no room for the padded one", "[passes]") {
  const std::string logits = R"(graph @f on cuda:0 (%x: bf16[8192, 768], %w: bf16[50257, 768]) {
  %t = permute<dims=[1, 0]>(%w)
  %0: bf16[8192, 50257] = extern "aten::mm"($0, $1) with (%x, %t) planned_out flexible_strides
  return %0
}
)";
  CHECK(after_passes(logits) == logits);
}

// Eager holds two values of 300 MB beside the gradient of 823 MB, which leaves room for a padded half of it.
TEST_CASE("products are computed in parts where eager has room for some padded rows", "[passes]") {
  CHECK(after_passes(R"(graph @f on cuda:0 (%g: bf16[8192, 50257], %w: bf16[50257, 768], %h: bf16[8192, 768], %x: f32[75000000]) {
  %t = permute<dims=[1, 0]>(%g)
  %0: bf16[50257, 768] = extern "aten::mm"($0, $1) with (%t, %h) planned_out flexible_strides
  %1: bf16[8192, 768] = extern "aten::mm"($0, $1) with (%g, %w) planned_out flexible_strides
  %a = exp(%x)
  %b = sin(%a)
  %c = reduce<sum, dims=[0]>(%b)
  return %0, %1, %c
})") == R"(graph @f on cuda:0 (%g: bf16[8192, 50257], %w: bf16[50257, 768], %h: bf16[8192, 768], %x: f32[75000000]) {
  %2: bf16[8192, 25136] = slice<dim=1, start=0, step=1>(%g)
  %3 = identity(%2)
  %4 = permute<dims=[1, 0]>(%3)
  %5: bf16[25136, 768] = extern "aten::mm"($0, $1) with (%4, %h) planned_out flexible_strides
  %6: bf16[8192, 25121] = slice<dim=1, start=25136, step=1>(%g)
  %7: bf16[8192, 25128] = pad<low=[0, 0], fill=bf16(0.0)>(%6)
  %8 = permute<dims=[1, 0]>(%7)
  %9: bf16[25128, 768] = extern "aten::mm"($0, $1) with (%8, %h) planned_out flexible_strides
  %10: bf16[25121, 768] = slice<dim=0, start=0, step=1>(%9)
  %11 = cat<dim=0>(%5, %10)
  %13: bf16[4096, 50257] = slice<dim=0, start=0, step=1>(%g)
  %14: bf16[4096, 50264] = pad<low=[0, 0], fill=bf16(0.0)>(%13)
  %12: bf16[50264, 768] = pad<low=[0, 0], fill=bf16(0.0)>(%w)
  %15: bf16[4096, 768] = extern "aten::mm"($0, $1) with (%14, %12) planned_out flexible_strides
  %16: bf16[4096, 50257] = slice<dim=0, start=4096, step=1>(%g)
  %17: bf16[4096, 50264] = pad<low=[0, 0], fill=bf16(0.0)>(%16)
  %18: bf16[4096, 768] = extern "aten::mm"($0, $1) with (%17, %12) planned_out flexible_strides
  %19 = cat<dim=0>(%15, %18)
  %a = exp(%x)
  %b = sin(%a)
  %c = reduce<sum, dims=[0]>(%b)
  return %11, %19, %c
}
)");
}

std::string after_passes_without(const char* disabled, std::string_view text) {
  graph::Graph g = graph::parse(text);
  Options options;
  options.verify = "each";
  options.skip_passes = disabled;
  passes::run_graph_pipeline(g, options);
  return graph::print(g);
}

TEST_CASE("the bias of a convolution on CUDA is added outside", "[passes]") {
  CHECK(after_passes_without("graph-channels-last",
                             R"(graph @f on cuda:0 (%x: bf16[2, 3, 8, 8], %w: bf16[4, 3, 1, 1], %b: bf16[4]) {
  %0: bf16[2, 4, 8, 8] = extern "aten::convolution"($0, $1, $2, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) with (%x, %w, %b)
  %1 = relu(%0)
  return %1
})") == R"(graph @f on cuda:0 (%x: bf16[2, 3, 8, 8], %w: bf16[4, 3, 1, 1], %b: bf16[4]) {
  %4: bf16[2, 4, 8, 8] = extern "aten::convolution"($0, $1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) with (%x, %w)
  %2: bf16[4, 1, 1] = reshape(%b)
  %3: bf16[2, 4, 8, 8] = expand(%2)
  %0 = add(%4, %3)
  %1 = relu(%0)
  return %1
}
)");
}

TEST_CASE("16-bit convolution networks on CUDA are turned to channels-last, outputs keep eager's strides", "[passes]") {
  CHECK(after_passes(R"(graph @f on cuda:0 (%x: bf16[8, 3, 32, 32], %w: bf16[64, 3, 3, 3], %u: bf16[64, 64, 1, 1]) {
  %0: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%x, %w)
  %1 = relu(%0)
  %2: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) with (%1, %u)
  %3 = add(%2, %1)
  return %2, %3
})") == R"(graph @f on cuda:0 (%x: bf16[8, 3, 32, 32], %w: bf16[64, 3, 3, 3], %u: bf16[64, 64, 1, 1]) {
  %4 strides [3072, 1, 96, 3] = identity(%x)
  %5 strides [27, 1, 9, 3] = identity(%w)
  %0: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%4, %5)
  %1 strides [65536, 1, 2048, 64] = relu(%0)
  %2: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64] = extern "aten::convolution"($0, $1, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1) with (%1, %u)
  %3 = add(%2, %1)
  %6 = identity(%2)
  return %6, %3
}
)");
}

TEST_CASE("convolutions stay as they are in f32, and where every result leaves in eager's strides", "[passes]") {
  for (const char* text : {R"(graph @f on cuda:0 (%x: f32[8, 64, 32, 32], %w: f32[64, 64, 3, 3]) {
  %0: f32[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%x, %w)
  %1 = relu(%0)
  return %1
}
)",
                           R"(graph @f on cuda:0 (%x: bf16[8, 64, 32, 32], %w: bf16[64, 64, 3, 3]) {
  %0: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%x, %w)
  return %0
}
)"})
    CHECK(after_passes(text) == text);
}

TEST_CASE("what is saved for the backward leaves in channels-last, views of results in eager's strides", "[passes]") {
  CHECK(after_passes(R"(graph @f on cuda:0 (%x: bf16[8, 64, 32, 32], %w: bf16[64, 64, 3, 3], %v: bf16[64, 64, 3, 3]) {
  %0: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%x, %w)
  %1 = relu(%0)
  %2: bf16[8, 64, 32, 32] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%1, %v)
  %3 = permute<dims=[0, 2, 3, 1]>(%2)
  return %2, %3, %0 flexible_strides, %1 flexible_strides
})") == R"(graph @f on cuda:0 (%x: bf16[8, 64, 32, 32], %w: bf16[64, 64, 3, 3], %v: bf16[64, 64, 3, 3]) {
  %4 strides [65536, 1, 2048, 64] = identity(%x)
  %5 strides [576, 1, 192, 64] = identity(%w)
  %0: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%4, %5)
  %1 strides [65536, 1, 2048, 64] = relu(%0)
  %6 strides [576, 1, 192, 64] = identity(%v)
  %2: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64] = extern "aten::convolution"($0, $1, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1) with (%1, %6)
  %3 strides [65536, 32, 1, 1024] = permute<dims=[0, 2, 3, 1]>(%2)
  %7 = identity(%2)
  return %7, %3, %0 flexible_strides, %1 flexible_strides
}
)");
}

TEST_CASE("backward convolutions take saved inputs as they come and give gradients in channels-last", "[passes]") {
  CHECK(after_passes(R"(graph @f on cuda:0 (%g: bf16[8, 64, 32, 32], %x: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64], %w: bf16[64, 64, 3, 3]) {
  %0 fixed = identity(%x)
  %1 = gt(%x, 0.0)
  %2 = where(%1, %g, 0.0)
  %3: bf16[8, 64, 32, 32], %4: bf16[64, 64, 3, 3], %5: u8[0] = extern "aten::convolution_backward"($0, $1, $2, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, false]) with (%2, %0, %w)
  %6 = cast<f32>(%4)
  %7 = neg(%3)
  return %6, %7 flexible_strides
})") == R"(graph @f on cuda:0 (%g: bf16[8, 64, 32, 32], %x: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64], %w: bf16[64, 64, 3, 3]) {
  %1 strides [65536, 1, 2048, 64] = gt(%x, 0.0)
  %2 strides [65536, 1, 2048, 64] = where(%1, %g, 0.0)
  %8 strides [576, 1, 192, 64] = identity(%w)
  %3: bf16[8, 64, 32, 32] strides [65536, 1, 2048, 64], %4: bf16[64, 64, 3, 3] strides [576, 1, 192, 64], %5: u8[0] = extern "aten::convolution_backward"($0, $1, $2, [0], [1, 1], [1, 1], [1, 1], false, [0, 0], 1, [true, true, false]) with (%2, %x, %8)
  %6 = cast<f32>(%4)
  %7 strides [65536, 1, 2048, 64] = neg(%3)
  return %6, %7 flexible_strides
}
)");
}

TEST_CASE("two products share a padded operand, stored along its rows or not", "[passes]") {
  CHECK(after_passes(R"(graph @f on cuda:0 (%g: bf16[8192, 50257], %w: bf16[50257, 768], %h: bf16[8192, 768]) {
  %t = permute<dims=[1, 0]>(%g)
  %0: bf16[50257, 768] = extern "aten::mm"($0, $1) with (%t, %h) planned_out flexible_strides
  %1: bf16[8192, 768] = extern "aten::mm"($0, $1) with (%g, %w) planned_out flexible_strides
  %a = cast<f32>(%g)
  %b = exp(%a)
  %c = reduce<sum, dims=[1]>(%b)
  return %0, %1, %c
})") == R"(graph @f on cuda:0 (%g: bf16[8192, 50257], %w: bf16[50257, 768], %h: bf16[8192, 768]) {
  %2: bf16[8192, 50264] = pad<low=[0, 0], fill=bf16(0.0)>(%g)
  %3 = permute<dims=[1, 0]>(%2)
  %4: bf16[50264, 768] = extern "aten::mm"($0, $1) with (%3, %h) planned_out flexible_strides
  %5: bf16[50257, 768] = slice<dim=0, start=0, step=1>(%4)
  %6 = identity(%5)
  %7: bf16[50264, 768] = pad<low=[0, 0], fill=bf16(0.0)>(%w)
  %8: bf16[8192, 768] = extern "aten::mm"($0, $1) with (%2, %7) planned_out flexible_strides
  %a = cast<f32>(%g)
  %b = exp(%a)
  %c = reduce<sum, dims=[1]>(%b)
  return %6, %8, %c
}
)");
}

// Calls of matrix products that become kernels of ours with their epilogues, and those that stay calls.
#include "ir/plan/matmul.h"
#include "kernels/matmul/matmul.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/fusion_programs.h"

using namespace fusion_tests;

namespace {

Options fusing(const char* how) {
  Options options;
  options.epilogue_fusion = how;
  return options;
}

Fused fuse_matmuls(const std::string& text, const char* how = "always") { return fuse_text(text, cuda_target("sm_90a", 132), fusing(how)); }

int count_calls(const loops::Program& program) {
  return static_cast<int>(
      std::count_if(program.steps.begin(), program.steps.end(), [](const loops::Step& step) { return std::holds_alternative<loops::ExternCall>(step); }));
}

// Every region with a sum is planned as a product on tensor cores.
void check_mapped(const Fused& fused) {
  const plan::Plan plan = schedule::test::make_plan(fused.fused, cuda_target("sm_90a", 132), Options());
  for (const plan::Kernel& kernel : plan.kernels)
    if (plan::find_matmul(kernel.region)) CHECK(kernel.mapping.as<plan::Matmul>());
}

double sum_of(const interp::Tensor& a, int64_t row, const interp::Tensor& b, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < a.sizes[1]; ++k)
    sum += a.elements[static_cast<size_t>(row * a.sizes[1] + k)].as_real() * b.elements[static_cast<size_t>(k * b.sizes[1] + column)].as_real();
  return sum;
}

// mm and addmm as ATen defines them, for two-dimensional operands.
std::vector<interp::Tensor> product(const std::string& name, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  const bool adds = name == "aten::addmm";
  const interp::Tensor &a = operands.at(adds), &b = operands.at(adds + 1);
  interp::Tensor result{a.dtype, {a.sizes[0], b.sizes[1]}, {}};
  for (int64_t i = 0; i < a.sizes[0]; ++i)
    for (int64_t j = 0; j < b.sizes[1]; ++j) {
      const double added = adds ? operands[0].elements[static_cast<size_t>(j)].as_real() : 0;
      result.elements.push_back(Scalar::from_real(a.dtype, sum_of(a, i, b, j) + added));
    }
  return {result};
}

double difference(const Fused& fused) {
  const interp::Arguments arguments = arguments_for(fused.graph, {});
  const auto expected = interp::run(fused.graph, arguments, product), found = interp::run(fused.fused, arguments, product);
  const plan::Plan plan = schedule::test::make_plan(fused.fused, cuda_target("sm_90a", 132), Options());
  const auto planned = interp::run(plan, arguments, product);
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t e = 0; e < expected[i].elements.size(); ++e)
      for (const auto* results : {&found, &planned}) {
        const double a = expected[i].elements[e].as_real(), b = results->at(i).elements.at(e).as_real();
        worst = std::max(worst, std::fabs(a - b) / (1 + std::fabs(a)));
      }
  return worst;
}

const char* const mlp =
    R"(graph @mlp on cuda:0 (%x: bf16[4, 8, 32], %w: bf16[48, 32], %b: bf16[48], %r: bf16[4, 8, 48]) {
  %flat: bf16[32, 32] = reshape(%x)
  %wt = permute<dims=[1, 0]>(%w)
  %0: bf16[32, 48] = extern "aten::addmm"($0, $1, $2) with (%b, %flat, %wt) planned_out
  %1: bf16[4, 8, 48] = reshape(%0)
  %2 = cast<f32>(%1)
  %3 = gelu(%2)
  %4 = cast<bf16>(%3)
  %5 = add(%4, %r)
  return %5
})";

}  // namespace

TEST_CASE("a product takes its bias and its epilogue, through reshapes", "[schedule][products]") {
  const Fused f = fuse_matmuls(mlp);
  INFO(loops::print(f.fused));
  CHECK(count_calls(f.fused) == 0);
  CHECK(regions(f.fused).size() == 1);
  CHECK(!has_buffer(f.fused, "0"));
  check_mapped(f);
  CHECK(difference(f) < 0.02);
  CHECK(count_calls(fuse_matmuls(mlp, "never").fused) == 1);
}

TEST_CASE("a product that others read is stored beside its epilogue", "[schedule][products]") {
  const Fused f = fuse_matmuls(R"(graph @f on cuda:0 (%a: bf16[32, 64], %b: bf16[64, 16]) {
    %0: bf16[32, 16] = extern "aten::mm"($0, $1) with (%a, %b) planned_out
    %1 = relu(%0)
    %2: f32[4] = extern "test::reads"($0) with (%0)
    return %1, %0
  })");
  INFO(loops::print(f.fused));
  CHECK(count_calls(f.fused) == 1);
  REQUIRE(regions(f.fused).size() == 1);
  CHECK(count_stores(*regions(f.fused)[0]) == 2);
  check_mapped(f);
}

TEST_CASE("the second product of a region becomes a kernel of its own", "[schedule][products]") {
  const Fused f = fuse_matmuls(R"(graph @gated on cuda:0 (%x: bf16[32, 64], %v: bf16[64, 16], %w: bf16[64, 16]) {
    %0: bf16[32, 16] = extern "aten::mm"($0, $1) with (%x, %v) planned_out
    %1: bf16[32, 16] = extern "aten::mm"($0, $1) with (%x, %w) planned_out
    %2 = relu(%0)
    %3 = mul(%2, %1)
    return %3
  })");
  INFO(loops::print(f.fused));
  CHECK(count_calls(f.fused) == 0);
  CHECK(regions(f.fused).size() == 2);
  check_mapped(f);
  CHECK(difference(f) < 0.02);
}

TEST_CASE("factors may be slices, turned, batched", "[schedule][products]") {
  Fused f = fuse_matmuls(R"(graph @f on cuda:0 (%x: bf16[32, 96], %w: bf16[64, 16]) {
    %a: bf16[32, 64] = slice<dim=1, start=32, step=1>(%x)
    %0: bf16[32, 16] = extern "aten::mm"($0, $1) with (%a, %w) planned_out
    return %0
  })");
  CHECK(count_calls(f.fused) == 0);
  check_mapped(f);
  CHECK(difference(f) < 0.02);
  f = fuse_matmuls(R"(graph @f on cuda:0 (%x: f16[s0, 4, 24, 32], %y: f16[s0, 4, 40, 32]) where 1 <= s0 <= 99 {
    %a: f16[4*s0, 24, 32] = reshape(%x)
    %b: f16[4*s0, 40, 32] = reshape(%y)
    %t = permute<dims=[0, 2, 1]>(%b)
    %0: f16[4*s0, 24, 40] = extern "aten::bmm"($0, $1) with (%a, %t) planned_out
    %1 = mul(%0, 0.5)
    return %1
  })");
  INFO(loops::print(f.fused));
  CHECK(count_calls(f.fused) == 0);
  CHECK(regions(f.fused).size() == 1);
  check_mapped(f);
}

TEST_CASE("calls that the template cannot do stay calls", "[schedule][products]") {
  const auto stays = [](const std::string& inputs, const std::string& result, const std::string& call) {
    const std::string text =
        fmt::format("graph @f on cuda:0 ({}) {{\n  %0: {} = extern {} planned_out\n  %1 = relu(%0)\n  return %1\n}}", inputs, result, call);
    INFO(text);
    CHECK(count_calls(fuse_matmuls(text).fused) == 1);
  };
  const std::string plain = "\"aten::mm\"($0, $1) with (%a, %b)";
  stays("%a: f32[32, 64], %b: f32[64, 16]", "f32[32, 16]", plain);
  stays("%a: bf16[96, 63], %b: bf16[63, 16]", "bf16[96, 16]", plain);                  // unaligned rows of more than one tile
  stays("%a: bf16[32, 64] strides [64, 2], %b: bf16[64, 16]", "bf16[32, 16]", plain);  // no unit stride
  stays("%a: bf16[8, 64], %b: bf16[64, 16]", "bf16[8, 16]", plain);                    // too small
  stays("%a: bf16[32, 64], %b: bf16[64, 16], %c: bf16[16]", "bf16[32, 16]",
        "\"aten::addmm\"($0, $1, $2, beta = 0.5) with (%c, %a, %b)");  // scaled
  stays("%a: bf16[32, 64], %b: bf16[64, 16]", "bf16[32, 16]", "\"test::mm\"($0, $1) with (%a, %b)");
}

TEST_CASE("an epilogue that reduces the product's rows stays apart", "[schedule][products]") {
  const Fused f = fuse_matmuls(R"(graph @f on cuda:0 (%a: bf16[32, 64], %b: bf16[64, 16]) {
    %0: bf16[32, 16] = extern "aten::mm"($0, $1) with (%a, %b) planned_out
    %1 = cast<f32>(%0)
    %2 = reduce<sum, dims=[1]>(%1)
    return %2
  })");
  CHECK(count_calls(f.fused) == 0);
  CHECK(regions(f.fused).size() == 2);
  check_mapped(f);
}

TEST_CASE("auto takes small products with epilogues, and leaves large ones to the library", "[schedule][products]") {
  const auto calls = [](int size, bool epilogue) {
    const std::string text = fmt::format(
        "graph @f on cuda:0 (%a: bf16[{0}, {0}], %b: bf16[{0}, {0}]) {{\n"
        "  %0: bf16[{0}, {0}] = extern \"aten::mm\"($0, $1) with (%a, %b) planned_out\n  %1 = {1}(%0)\n  return %1\n}}",
        size, epilogue ? "relu" : "cast<bf16>");
    return count_calls(fuse_matmuls(text, "auto").fused);
  };
  CHECK(calls(256, true) == 0);
  CHECK(calls(4096, true) == 1);
  CHECK(calls(8192, true) == 1);
  // What a kernel of one tile would do for all sizes is not known.
  const char* const dynamic = R"(graph @f on cuda:0 (%a: bf16[s0, 512], %b: bf16[512, 512]) where 1 <= s0 <= 4096 {
    %0: bf16[s0, 512] = extern "aten::mm"($0, $1) with (%a, %b) planned_out
    %1 = relu(%0)
    return %1
  })";
  CHECK(count_calls(fuse_matmuls(dynamic, "auto").fused) == 1);
  CHECK(count_calls(fuse_matmuls(dynamic, "always").fused) == 0);
}

TEST_CASE("auto takes products whose rows the library reads or writes element by element", "[schedule][products]") {
  const auto calls = [](int rows, int columns, int stride) {
    return count_calls(fuse_matmuls(fmt::format("graph @f on cuda:0 (%a: bf16[{0}, 768], %b: bf16[{1}, 768]) {{\n"
                                                "  %t = permute<dims=[1, 0]>(%b)\n"
                                                "  %0: bf16[{0}, {1}] strides [{2}, 1] = extern \"aten::mm\"($0, $1) with (%a, %t) "
                                                "planned_out\n  return %0\n}}",
                                                rows, columns, stride),
                                    "auto")
                           .fused);
  };
  CHECK(calls(8192, 50264, 50264) == 1);
  CHECK(calls(256, 50257, 50257) == 0);
  CHECK(calls(256, 50264, 50265) == 0);
  // Rows that start alike are aligned products of the library.
  CHECK(calls(8192, 50257, 50257) == 1);
  CHECK(calls(8192, 50264, 50265) == 1);
}

TEST_CASE("estimates of products order sizes and tiles", "[schedule][products]") {
  const Target gpu = cuda_target("sm_90a", 132), old = cuda_target("sm_80", 108);
  const auto tile_of = [](double size, const Target& target) { return kernels::best_tile({1, size, size, size}, 2, target); };
  CHECK(tile_of(8192, gpu).m * tile_of(8192, gpu).n > tile_of(512, gpu).m * tile_of(512, gpu).n);
  for (const double size : {512., 1024., 2048., 4096.}) {
    const kernels::MatmulSize product{1, size, size, size};
    CHECK(kernels::library_time({1, 4 * size, size, size}, gpu) > kernels::library_time(product, gpu));
    CHECK(kernels::library_time(product, old) > kernels::library_time(product, gpu));
    CHECK(kernels::library_time(product, gpu, 7) > kernels::library_time(product, gpu));
    const MatmulTile& tile = tile_of(size, old);
    CHECK(int64_t{2} * tile.stages * (tile.m + tile.n) * tile.k <= old.machine.shared_bytes_per_block);
  }
  CHECK(cuda_target("sm_75", 68).machine.mma_flops == 0);
}

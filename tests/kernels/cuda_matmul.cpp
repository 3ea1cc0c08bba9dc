// The template of products on tensor cores: its text, run under emulation with fragments exchanged lane by lane,
// against the CPU target's loops of the same program; compiled by NVRTC with every tile; and on a GPU, where there is
// one.
#include <array>
#include <bit>

#include "ir/plan/verify.h"
#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/cuda_program.h"
#include "kernels/gpu_host.h"
#include "kernels/matmul/cost.h"
#include "kernels/matmul_programs.h"
#include "targets/cuda/nvrtc.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
using plan::Variant;

namespace {

constexpr double tolerance = 2e-2;  // two units of bf16: sums in another order may round to the neighbour, twice

plan::Plan planned(const MatmulProgram& product, const Target& target = gpu_target()) {
  plan::Plan plan = schedule::test::make_plan(loops::parse(on_device(product.text(), "cuda:0")), target, Options());
  plan::verify_or_throw(plan, "plan");
  REQUIRE(plan.kernels.size() == 1);
  REQUIRE(plan.kernels[plan::KernelId(0)].mapping.as<plan::Matmul>());
  return plan;
}

using Sizes = std::map<std::string, int64_t>;

void compare(const MatmulProgram& product, const MatmulTile* tile = nullptr, Variant variant = {true, false}, const std::vector<Sizes>& symbols = {{}}) {
  INFO(product.text());
  CpuProgram cpu(on_device(product.text(), "cpu"));
  plan::Plan plan = planned(product);
  if (tile) plan = with_tile(std::move(plan), *tile);
  plan::verify_or_throw(plan, "tile");
  CudaProgram cuda(std::move(plan), variant);
  for (const Sizes& sizes : symbols) {
    const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), sizes);
    INFO(cuda.source().substr(cuda.source().find("typedef")));
    check_equal(run_on(cpu, inputs), run_on(cuda, inputs), tolerance);
  }
}

}  // namespace

TEST_CASE("products: every layout of the factors", "[cuda][matmul]") {
  for (const bool left : {true, false})
    for (const bool right : {true, false}) compare({.m = 72, .n = 40, .k = 64, .left = {left}, .right = {right}});
}

TEST_CASE("products: tails in every direction, rows with padding", "[cuda][matmul]") {
  compare({.m = 67, .n = 37, .k = 104, .left = {true, 8}, .right = {true, 16}});
  compare({.m = 40, .n = 88, .k = 43, .left = {false, 8}, .right = {false}});
}

TEST_CASE("products: every tile, with an epilogue of two outputs", "[cuda][matmul]") {
  // More than one tile of each kind along m, fewer steps along k than stages for some tiles.
  for (const MatmulTile& tile : matmul_tiles) {
    const bool odd = (&tile - matmul_tiles.data()) % 2;
    compare(with_epilogue({.m = tile.m + 8, .n = tile.n / 2 + 8, .k = 72, .dtype = odd ? "f16" : "bf16", .right = {!odd}}), &tile);
    if (tile.warpgroups) {  // each with another layout of the factors; blocks with several tiles, problems and rounds of stages
      const auto number = &tile - matmul_tiles.data();
      compare({.m = tile.m + 8, .n = 72, .k = 392, .left = {number % 4 < 2}, .right = {!odd}}, &tile);
      compare(with_wide_epilogue({.m = 72, .n = 33, .k = 40, .batch = 5}), &tile);
      compare(with_prologue({.m = tile.m + 1, .n = tile.n + 8, .k = 72, .right = {false}}), &tile);
    }
  }
}

TEST_CASE("products: batches, f32 epilogues, computed factors, other variants", "[cuda][matmul]") {
  compare({.m = 24, .n = 40, .k = 32, .batch = 3, .left = {true, 8}, .right = {false}});
  compare(with_wide_epilogue({.m = 40, .n = 33, .k = 48}));
  compare(with_prologue({.m = 33, .n = 48, .k = 40, .right = {false}}));
  compare(with_epilogue({.m = 33, .n = 20, .k = 40, .right = {false, 4}}), nullptr, {false, true});
}

TEST_CASE("products: small ones with unaligned rows", "[cuda][matmul]") {
  for (const bool left : {true, false})
    for (const bool right : {true, false}) {
      compare({.m = 49, .n = 49, .k = 32, .batch = 3, .left = {left}, .right = {right}});
      compare(with_epilogue({.m = 49, .n = 32, .k = 49, .batch = 2, .left = {left}, .right = {right}}));
    }
  compare({.m = 17, .n = 63, .k = 61, .dtype = "f16", .left = {true, 3}, .right = {false, 5}}, nullptr, {false, true});
}

TEST_CASE("products: one kernel for every number of rows", "[cuda][matmul]") {
  compare(with_epilogue({.n = 32, .k = 32, .symbolic_rows = true}), nullptr, {true, false}, {{{"s0", 1}}, {{"s0", 17}}, {{"s0", 600}}});
}

TEST_CASE("products that the template cannot do are mapped otherwise", "[cuda][matmul]") {
  const auto fits = [](const MatmulProgram& product) {
    const plan::Plan plan = schedule::test::make_plan(loops::parse(on_device(product.text(), "cuda:0")), gpu_target(), Options());
    return plan.kernels[plan::KernelId(0)].mapping.as<plan::Matmul>() != nullptr;
  };
  CHECK_FALSE(fits({.m = 72, .n = 64, .k = 60}));  // rows of 120 bytes
  CHECK_FALSE(fits({.m = 72, .n = 64, .k = 64, .left = {true, 4}}));
  CHECK(fits({.m = 64, .n = 64, .k = 60}));       // one tile: read element by element
  CHECK_FALSE(fits({.m = 64, .n = 8, .k = 64}));  // tiles would be mostly empty
  CHECK_FALSE(fits({.m = 64, .n = 64, .k = 64, .dtype = "f32"}));
}

TEST_CASE("NVRTC compiles the product template with every tile, without a warning", "[cuda][nvrtc][matmul]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  const MatmulProgram plain{.m = 512, .n = 512, .k = 512, .right = {false}};
  const auto compiles = [&](const plan::Plan& plan, const char* arch, Variant variant) {
    const std::string source = codegen::emit_cuda({&plan.kernels[plan::KernelId(0)]}, variant, plan.origins);
    INFO(arch << "\n" << source.substr(source.find("typedef")));
    CHECK(nvrtc->compile_to_cubin(source, arch, plan.name).log == "");
  };
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Target target = cuda_target(arch, 132);
    for (const MatmulTile& tile : matmul_tiles)
      if (!tile.warpgroups || target.warpgroup_flops() > 0) compiles(with_tile(planned(plain, target), tile), arch, {true, false});
    compiles(planned(with_epilogue({.m = 333, .n = 77, .k = 136, .dtype = "f16"}), target), arch, {true, true});
    compiles(planned(with_prologue({.m = 333, .n = 72, .k = 136, .left = {true, 8}}), target), arch, {true, false});
    compiles(planned(with_wide_epilogue({.m = 96, .n = 72, .k = 136, .batch = 5}), target), arch, {false, false});
  }
}

TEST_CASE("products on the GPU: tiles, layouts, tails, epilogues", "[gpu][matmul]") {
  std::string why;
  const std::shared_ptr<GpuMachine> machine = find_gpu(&why);
  if (!machine) {
    WARN("skipped: " << why);
    return;
  }
  const auto on_gpu = [&](const MatmulProgram& product, const MatmulTile* tile) {
    INFO(product.text());
    CpuProgram cpu(on_device(product.text(), "cpu"));
    plan::Plan plan = planned(product, machine->target);
    GpuProgram gpu(tile ? with_tile(std::move(plan), *tile) : std::move(plan), machine);
    const std::vector<Input> inputs = make_inputs(gpu.plan, {});
    std::vector<runtime::TensorRef> tensors;
    for (const Input& input : inputs) tensors.push_back(gpu.host.upload(input.dtype, input.sizes, input.strides, input.values));
    check_equal(run_on(cpu, inputs), gpu.run(std::move(tensors)), tolerance);
  };
  for (const MatmulTile& tile : matmul_tiles)
    for (const bool left : {true, false})
      for (const bool right : {true, false}) {
        on_gpu(with_epilogue({.m = 344, .n = 296, .k = 200, .left = {left}, .right = {right}}), &tile);
        on_gpu({.m = 136, .n = 264, .k = 40, .batch = 3, .dtype = "f16", .left = {left, 8}, .right = {right}}, &tile);
      }
  on_gpu(with_epilogue({.m = 333, .n = 77, .k = 1000}), nullptr);
  on_gpu(with_wide_epilogue({.m = 100, .n = 300, .k = 1024}), nullptr);
  on_gpu({.m = 49, .n = 49, .k = 32, .batch = 300, .right = {false}}, nullptr);
  on_gpu({.m = 49, .n = 32, .k = 49, .batch = 300, .left = {false}, .right = {false}}, nullptr);
  on_gpu(with_prologue({.m = 65, .n = 136, .k = 264, .left = {true, 8}, .right = {false}}), nullptr);
}

// What kernels/matmul/cost.cpp is fitted to: each tile's time beside its estimate. The library's times:
// benchmarks/matmul_template.py.
TEST_CASE("time of every tile beside its estimate", "[.bench][matmul]") {
  std::string why;
  const std::shared_ptr<GpuMachine> machine = find_gpu(&why);
  if (!machine) {
    WARN("skipped: " << why);
    return;
  }
  const auto time = [&](const MatmulProgram& product, const MatmulTile& tile) {
    const int abreast = machine->target.multiprocessors * kernels::blocks_per_multiprocessor(tile, machine->target);
    GpuProgram gpu(with_tile(planned(product, machine->target), tile, abreast), machine);
    const plan::Launch* launch = nullptr;
    for (const plan::Step& step : gpu.plan.steps)
      if (const auto* found = std::get_if<plan::Launch>(&step)) launch = found;
    const auto no_symbols = [](std::string_view) { return int64_t{0}; };
    std::vector<void*> args;
    for (plan::BufferId id : launch->args) {
      const plan::Buffer& buffer = gpu.plan.buffers[id];
      const int64_t bytes = sym::evaluate(buffer.bytes, no_symbols);
      args.push_back(machine->allocate(bytes));
      const Numbers values = some_values(static_cast<size_t>(bytes) / 2, static_cast<uint32_t>(id.index()));
      std::vector<uint16_t> words;
      for (double v : values) words.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16));
      machine->to_device(args.back(), words.data(), bytes);
    }
    const int64_t grid = sym::evaluate(launch->grid_x, no_symbols);
    const runtime::LoadedKernel& kernel = gpu.provider->get(plan::KernelId(0), {});
    constexpr int calls = 50;
    const auto run = [&] {
      for (int i = 0; i < calls; ++i) kernel.launch(gpu.host, {args, {}, {grid}}, nullptr);
    };
    run();
    const double milliseconds = std::min(machine->time(run), machine->time(run));
    for (void* address : args) machine->free(address);
    return milliseconds * 1e3 / calls;
  };
  struct Shape {
    int m, n, k;
  };
  constexpr std::array shapes = {Shape{512, 512, 512},  Shape{1024, 1024, 1024}, Shape{2048, 2048, 2048}, Shape{4096, 4096, 4096},
                                 Shape{8192, 768, 768}, Shape{8192, 3072, 768},  Shape{8192, 768, 3072},  Shape{8192, 50257, 768}};
  for (const auto& [m, n, k] : shapes) {
    const kernels::MatmulSize product{1, double(m), double(n), double(k)};
    const MatmulTile& chosen = kernels::best_tile(product, 2, machine->target);
    fmt::print("{} x {} x {}: library estimated {:.1f} us\n", m, n, k, 1e6 * kernels::library_time(product, machine->target));
    for (const MatmulTile& tile : matmul_tiles) {
      const MatmulProgram plain{.m = m, .n = n, .k = k};
      fmt::print("  {:>3} x {:>3} x {}, {} {}, {} stages: {:>7.1f} us, with an epilogue {:>7.1f}, estimated {:>7.1f}{}\n", tile.m, tile.n, tile.k,
                 tile.warpgroups ? tile.warps_m / 4 : tile.warps_m * tile.warps_n, tile.warpgroups ? "warp groups" : "warps", tile.stages, time(plain, tile),
                 time(with_epilogue(plain), tile), 1e6 * kernels::template_time(product, tile, machine->target), &tile == &chosen ? "  chosen" : "");
      std::fflush(stdout);
    }
  }
}

// Batched kernels: tables of arguments, filled by the runtime and read by generated text under emulation, against the
// CPU target, where a batch is a loop; and as NVRTC takes them.
#include "codegen/cuda/emit.h"
#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/cuda_program.h"
#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
namespace programs = cxxinductor::schedule::test;

TEST_CASE("batches of updates run alike on both targets", "[cuda][batch]") {
  const std::vector<std::vector<int64_t>> lists = {{64, 8, 4096, 2048, 16}, {7, 1001, 33, 5, 9, 2, 64, 128, 8, 4000}, std::vector<int64_t>(130, 40)};
  for (const std::vector<int64_t>& sizes : lists) {
    const std::string text = programs::updates(sizes);
    CpuProgram cpu(on_device(text, "cpu"));
    for (const plan::Variant variant : {plan::Variant{true, false}, {false, false}, {true, true}}) {
      CudaProgram cuda(on_device(text, "cuda:0"), variant);
      const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), {});
      INFO(cuda.source().substr(cuda.source().find("typedef")));
      CHECK_THAT(cuda.source(), mentions("const __grid_constant__ cxxi_table_k"));
      check_equal(run_on(cpu, inputs), run_on(cuda, inputs), 1e-6);
    }
  }
}

TEST_CASE("scalars in the host's memory go into kernels by value, and into tables", "[cuda][batch]") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{16, 8, 24, 32, 40}, {16}}) {
    const std::string text = programs::updates(sizes, " on cpu");
    CpuProgram cpu(on_device(text, "cpu"));
    CudaProgram cuda(on_device(text, "cuda:0"));
    CHECK(cuda.kernel().params[0].by_value);
    CHECK((cuda.kernel().max_grouped > 1) == (sizes.size() > 1));
    const std::vector<Input> inputs = make_inputs(cuda.executable->plan(), {});
    INFO(cuda.source().substr(cuda.source().find("typedef")));
    check_equal(run_on(cpu, inputs), run_on(cuda, inputs), 1e-6);
  }
}

TEST_CASE("a table takes launches in order while entries and blocks last", "[cuda][batch]") {
  const plan::Plan plan = programs::plan_for(programs::updates({7, 9, 11, 13}), programs::gpu());
  plan::Kernel kernel = plan.kernels[plan::KernelId(1)];
  kernel.max_grouped = 4;
  const plan::GroupedLaunchLayout layout(kernel);
  REQUIRE(layout.entries == 4);
  std::vector<void*> buffers(kernel.params.size(), nullptr);
  const std::vector<int64_t> symbols(kernel.symbols.size(), 5);
  std::vector<runtime::LaunchArgs> items;
  for (int64_t blocks : {3, 4, 5}) items.push_back({buffers, symbols, blocks});
  std::vector<std::byte> table(layout.bytes());
  const auto first_blocks = [&] {
    std::vector<uint32_t> numbers(layout.entries);
    std::memcpy(numbers.data(), table.data() + layout.first_block(0), 4 * layout.entries);
    return numbers;
  };
  targets::FilledTable filled = targets::fill_grouped_table(layout, items, table.data());
  CHECK(filled.taken == 3);
  CHECK(filled.blocks == 12);
  CHECK(first_blocks() == std::vector<uint32_t>{0, 3, 7, UINT32_MAX});
  items[1].grid.x = INT32_MAX;
  filled = targets::fill_grouped_table(layout, items, table.data());
  CHECK(filled.taken == 1);
  CHECK(first_blocks() == std::vector<uint32_t>{0, UINT32_MAX, UINT32_MAX, UINT32_MAX});
}

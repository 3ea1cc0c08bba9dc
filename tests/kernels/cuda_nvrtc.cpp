// Every planned program compiled by NVRTC for two architectures, without a word in its log. Needs the library, no GPU:
// the environment variable CXXINDUCTOR_NVRTC names it, else it is looked for beside the PyTorch of the source folder's .venv.
#include <chrono>

#include "codegen/cuda/emit.h"
#include "kernels/compare.h"
#include "kernels/cuda_program.h"
#include "kernels/serial_row_programs.h"
#include "runtime/compile_pool.h"
#include "targets/cuda/cuda_kernels.h"
#include "targets/cuda/dynamic_library.h"
#include "targets/cuda/nvrtc.h"
#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
namespace programs = cxxinductor::schedule::test;

TEST_CASE("NVRTC compiles every planned program without a warning", "[cuda][nvrtc]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  struct Job {
    std::string name, source, arch, log;
  };
  std::vector<Job> jobs;
  std::vector<std::string> texts(std::begin(programs::all_programs), std::end(programs::all_programs));
  texts.push_back(programs::updates({64, 7, 128, 9, 4096, 33, 8, 1001}, " on cpu"));  // batches
  texts.push_back(programs::updates({64}, " on cpu"));
  for (const std::string& text : texts) {
    const plan::Plan plan = programs::plan_for(text, gpu_target());
    for (const plan::Kernel& kernel : plan.kernels) {
      for (const char* arch : {"sm_80", "sm_90a"}) {
        const bool small = std::string_view(arch) == "sm_90a";
        jobs.push_back({plan.name + "." + kernel.name, codegen::emit_cuda({&kernel}, {small, !small}, plan.origins), arch, ""});
      }
    }
  }
  runtime::CompilePool pool(0);
  std::vector<runtime::CompileTask> tasks;
  for (Job& job : jobs)
    tasks.push_back({job.name, 1, [&nvrtc, &job](const InterruptCheck&) { job.log = nvrtc->compile_to_cubin(job.source, job.arch, job.name).log; }});
  for (const runtime::CompileFailure& failure : pool.run_all(std::move(tasks))) {
    try {
      std::rethrow_exception(failure.error);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
  for (const Job& job : jobs) {
    INFO(job.name << " for " << job.arch);
    CHECK(job.log == "");
  }
}

TEST_CASE("NVRTC keeps serial rows in registers", "[cuda][nvrtc]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  for (const SerialRows& shape :
       {SerialRows{128, 32, 8192, "bf16"}, SerialRows{128, 32, 12288, "bf16"}, SerialRows{128, 32, 16384, "bf16"}, SerialRows{128, 32, 16384, "bf16", false},
        SerialRows{128, 32, 8192, "f32"}, SerialRows{128, 32, 4096, "bf16", true, true}, SerialRows{128, 32, 12288, "bf16", true, true}}) {
    for (const char* arch : {"sm_80", "sm_90a"}) {
      const Target target = cuda_target(arch, 132);
      const plan::Plan plan = programs::plan_for(on_device(norm_backward(shape, true), "cuda:0"), target);
      const plan::Kernel& kernel = plan.kernels[plan::KernelId(0)];
      REQUIRE(kernel.mapping.as<plan::SerialRows>());
      INFO(shape.columns << " of " << shape.dtype << " for " << arch);
      CHECK(plan::launch_shape(kernel).dynamic_shared_bytes <= target.machine.shared_bytes_per_block);
      CHECK(nvrtc->compile_to_cubin(codegen::emit_cuda({&kernel}, {true, false}, plan.origins), arch, kernel.name, {"--ptxas-options=--warn-on-spills"}).log ==
            "");
    }
  }
}

TEST_CASE("NVRTC: a bad source is our error, with its log; a bad architecture too", "[cuda][nvrtc]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  CHECK_THROWS_WITH(nvrtc->compile_to_cubin("__global__ void f() { undeclared = 1; }", "sm_80", "f"), mentions("undeclared"));
  CHECK_THROWS_AS(nvrtc->compile_to_cubin("__global__ void f() {}", "sm_12", "f"), InternalError);
}

TEST_CASE("a library that is not there is named", "[cuda]") {
  CHECK_THROWS_WITH(targets::DynamicLibrary({"libno_such_thing.so.7"}, "of nothing"), mentions("libno_such_thing.so.7"));
}

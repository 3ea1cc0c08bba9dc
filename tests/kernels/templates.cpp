// Templates of kernels as they stand, with the examples of their variables: what readers and editors see is C++ that compiles.
#include "codegen/templates.h"

#include "kernels/cpu_unit.h"
#include "targets/cuda/dynamic_library.h"
#include "targets/cuda/nvrtc.h"
#include "unit/catch.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

TEST_CASE("NVRTC compiles each template of a kernel as it stands", "[cuda][nvrtc]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  std::string called;
  for (const char* name : {"prelude", "group", "reduce", "join", "tensor_core", "matmul", "warpgroup", "warpgroup_matmul"})
    called += codegen::template_text(fmt::format("cuda/{}.cuh", name));
  called += "typedef int cxxi_index;\ntypedef unsigned int cxxi_uint;\n";
  for (const char* name :
       {"pointwise_kernel", "rows_kernel", "serial_rows_kernel", "columns_kernel", "tiles_kernel", "matmul_kernel", "warpgroup_kernel", "generated_state"}) {
    INFO(name);
    CHECK(nvrtc->compile_to_cubin(called + codegen::template_text(fmt::format("cuda/{}.cuh", name)), "sm_90a", name).log == "");
  }
}

TEST_CASE("the host's compiler compiles each template of a kernel as it stands", "[cpu]") {
  const Target target = machine_target();
  const std::string called = codegen::emit_cpu({}, target, {});
  targets::HostCompiler compiler({""});
  for (const char* name : {"pointwise_kernel", "point_kernel", "rows_kernel", "columns_kernel", "tiles_kernel"}) {
    INFO(name);
    CHECK_NOTHROW(compiler.compile(called + codegen::template_text(fmt::format("cpu/{}.h", name)), targets::cpu_compile_flags(target), name));
  }
  const std::string state = "namespace cxxi {\n" + codegen::template_text("cpu/generated_state.h") + "template struct state_example_f32<f32, 4>;\n}\n";
  CHECK_NOTHROW(compiler.compile(called + state, targets::cpu_compile_flags(target), "generated_state"));
}

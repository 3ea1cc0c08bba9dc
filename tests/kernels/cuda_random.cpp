// Random ops as kernels: imported for a GPU, fused with what reads them, compiled by NVRTC without a word, and run
// under emulation with the bits of the interpreter.
#include "codegen/cuda/emit.h"
#include "driver/stages.h"
#include "interp/interp.h"
#include "ir/random_threads.h"
#include "kernels/cuda_program.h"
#include "targets/cuda/nvrtc.h"
#include "unit/catch.h"
#include "unit/frontend/calls.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
using frontend::TensorType;

namespace {

constexpr int64_t generator_seed = 0x123456789abcdef, call_number = 5, elements = 3001;  // odd, and several turns

Target small_target() {
  Target target = cuda_target("sm_90a", 1);
  target.threads_per_multiprocessor = 512;
  return target;
}

struct Case {
  std::string name;
  std::vector<Arg> args;
  DType dtype;
};
std::vector<Case> cases() {
  const ArgList size{elements};
  std::vector<Case> all;
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    all.push_back({"aten::rand", {size}, dtype});
    all.push_back({"aten::randn", {size}, dtype});
    all.push_back({"aten::uniform", {Arg(), -1.3, 2.7}, dtype});
    all.push_back({"aten::exponential", {Arg(), 2.5}, dtype});
  }
  all.push_back({"aten::log_normal", {Arg(), 0.5, 1.5}, DType::F32});
  all.push_back({"aten::cauchy", {Arg(), 0.5, 1.5}, DType::F32});
  all.push_back({"aten::bernoulli.p", {Arg(), 0.3}, DType::F32});
  all.push_back({"aten::bernoulli.p", {Arg(), 0.3}, DType::F64});
  all.push_back({"aten::randint.low", {int64_t{-3}, int64_t{9}, size}, DType::I64});
  all.push_back({"aten::randint.low", {int64_t{-3}, int64_t{9}, size}, DType::BF16});
  all.push_back({"aten::randint", {int64_t{1} << 40, size}, DType::I64});
  all.push_back({"aten::randint_like", {Arg(), int64_t{200}}, DType::U8});
  return all;
}

// The ops, and of each an op that reads its result.
graph::Graph imported(const std::vector<Case>& ops) {
  frontend::Calls calls;
  calls.environment.gpus[{DeviceType::Cuda, 0}] = small_target();
  for (const Case& c : ops) {
    const TensorType type{c.dtype, {elements}, {}};
    const Arg drawn = calls.call(c.name, c.args, type);
    calls.output(calls.call("aten::maximum", {drawn, drawn}, type));
  }
  return calls.import();
}

// What cxxinductor::philox_state returns for these arguments. drawn: how many draws were before, which each has a call number of its own.
std::vector<Scalar> states_for(const std::vector<Arg>& args, int64_t& drawn) {
  std::vector<Scalar> states;
  for (size_t i = 0; i < args.at(0).as<ArgList>()->size(); ++i)
    for (const int64_t value : {generator_seed, call_number + drawn++, random_threads(elements, small_target())})
      states.push_back(Scalar::from_integer(DType::I64, value));
  return states;
}

plan::Plan planned(graph::Graph graph) { return driver::plan_of(std::move(graph), small_target()); }

std::vector<interp::Tensor> interpreted(const graph::Graph& graph) {
  int64_t drawn = 0;
  const auto state = [&drawn](const std::string&, const std::string&, const std::vector<Arg>& args, const std::vector<interp::Tensor>&) {
    std::vector<Scalar> states = states_for(args, drawn);
    const auto size = static_cast<int64_t>(states.size());
    return std::vector{interp::Tensor{DType::I64, {size}, std::move(states)}};
  };
  return interp::run(graph, {}, state);
}

std::vector<std::vector<double>> emulated(plan::Plan plan) {
  int64_t drawn = 0;
  const auto state = [&drawn](runtime::PlainHost& host, const plan::CallExtern& call, std::span<const runtime::Operand>, std::span<const runtime::TensorView>,
                              std::span<runtime::TensorRef> results) {
    const std::vector<Scalar> states = states_for(call.args, drawn);
    const std::vector<int64_t> sizes{static_cast<int64_t>(states.size())}, strides{1};
    results[0] = host.empty_strided(DType::I64, {}, sizes, strides);
    runtime::write_elements(runtime::view_of(results[0]), states);
  };
  return CudaProgram(std::move(plan), {}, state).run({});
}

}  // namespace

TEST_CASE("random ops are part of their readers' kernels, which NVRTC compiles without a word", "[cuda][random]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  for (const Case& c : cases()) {
    INFO(c.name << " of " << to_string(c.dtype));
    const plan::Plan plan = planned(imported({c}));
    REQUIRE(plan.kernels.size() == 1);
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(0)];
    const std::string source = codegen::emit_cuda({&kernel}, {true, false}, plan.origins);
    if (!nvrtc) continue;
    for (const char* arch : {"sm_80", "sm_90a"}) CHECK(nvrtc->compile_to_cubin(source, arch, kernel.name).log == "");
  }
}

TEST_CASE("random ops in CUDA text have the bits of the interpreter", "[cuda][random]") {
  const graph::Graph graph = imported(cases());
  const std::vector<interp::Tensor> expected = interpreted(graph);
  const std::vector<std::vector<double>> found = emulated(planned(graph));
  REQUIRE(found.size() == cases().size());
  for (size_t k = 0; k < found.size(); ++k) {
    INFO(cases()[k].name << " of " << to_string(cases()[k].dtype));
    REQUIRE(found[k].size() == expected[k].elements.size());
    size_t equal = 0;
    while (equal < found[k].size() && found[k][equal] == expected[k].elements[equal].as_real()) ++equal;
    CHECK(equal == found[k].size());
  }
}

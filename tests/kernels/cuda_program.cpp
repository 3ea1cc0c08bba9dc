#include "kernels/cuda_program.h"

#include <cstdio>
#include <fstream>

namespace cxxinductor::tests {
namespace {

class EmulatedKernel : public runtime::LoadedKernel {
 public:
  using Function = bool (*)(void* const* args, unsigned int threads, int64_t blocks);
  EmulatedKernel(std::string name, Function function, int threads, bool checks)
      : name_(std::move(name)), function_(function), threads_(threads), checks_(checks) {}

  void launch(runtime::Host&, std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid_x, int64_t grid_y,
              void*) const override {
    std::vector<void*> pointers(buffers.begin(), buffers.end());
    std::vector<long long> numbers(symbols.begin(), symbols.end());
    int record[8] = {};
    void* record_address = record;
    std::vector<void*> args;
    for (void*& pointer : pointers) args.push_back(&pointer);
    for (long long& number : numbers) args.push_back(&number);
    if (checks_) args.push_back(&record_address);
    if (!function_(args.data(), static_cast<unsigned int>(threads_), grid_x * grid_y))
      throw_internal("kernel {}: a barrier that not all threads reach", name_);
    if (record[6]) {
      const int64_t index = (int64_t{record[3]} << 32) | static_cast<uint32_t>(record[2]);
      const int64_t bound = (int64_t{record[5]} << 32) | static_cast<uint32_t>(record[4]);
      throw_user_error("check {}: index {} outside {}", record[1], index, bound);
    }
  }

 private:
  std::string name_;
  Function function_;
  int threads_;
  bool checks_;
};

plan::Plan on_the_host(plan::Plan plan) {
  for (plan::Buffer& buffer : plan.buffers) buffer.device = {};
  for (plan::Kernel& kernel : plan.kernels) {
    kernel.device = {};
    kernel.region.device = {};
  }
  plan.arena_device = {};
  return plan;
}

}  // namespace

EmulatedKernels::EmulatedKernels(const plan::Plan& plan, plan::Variant variant) {
  std::vector<const plan::Kernel*> kernels;
  for (const plan::Kernel& kernel : plan.kernels) kernels.push_back(&kernel);
  source_ = codegen::emit_cuda(kernels, variant, gpu_target(), plan.origins);
  std::string unit = "#define CXXI_HOST_EMULATION 1\n#include \"" CXXINDUCTOR_SOURCE_DIR "/tests/kernels/cuda_emulation.h\"\n";
  unit += source_;
  unit += "CXXI_EMULATION_TWINS\n";
  for (const plan::Kernel* kernel : kernels)
    unit += fmt::format("extern \"C\" bool run_{0}(void* const* a, unsigned t, int64_t b) {{ return cxxi_emulation::launch(&{0}, a, t, b); }}\n",
                        kernel->name);
  runtime::HostCompiler compiler({});
  object_ = std::make_unique<runtime::SharedObject>(
      compiler.compile(unit, {"-std=c++20", "-O1", "-shared", "-fPIC", "-w", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
                             "-fno-gnu-unique"},
                       plan.name),
      "/tmp");
  for (const plan::Kernel* kernel : kernels) {
    void* function = object_->find("run_" + kernel->name);
    CXXI_CHECK(function != nullptr, "no kernel {}", kernel->name);
    kernels_.push_back(std::make_unique<EmulatedKernel>(kernel->name, reinterpret_cast<EmulatedKernel::Function>(function),
                                                        codegen::cuda_launch_shape(*kernel, variant).block_x,
                                                        codegen::cuda_has_checks(*kernel)));
  }
}

CudaProgram::CudaProgram(const loops::Program& program, plan::Variant variant, const Target& target) {
  compile(schedule::make_plan(program, target, Options()), variant);
}

CudaProgram::CudaProgram(const std::string& text, plan::Variant variant, Edit edit) {
  plan::Plan plan = schedule::make_plan(loops::parse(text), gpu_target(), Options());
  edit(plan);
  compile(std::move(plan), variant);
}

void CudaProgram::compile(plan::Plan plan, plan::Variant variant) {
  kernels_ = std::make_shared<EmulatedKernels>(plan, variant);
  executable = std::make_unique<runtime::Executable>(on_the_host(std::move(plan)), kernels_, host);
}

runtime::TensorRef CudaProgram::tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& numbers,
                                       std::vector<int64_t> strides) {
  if (strides.empty()) strides = runtime::contiguous_strides(sizes);
  runtime::TensorRef made = host.empty_strided(dtype, {}, sizes, strides);
  std::vector<Scalar> elements;
  for (double n : numbers)
    elements.push_back(is_float(dtype) ? Scalar::from_real(dtype, n) : Scalar::from_integer(dtype, static_cast<int64_t>(n)));
  runtime::write_elements(runtime::view_of(made), elements);
  return made;
}

std::vector<std::vector<double>> CudaProgram::run(std::vector<runtime::TensorRef> inputs) {
  std::vector<runtime::Value> values;
  for (runtime::TensorRef& input : inputs) values.emplace_back(std::move(input));
  std::vector<std::vector<double>> results;
  for (const runtime::Value& value : executable->run(host, std::move(values))) {
    results.emplace_back();
    for (const Scalar& s : runtime::read_elements(runtime::view_of(value.tensor))) results.back().push_back(s.as_real());
  }
  return results;
}

}  // namespace cxxinductor::tests

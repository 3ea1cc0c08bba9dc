#include "kernels/cuda_program.h"

#include <functional>

#include "unit/make_plan.h"

namespace cxxinductor::tests {
namespace {

class EmulatedKernel : public runtime::LoadedKernel {
 public:
  EmulatedKernel(std::shared_ptr<EmulatedUnit> unit, size_t number) : unit_(std::move(unit)), number_(number) {}
  void launch(runtime::Host&, const runtime::LaunchArgs& args, void*) const override {
    unit_->run(number_, args.buffers, args.symbols, args.grid.x * args.grid.y);
  }
  void launch_grouped(runtime::Host&, std::span<const runtime::LaunchArgs> items, void*) const override { unit_->run_grouped(number_, items); }

 private:
  std::shared_ptr<EmulatedUnit> unit_;
  size_t number_;
};

plan::Plan on_the_host(plan::Plan plan) {
  for (plan::Buffer& buffer : plan.buffers) buffer.device = {};
  for (plan::Kernel& kernel : plan.kernels) {
    kernel.device = {};
    kernel.region.device = {};
  }
  for (plan::Arena& arena : plan.arenas) arena.device = {};
  plan.devices = {Device()};
  plan.eager_peaks.clear();
  return plan;
}

}  // namespace

plan::Plan without_specializations(plan::Plan plan) {
  for (plan::Step& step : plan.steps)
    if (auto* launch = std::get_if<plan::Launch>(&step)) launch->specializations.clear();
  return plan;
}

EmulatedUnit::EmulatedUnit(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant, const OriginTable& origins, const std::string& name)
    : source_(codegen::emit_cuda(kernels, variant, origins, codegen::Templates::Included)) {
  std::vector<std::string> names;
  for (const plan::Kernel* kernel : kernels) {
    names.push_back(kernel->name);
    kernels_.push_back({kernel->name, plan::launch_shape(*kernel).block_x, codegen::cuda_has_checks(*kernel), plan::GroupedLaunchLayout(*kernel)});
  }
  text_ = std::make_unique<HostText>(source_, names, name);
}

void EmulatedUnit::run(size_t number, std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid) const {
  const Kernel& kernel = kernels_.at(number);
  std::vector<void*> pointers(buffers.begin(), buffers.end());
  std::vector<long long> numbers(symbols.begin(), symbols.end());
  std::vector<void*> args;
  for (size_t i = 0; i < pointers.size(); ++i) args.push_back(kernel.batch.value_bytes[i] > 0 ? pointers[i] : &pointers[i]);
  for (long long& value : numbers) args.push_back(&value);
  run(number, std::move(args), grid);
}

void EmulatedUnit::run_grouped(size_t number, std::span<const runtime::LaunchArgs> items) const {
  const Kernel& kernel = kernels_.at(number);
  while (!items.empty()) {
    alignas(8) std::array<std::byte, plan::max_grouped_bytes + 8> table;
    const targets::FilledTable filled = targets::fill_grouped_table(kernel.batch, items, table.data());
    run(number, {table.data()}, filled.blocks);
    items = items.subspan(filled.taken);
  }
}

void EmulatedUnit::run(size_t number, std::vector<void*> args, int64_t grid) const {
  const Kernel& kernel = kernels_.at(number);
  int record[8] = {};
  void* record_address = record;
  if (kernel.checks) args.push_back(&record_address);
  const uint64_t seed = std::hash<std::string>()(source_) + launches_++;
  const std::string error = text_->run(number, args.data(), static_cast<unsigned>(kernel.threads), grid, seed);
  if (!error.empty()) throw_internal("kernel {} with seed {}: {}", kernel.name, seed, error);
  if (!record[6]) return;
  const int64_t index = (int64_t{record[3]} << 32) | static_cast<uint32_t>(record[2]);
  const int64_t bound = (int64_t{record[5]} << 32) | static_cast<uint32_t>(record[4]);
  throw_user_error("check {}: index {} outside {}", record[1], index, bound);
}

EmulatedKernels::EmulatedKernels(const plan::Plan& plan, plan::Variant variant) {
  std::vector<const plan::Kernel*> kernels;
  for (const plan::Kernel& kernel : plan.kernels) kernels.push_back(&kernel);
  unit_ = std::make_shared<EmulatedUnit>(kernels, variant, plan.origins, plan.name);
  for (size_t k = 0; k < kernels.size(); ++k) kernels_.push_back(std::make_unique<EmulatedKernel>(unit_, k));
}

CudaProgram::CudaProgram(const loops::Program& program, plan::Variant variant, const Target& target, runtime::PlainHost::ExternFunction externs)
    : CudaProgram(schedule::test::make_plan(program, target, Options()), variant, std::move(externs)) {}

CudaProgram::CudaProgram(plan::Plan plan, plan::Variant variant, runtime::PlainHost::ExternFunction externs) : host(1, std::move(externs)) {
  kernels_ = std::make_shared<EmulatedKernels>(plan, variant);
  executable = std::make_unique<runtime::Executable>(on_the_host(std::move(plan)), kernels_, host);
}

runtime::TensorRef CudaProgram::tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& numbers, std::vector<int64_t> strides) {
  if (strides.empty()) strides = runtime::contiguous_strides(sizes);
  runtime::TensorRef made = host.empty_strided(dtype, {}, sizes, strides);
  std::vector<Scalar> elements;
  for (double n : numbers) elements.push_back(is_float(dtype) ? Scalar::from_real(dtype, n) : Scalar::from_integer(dtype, static_cast<int64_t>(n)));
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

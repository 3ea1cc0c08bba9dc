// A loops program compiled for the CPU and run for real: text -> plan -> C++ -> machine code -> Executable.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen/cpu/emit.h"
#include "ir/loops/text.h"
#include "kernels/cpu_unit.h"
#include "runtime/executable.h"
#include "schedule/schedule.h"
#include "unit/make_plan.h"

namespace cxxinductor::tests {

using Numbers = std::vector<double>;

class CpuProgram {
 public:
  explicit CpuProgram(const std::string& text, const Target& target = machine_target(), int threads = 2) : CpuProgram(loops::parse(text), target, threads) {}
  CpuProgram(const loops::Program& program, const Target& target, int threads)
      : CpuProgram(schedule::test::make_plan(program, target, Options()), target, threads) {}
  CpuProgram(plan::Plan plan, const Target& target, int threads, runtime::PlainHost::ExternFunction externs = {})
      : compiler_({}), pool_(2), host(threads, std::move(externs)) {
    host.guard_pages = true;
    const auto emit = [target, origins = plan.origins](const std::vector<const plan::Kernel*>& kernels) {
      return targets::CpuUnitSource{codegen::emit_cpu(kernels, target, origins), codegen::cpu_math_symbols(kernels, target)};
    };
    auto provider = std::make_shared<targets::CpuKernelProvider>(target, emit, compiler_, pool_, nullptr, host);
    provider->prepare(plan);
    executable = std::make_unique<runtime::Executable>(std::move(plan), std::move(provider), host);
  }

  runtime::TensorRef tensor(DType dtype, std::vector<int64_t> sizes, const Numbers& numbers, std::vector<int64_t> strides = {}) {
    if (strides.empty()) strides = runtime::contiguous_strides(sizes);
    runtime::TensorRef made = host.empty_strided(dtype, {}, sizes, strides);
    std::vector<Scalar> elements;
    for (double n : numbers) {
      elements.push_back(is_float(dtype) ? Scalar::from_real(dtype, n) : Scalar::from_integer(dtype, static_cast<int64_t>(n)));
    }
    runtime::write_elements(runtime::view_of(made), elements);
    return made;
  }

  std::vector<Numbers> run(std::vector<runtime::TensorRef> inputs) {
    std::vector<runtime::Value> values;
    for (runtime::TensorRef& input : inputs) values.emplace_back(std::move(input));
    std::vector<Numbers> results;
    for (const runtime::Value& value : executable->run(host, std::move(values))) {
      results.emplace_back();
      for (const Scalar& s : runtime::read_elements(runtime::view_of(value.tensor))) results.back().push_back(s.as_real());
    }
    return results;
  }
  const plan::Kernel& kernel(size_t i = 0) const { return executable->plan().kernels[plan::KernelId(i)]; }

 private:
  targets::HostCompiler compiler_;
  runtime::CompilePool pool_;  // outlives the kernels' provider, which the executable holds

 public:
  runtime::PlainHost host;
  std::unique_ptr<runtime::Executable> executable;
};

}  // namespace cxxinductor::tests

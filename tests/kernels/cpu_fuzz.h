// Random graphs through compiled CPU code: an Executor for tests/fuzz/graph_fuzz.h.
#pragma once

#include "driver/stages.h"
#include "fuzz/graph_fuzz.h"
#include "kernels/cpu_program.h"
#include "lowering/lower.h"
#include "runtime/element.h"

namespace cxxinductor::tests {

// fuzz::twice on the plain host: a fresh contiguous tensor.
inline void call_twice(runtime::PlainHost& host, const plan::CallExtern&, std::span<const runtime::Operand> operands, std::span<const runtime::TensorView>,
                       std::span<runtime::TensorRef> results) {
  const runtime::TensorView& from = operands[0].tensor;
  results[0] = host.empty_strided(from.dtype, {}, from.sizes, runtime::contiguous_strides(from.sizes));
  std::vector<Scalar> elements = runtime::read_elements(from);
  for (Scalar& s : elements) {
    s = is_float(from.dtype) ? Scalar::from_real(from.dtype, 2 * s.real()) : Scalar::from_integer(from.dtype, 2 * s.integer());
  }
  runtime::write_elements(runtime::view_of(results[0]), elements);
}

inline interp::Tensor read_tensor(const runtime::TensorRef& from) {
  interp::Tensor tensor;
  tensor.dtype = from.dtype;
  tensor.sizes.assign(from.sizes().begin(), from.sizes().end());
  tensor.elements = runtime::read_elements(runtime::view_of(from));
  return tensor;
}

inline bool is_written(const plan::Plan& plan, plan::BufferId buffer) {
  for (const plan::Step& step : plan.steps) {
    for (const plan::Launch& launch : plan::launches_of(step))
      for (size_t i = 0; i < launch.args.size(); ++i)
        if (launch.args[i] == buffer && plan.kernels[launch.kernel].params[i].written) return true;
  }
  return false;
}

// Runs a plan on the interpreter's tensors, laid out as the plan's inputs demand: outputs, then mutated inputs.
// Program: CpuProgram or CudaProgram.
template <class Program>
std::vector<interp::Tensor> run_compiled(Program& program, const interp::Arguments& arguments) {
  const plan::Plan& plan = program.executable->plan();
  const auto number = [&](sym::Expr e) { return sym::evaluate(e, [&](std::string_view name) { return arguments.symbols.at(std::string(name)); }); };
  std::vector<runtime::Value> inputs;
  std::vector<runtime::TensorRef> mutated;
  size_t next = 0;
  for (const plan::Input& input : plan.inputs) {
    if (input.kind != plan::Input::Kind::Tensor) {
      inputs.emplace_back(arguments.symbols.at(input.symbol));
      continue;
    }
    const interp::Tensor& from = arguments.tensors.at(next++);
    std::vector<int64_t> strides;
    for (sym::Expr e : plan.buffers[input.buffer].strides) strides.push_back(number(e));
    runtime::TensorRef tensor = program.host.empty_strided(from.dtype, {}, from.sizes, strides);
    runtime::write_elements(runtime::view_of(tensor), from.elements);
    if (is_written(plan, input.buffer)) mutated.push_back(tensor);
    inputs.emplace_back(std::move(tensor));
  }
  std::vector<interp::Tensor> outputs;
  for (const runtime::Value& value : program.executable->run(program.host, std::move(inputs))) {
    if (value.is_tensor())
      outputs.push_back(read_tensor(value.tensor));
    else
      outputs.push_back({DType::I64, {}, {Scalar::from_integer(DType::I64, value.integer)}});
  }
  for (const runtime::TensorRef& tensor : mutated) outputs.push_back(read_tensor(tensor));
  return outputs;
}

// As the driver plans it, or with neither graph passes nor fusion.
inline plan::Plan plan_of_random(const graph::Graph& graph, const Target& target, bool fused) {
  if (fused) return driver::plan_of(graph, target);
  Options options;
  options.fusion = false;
  return driver::plan_of(lowering::lower(graph), target, options);
}

inline fuzz::Executor cpu_executor(const Target& target, bool fused) {
  return {fmt::format("CPU code for {}{}", target.arch, fused ? "" : ", unfused"),
          [target, fused](const graph::Graph& given, const interp::Arguments& arguments) {
            CpuProgram compiled(plan_of_random(given, target, fused), target, 3, call_twice);
            return run_compiled(compiled, arguments);
          }};
}

}  // namespace cxxinductor::tests

// Small plans made by hand, and kernels given as functions: the executable is tested without a compiler.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/plain_host.h"
#include "support/error.h"

namespace cxxinductor::runtime {

inline const sym::Expr s0 = sym::Expr::symbol("s0");  // a size that differs between calls

using KernelBody = std::function<void(std::span<void* const>, std::span<const int64_t>, int64_t grid_x)>;

// Kernels by name, in the order of the plan.
class FunctionProvider : public KernelProvider {
 public:
  explicit FunctionProvider(std::vector<KernelBody> bodies) {
    for (KernelBody& body : bodies) kernels_.push_back(std::make_unique<Kernel>(std::move(body)));
  }
  void prepare(const plan::Plan&, const InterruptCheck&) override {}
  const LoadedKernel& get(plan::KernelId kernel, plan::Variant variant) override {
    ++asked;
    last_variant = variant;
    return *kernels_.at(kernel.index());
  }
  const LoadedKernel* find(plan::KernelId kernel, plan::Variant variant) override { return late ? nullptr : &get(kernel, variant); }
  std::atomic<int> asked = 0;
  std::atomic<bool> late = false;  // nothing is there yet that find is asked for
  plan::Variant last_variant;

 private:
  struct Kernel : LoadedKernel {
    explicit Kernel(KernelBody b) : body(std::move(b)) {}
    void launch(Host&, const LaunchArgs& args, void*) const override { body(args.buffers, args.symbols, args.grid.x); }
    KernelBody body;
  };
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

// Builds a plan whose symbols are all sizes of inputs.
class PlanBuilder {
 public:
  plan::Plan plan;

  PlanBuilder() { plan.name = "test", plan.target = "cpu"; }

  plan::BufferId buffer(std::string name, plan::Buffer::Kind kind, std::vector<sym::Expr> sizes, std::vector<sym::Expr> strides = {},
                        DType dtype = DType::F32) {
    if (strides.empty()) strides = contiguous(sizes);
    plan::Buffer b{std::move(name), dtype, {}, sizes, strides};
    b.kind = kind;
    b.bytes = sym::product(sizes) * byte_size(dtype);
    if (kind == plan::Buffer::Kind::Arena) {
      if (plan.arenas.empty()) plan.arenas.push_back({b.device, 0});
      sym::Expr& bytes = plan.arenas.front().bytes;
      b.arena_offset = bytes;
      bytes = bytes + sym::ceil_div(b.bytes, 64) * 64;
    }
    return plan.buffers.push_back(b);
  }
  plan::BufferId input(std::string name, std::vector<sym::Expr> sizes, std::vector<sym::Expr> strides = {}, DType dtype = DType::F32) {
    const plan::BufferId id = buffer(name, plan::Buffer::Kind::Input, sizes, strides, dtype);
    const auto index = static_cast<uint32_t>(plan.inputs.size());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d].is_symbol()) plan.symbols.push_back({std::string(sizes[d].name()), index, static_cast<int>(d)});
    }
    plan.inputs.push_back({plan::Input::Kind::Tensor, id, "", name});
    return id;
  }
  plan::KernelId kernel(std::string name, int params, std::vector<bool> written, std::vector<std::string> symbols = {}) {
    plan::Kernel k;
    k.name = std::move(name);
    for (int i = 0; i < params; ++i) k.params.push_back({DType::F32, true, written[static_cast<size_t>(i)]});
    k.symbols = std::move(symbols);
    k.always_index32 = true;
    return plan.kernels.push_back(k);
  }
  void launch(plan::KernelId kernel, std::vector<plan::BufferId> args, std::vector<sym::Expr> symbols, sym::Expr grid) {
    plan::Launch step;
    step.kernel = kernel;
    step.args = std::move(args);
    step.symbol_args = std::move(symbols);
    step.grid_x = grid;
    plan.steps.emplace_back(std::move(step));
  }
  plan::View whole(plan::BufferId id) const {
    const plan::Buffer& b = plan.buffers[id];
    return {id, b.dtype, b.sizes, b.strides, 0};
  }
  plan::CallExtern& call(std::string callee, std::vector<std::variant<plan::View, sym::Expr>> operands, std::vector<plan::BufferId> results, bool planned_out) {
    plan::CallExtern step;
    step.callee = std::move(callee);
    for (size_t i = 0; i < operands.size(); ++i) step.args.emplace_back(OperandRef{static_cast<uint32_t>(i)});
    step.operands = std::move(operands);
    step.alias_of.assign(results.size(), -1);
    step.results = std::move(results);
    step.planned_out = planned_out;
    plan.steps.emplace_back(std::move(step));
    return std::get<plan::CallExtern>(plan.steps.back());
  }
  void output(plan::BufferId id) { plan.outputs.push_back({plan::Output::Kind::Tensor, id, {}, 0}); }

  static std::vector<sym::Expr> contiguous(const std::vector<sym::Expr>& sizes) {
    std::vector<sym::Expr> strides(sizes.size());
    sym::Expr step = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      strides[d] = step;
      step = step * sizes[d];
    }
    return strides;
  }
};

inline TensorRef make_tensor(PlainHost& host, std::vector<int64_t> sizes, std::vector<int64_t> strides = {}, DType dtype = DType::F32) {
  if (strides.empty()) strides = contiguous_strides(sizes);
  TensorRef tensor = host.empty_strided(dtype, {}, sizes, strides);
  const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<Scalar> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(Scalar::from_real(dtype, static_cast<double>(i % 97) - 20));
  write_elements(view_of(tensor), elements);
  return tensor;
}

inline std::vector<Value> one_input(TensorRef tensor) {
  std::vector<Value> inputs;
  inputs.emplace_back(std::move(tensor));
  return inputs;
}

inline std::vector<double> numbers_of(const TensorRef& tensor) {
  std::vector<double> numbers;
  for (const Scalar& s : read_elements(view_of(tensor))) numbers.push_back(s.as_real());
  return numbers;
}

// out[i] = in[i] + 1 over symbols[0] elements, one unit an element.
inline void add_one(std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid_x) {
  const auto* in = static_cast<const float*>(buffers[0]);
  auto* out = static_cast<float*>(buffers[1]);
  if (symbols[0] != grid_x) throw InternalError("grid and symbol differ");
  for (int64_t i = 0; i < grid_x; ++i) out[i] = in[i] + 1;
}

}  // namespace cxxinductor::runtime

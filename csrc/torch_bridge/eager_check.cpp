#include "torch_bridge/eager_check.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "driver/kernel_check.h"
#include "interp/difference.h"
#include "support/error.h"
#include "torch_bridge/types.h"
#include "torch_bridge/view_tensor.h"

namespace cxxinductor::torch_bridge {

using model::Call;
using model::CallValue;
using model::CallValueInfo;

namespace {

constexpr size_t kNever = static_cast<size_t>(-1);

bool is_copy_into(const Call& call) {
  return call.callee == "aten::copy_" && call.args.size() >= 2 && call.args[0].as<OperandRef>() && call.args[1].as<OperandRef>();
}

bool leaves_garbage(const Call& call) {
  for (const char* name : {"aten::empty", "aten::new_empty"})
    if (call.callee.starts_with(name)) return true;
  return false;
}

// Arguments of the step's launches whose parameters are as wanted.
template <class Wanted>
std::vector<plan::BufferId> launch_args(const plan::Plan& plan, const plan::Step& step, Wanted wanted) {
  std::vector<plan::BufferId> found;
  for (const plan::Launch& launch : plan::launches_of(step)) {
    const plan::Kernel& kernel = plan.kernels[launch.kernel];
    for (size_t i = 0; i < launch.args.size(); ++i)
      if (wanted(kernel.params[i])) found.push_back(launch.args[i]);
  }
  return found;
}

std::vector<plan::BufferId> written_by(const plan::Plan& plan, const plan::Step& step) {
  std::vector<plan::BufferId> written = launch_args(plan, step, [](const plan::Param& param) { return param.written; });
  if (const auto* call = std::get_if<plan::CallExtern>(&step)) {
    for (plan::BufferId result : call->results)
      if (result.valid()) written.push_back(result);
  }
  return written;
}

// What the step both reads and writes.
std::vector<plan::BufferId> updated_by(const plan::Plan& plan, const plan::Step& step) {
  return launch_args(plan, step, [](const plan::Param& param) { return param.read && param.written; });
}

// Null where the step is an extern call.
const plan::Launch* launch_that_uses(const plan::Plan& plan, const plan::Step& step, plan::BufferId buffer) {
  for (const plan::Launch& launch : plan::launches_of(step))
    for (plan::BufferId arg : launch.args)
      if (plan::share_elements(plan, arg, buffer)) return &launch;
  return nullptr;
}

double magnitude(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return 0;
  const double norm = tensor.to(at::kDouble).norm().item<double>();
  return std::isfinite(norm) ? norm / std::sqrt(static_cast<double>(tensor.numel())) : 0;
}

// A copy on the host that the interpreter's comparison reads.
interp::MemRef memref_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.to(at::kCPU).contiguous();
  interp::MemRef memref{interp::allocate("", static_cast<int64_t>(host.nbytes())), from_torch(host.scalar_type()), 0, host.sizes().vec(), host.strides().vec()};
  if (host.nbytes() > 0) std::memcpy(memref.storage->bytes.data(), host.const_data_ptr(), host.nbytes());
  return memref;
}

}  // namespace

struct EagerReference::CheckPlan {
  AtenExecutor executor;
  Options options;
  std::vector<size_t> producers;                      // for each call value: the call that makes it, or kNever
  std::vector<std::vector<CallValue>> values_of;      // for each plan buffer: what it holds when it is complete
  std::vector<size_t> last_writer;                    // for each plan buffer: step, or kNever
  std::vector<std::vector<plan::BufferId>> complete;  // for each step: buffers that it completes
  std::set<uint32_t> written_inputs;                  // positions

  CheckPlan(model::CallGraph calls, const Options& the_options) : executor(std::move(calls)), options(the_options) {}
  const model::CallGraph& calls() const { return executor.calls(); }
  void find_producers();
  void find_values(const std::vector<frontend::ImportedName>& names, const plan::Plan& plan);
  void find_writers(const plan::Plan& plan);
};

void EagerReference::CheckPlan::find_producers() {
  producers.assign(calls().values.size(), kNever);
  const std::set<CallValue> inputs(calls().inputs.begin(), calls().inputs.end());
  for (size_t i = 0; i < calls().calls.size(); ++i) {
    const Call& call = calls().calls[i];
    for (CallValue result : call.results) producers[result] = i;
    if (!executor.schema(i).is_mutable()) continue;
    const OperandRef* target = is_copy_into(call) ? call.args[0].as<OperandRef>() : nullptr;
    if (target == nullptr || !inputs.contains(target->operand))
      throw_unsupported("check=eager cannot repeat {}, which writes into its arguments; use check=interp", call.callee);
  }
}

void EagerReference::CheckPlan::find_values(const std::vector<frontend::ImportedName>& names, const plan::Plan& plan) {
  std::multimap<std::string, CallValue> by_name;
  for (const frontend::ImportedName& item : names) by_name.emplace(item.name, item.value);
  // What an input becomes is not what it was: its buffer's name stands for the last value copied into it.
  std::map<std::string, CallValue> becomes;
  for (const Call& call : calls().calls) {
    if (!is_copy_into(call) || call.results.empty()) continue;
    const CallValue target = call.args[0].as<OperandRef>()->operand;
    for (const auto& [name, value] : by_name)
      if (value == target) becomes[name] = call.results[0];
  }
  values_of.resize(plan.buffers.size());
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::Buffer& buffer = plan.buffers[plan::BufferId(b)];
    // Copies that lowering made are named after what they copy: "23.out", "x.new".
    const std::string name = buffer.name.substr(0, buffer.name.find('.'));
    const bool changed = buffer.kind == plan::Buffer::Kind::Input || buffer.name.starts_with(name + ".new");
    if (changed) {
      if (const auto found = becomes.find(name); found != becomes.end()) values_of[b].push_back(found->second);
      continue;
    }
    for (auto [it, end] = by_name.equal_range(name); it != end; ++it) values_of[b].push_back(it->second);
  }
}

void EagerReference::CheckPlan::find_writers(const plan::Plan& plan) {
  last_writer.assign(plan.buffers.size(), kNever);
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    // A scatter in place makes a new value where another one was. Buffers are named after the first, so that nothing says
    // which of the model's values is there in the end.
    for (plan::BufferId id : updated_by(plan, plan.steps[s]))
      if (last_writer[id.index()] != kNever && plan.buffers[id].kind != plan::Buffer::Kind::Input) values_of[id.index()].clear();
    for (plan::BufferId id : written_by(plan, plan.steps[s])) {
      last_writer[id.index()] = s;
      plan::for_each_base(plan, id, [&](plan::BufferId base) { last_writer[base.index()] = s; });
    }
  }
  complete.resize(plan.steps.size());
  for (size_t b = 0; b < last_writer.size(); ++b)
    if (last_writer[b] != kNever) complete[last_writer[b]].push_back(plan::BufferId(b));
  for (uint32_t i = 0; i < plan.inputs.size(); ++i) {
    const plan::Input& input = plan.inputs[i];
    if (input.kind == plan::Input::Kind::Tensor && last_writer[input.buffer.index()] != kNever) written_inputs.insert(i);
  }
}

class EagerReference::Check final : public driver::KernelCheck {
 public:
  Check(const CheckPlan& check_plan, std::vector<c10::IValue> inputs) : check_plan_(check_plan), state_(check_plan.executor.bind(std::move(inputs))) {
    for (uint32_t input : check_plan_.written_inputs) {
      c10::IValue& value = state_.values[check_plan_.calls().inputs[input]];
      if (value.isTensor()) value = value.toTensor().clone();
    }
  }

  void before_step(const runtime::CallView& call, size_t step) override {
    const auto launches = plan::launches_of(call.plan.steps[step]);
    input_magnitudes_.assign(launches.size(), 0);
    extern_inputs_.clear();
    if (check_plan_.complete[step].empty()) return;
    find_symbols(call);
    // What is read may be gone after the step.
    if (const auto* callee = std::get_if<plan::CallExtern>(&call.plan.steps[step])) find_extern_inputs(call, *callee);
    for (size_t l = 0; l < launches.size(); ++l) {
      const plan::Kernel& kernel = call.plan.kernels[launches[l].kernel];
      for (size_t i = 0; i < launches[l].args.size(); ++i)
        if (kernel.params[i].read && call.addresses[launches[l].args[i].index()] != nullptr)
          input_magnitudes_[l] = std::max(input_magnitudes_[l], magnitude(tensor_of(call, launches[l].args[i])));
    }
  }

  void after_step(const runtime::CallView& call, size_t step) override {
    if (check_plan_.complete[step].empty()) return;
    find_symbols(call);
    const at::AutoDispatchBelowADInplaceOrView guard;
    std::set<const plan::Launch*> agreed;
    for (plan::BufferId buffer : check_plan_.complete[step])
      if (check(call, step, buffer)) agreed.insert(launch_that_uses(call.plan, call.plan.steps[step], buffer));
    agreed.erase(nullptr);
    checked_ += static_cast<int64_t>(agreed.size());
  }

 private:
  // A result with fewer elements sums those of an input, which may cancel: gradients of a bias before a norm are all rounding.
  struct ExternInput {
    double magnitude;
    double elements;
    double magnitude_of_sums(int64_t results) const {
      return results > 0 && elements > static_cast<double>(results) ? magnitude * std::sqrt(elements / static_cast<double>(results)) : 0;
    }
  };

  void find_extern_inputs(const runtime::CallView& call, const plan::CallExtern& callee) {
    for (const auto& operand : callee.operands) {
      const auto* view = std::get_if<plan::View>(&operand);
      if (view == nullptr || is_opaque(view->dtype) || call.addresses[view->buffer.index()] == nullptr) continue;
      const at::Tensor whole = tensor_of(call, view->buffer);
      extern_inputs_.push_back({magnitude(whole), static_cast<double>(whole.numel())});
    }
  }

  void find_symbols(const runtime::CallView& call) {
    for (size_t i = symbols_.size(); i < call.symbols.size(); ++i) {
      symbols_[call.symbol_names[i]] = call.symbols[i];
      state_.symbols.emplace(call.symbol_names[i], call.symbols[i]);
    }
  }

  at::Tensor tensor_of(const runtime::CallView& call, plan::BufferId id) const {
    const plan::Buffer& buffer = call.plan.buffers[id];
    const std::vector<int64_t> sizes = interp::evaluate(buffer.sizes, symbols_);
    const std::vector<int64_t> strides = interp::evaluate(buffer.strides, symbols_);
    runtime::TensorView view;
    view.data = call.addresses[id.index()];
    view.dtype = buffer.dtype;
    view.device = buffer.device;
    // An extern may have put its result elsewhere than its buffer says: attention leaves its random state on the CPU.
    if (const runtime::TensorRef& tensor = call.tensors[id.index()]; tensor.owner) {
      view.device = tensor.device;
      view.base = &tensor;
    }
    view.sizes = sizes;
    view.strides = strides;
    return view_tensor(view);
  }

  // ATen's value; nothing where a call on the way to it is random or leaves memory as it was.
  std::optional<at::Tensor> reference(CallValue value) {
    std::vector<CallValue> open{value};
    std::set<size_t> needed;
    while (!open.empty()) {
      const CallValue next = open.back();
      open.pop_back();
      const size_t call = check_plan_.producers[next];
      if (call == kNever || !state_.values[next].isNone() || !needed.insert(call).second) continue;
      const Call& found = check_plan_.calls().calls[call];
      if (check_plan_.executor.is_random(call) || leaves_garbage(found)) return std::nullopt;
      for_each_operand_ref(found, [&](OperandRef ref) { open.push_back(ref.operand); });
    }
    for (size_t call : needed) run(call);
    const c10::IValue& found = state_.values[value];
    return found.isTensor() && found.toTensor().defined() ? std::optional(found.toTensor()) : std::nullopt;
  }

  void run(size_t number) {
    const Call& call = check_plan_.calls().calls[number];
    if (!is_copy_into(call)) {
      // Results that were compared stay what they are.
      std::vector<std::pair<CallValue, c10::IValue>> kept;
      for (CallValue result : call.results)
        if (!state_.values[result].isNone()) kept.emplace_back(result, state_.values[result]);
      check_plan_.executor.run_call(number, state_);
      for (auto& [result, value] : kept) state_.values[result] = std::move(value);
      return;
    }
    const at::Tensor target = state_.values[call.args[0].as<OperandRef>()->operand].toTensor();
    const c10::IValue& from = state_.values[call.args[1].as<OperandRef>()->operand];
    state_.values[call.results[0]] = at::empty_strided(target.sizes(), target.strides(), target.options()).copy_(from.toTensor());
  }

  // Whether there was a value to compare with.
  bool check(const runtime::CallView& call, size_t step, plan::BufferId buffer) {
    // A result that nothing reads is dropped unseen.
    if (is_opaque(call.plan.buffers[buffer].dtype) || call.addresses[buffer.index()] == nullptr) return false;
    const at::Tensor actual = tensor_of(call, buffer);
    bool compared = false;
    for (CallValue value : check_plan_.values_of[buffer.index()]) {
      const CallValueInfo& info = check_plan_.calls().values[value];
      const size_t producer = check_plan_.producers[value];
      if (info.kind != CallValueInfo::Kind::Tensor || info.dtype != call.plan.buffers[buffer].dtype || producer == kNever) continue;
      if (!compared) {
        const std::optional<at::Tensor> expected = reference(value);
        if (expected && (expected->sizes() != actual.sizes() || expected->scalar_type() != actual.scalar_type())) continue;
        if (expected) compare(call, step, buffer, *expected, actual);
        compared = expected.has_value();
      }
      replace(value, actual);
    }
    if (!compared) unchecked_.insert(buffer.index());
    return compared;
  }

  void replace(CallValue value, const at::Tensor& actual) {
    std::vector<int64_t> strides;
    for (sym::Expr stride : check_plan_.calls().values[value].strides) {
      strides.push_back(sym::evaluate(stride, [&](std::string_view name) {
        const auto found = state_.symbols.find(name);
        if (found == state_.symbols.end()) throw_internal("check=eager: the symbol {} has no value", name);
        return found->second;
      }));
    }
    const bool overlaps = std::find(strides.begin(), strides.end(), 0) != strides.end();
    if (strides.size() != static_cast<size_t>(actual.dim()) || overlaps) {
      state_.values[value] = actual.clone();
    } else {
      state_.values[value] = at::empty_strided(actual.sizes(), strides, actual.options()).copy_(actual);
    }
  }

  void compare(const runtime::CallView& call, size_t step, plan::BufferId buffer, const at::Tensor& expected, const at::Tensor& actual) const {
    const DType dtype = from_torch(actual.scalar_type());
    const plan::Launch* launch = launch_that_uses(call.plan, call.plan.steps[step], buffer);
    interp::Tolerance tolerance;
    if (launch) {
      const plan::Kernel& kernel = call.plan.kernels[launch->kernel];
      const auto number = static_cast<size_t>(launch - plan::launches_of(call.plan.steps[step]).data());
      driver::Scale scale{magnitude(expected), input_magnitudes_[number], 1};
      scale.summed = driver::longest_sum(kernel, driver::launch_symbols(call.plan, *launch, symbols_));
      tolerance = driver::tolerance_for(kernel, dtype, scale, check_plan_.options);
    } else {
      double scale = magnitude(expected);
      for (const ExternInput& input : extern_inputs_) scale = std::max(scale, input.magnitude_of_sums(actual.numel()));
      tolerance = driver::tolerance_for_extern(dtype, scale, check_plan_.options);
    }
    const interp::Difference difference = interp::find_difference(memref_of(expected), memref_of(actual), tolerance);
    if (difference.differing == 0) return;
    std::string text =
        driver::describe_mismatch(call.plan, step, buffer, fmt::format("[{}]", fmt::join(actual.sizes().vec(), ", ")), difference, "eager", "ATen's");
    const std::vector<std::string> feeding = unchecked_feeders(call.plan, step);
    if (!feeding.empty())
      text += fmt::format("\n  or one that feeds it what ATen has no value of: {}; check=interp tells them apart", fmt::join(feeding, ", "));
    throw KernelMismatch(text);
  }

  // Kernels that made what the step reads, and that were not compared themselves.
  std::vector<std::string> unchecked_feeders(const plan::Plan& plan, size_t step) const {
    std::vector<std::string> names;
    std::set<size_t> seen;
    std::vector<size_t> open{step};
    while (!open.empty()) {
      const size_t reader = open.back();
      open.pop_back();
      for (const plan::Launch& launch : plan::launches_of(plan.steps[reader])) {
        const plan::Kernel& kernel = plan.kernels[launch.kernel];
        for (size_t i = 0; i < launch.args.size(); ++i) {
          const uint32_t buffer = launch.args[i].index();
          const size_t writer = check_plan_.last_writer[buffer];
          if (!kernel.params[i].read || kernel.params[i].written || !unchecked_.contains(buffer)) continue;
          if (writer == kNever || writer >= step || !seen.insert(writer).second) continue;
          open.push_back(writer);
          if (const auto feeder = plan::launches_of(plan.steps[writer]); !feeder.empty()) names.push_back(plan.kernels[feeder[0].kernel].name);
        }
      }
    }
    return names;
  }

  const CheckPlan& check_plan_;
  AtenExecutor::State state_;
  interp::Symbols symbols_;
  std::vector<double> input_magnitudes_;    // of what the launches of the step under way read
  std::vector<ExternInput> extern_inputs_;  // the same of an extern call
  std::set<uint32_t> unchecked_;            // buffers that are complete and had nothing to be compared with
};

EagerReference::EagerReference(model::CallGraph calls, const std::vector<frontend::ImportedName>& names, const plan::Plan& plan, const Options& options)
    : check_plan_(std::make_unique<CheckPlan>(std::move(calls), options)) {
  check_plan_->find_producers();
  check_plan_->find_values(names, plan);
  check_plan_->find_writers(plan);
}
EagerReference::~EagerReference() = default;

std::unique_ptr<driver::KernelCheck> EagerReference::check(std::vector<c10::IValue> inputs) const {
  return std::make_unique<Check>(*check_plan_, std::move(inputs));
}

}  // namespace cxxinductor::torch_bridge

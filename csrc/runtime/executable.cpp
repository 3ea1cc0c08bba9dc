#include "runtime/executable.h"

#include <algorithm>
#include <array>

#include "runtime/call.h"
#include "runtime/failed_check.h"
#include "support/error.h"

namespace cxxinductor::runtime {

struct Executable::Impl {
  plan::Plan plan;
  Tables tables;
  KernelTable kernels;
  std::unique_ptr<GraphCache> graphs;  // null: no recordings
  size_t most_rank = 0;
  size_t scratch = 0;  // bytes of CallMemory that a call takes

  Impl(plan::Plan the_plan, std::shared_ptr<KernelProvider> provider, Host& host, GraphSettings settings)
      : plan(std::move(the_plan)), tables(build_tables(plan, host)), kernels(plan.kernels.size(), std::move(provider)) {
    for (const BufferRecord& buffer : tables.buffers) most_rank = std::max<size_t>(most_rank, buffer.geometry.rank);
    // A result that the plan does not allocate is compared with its declared sizes and strides.
    tables.most_dims += 2 * most_rank;
    scratch = Call::scratch_bytes(tables, most_rank);
    // Sizes that steps define are not part of what recordings are found by.
    if (settings.use != UseGraphs::Off && !tables.stream_devices.empty() && tables.moments.size() == 1)
      graphs = std::make_unique<GraphCache>(plan, tables, settings);
  }
};

namespace {

// Errors name the step that failed and the inputs that had been written; exceptions of the host's leave unchanged.
template <class Walk>
void run_steps(const plan::Plan& plan, const size_t& step, std::string* written, Walk walk) {
  try {
    walk();
  } catch (const Error& error) {
    rethrow_with_step(error, plan, step);
  } catch (...) {
    if (written) *written = written_inputs(plan, step);
    throw;
  }
}

class CallInParts final : public PartialCall {
 public:
  CallInParts(const plan::Plan& plan, const Tables& tables, const KernelTable& kernels, Host& host, size_t scratch, size_t most_rank, std::vector<Value> inputs)
      : plan_(plan), call_(plan, tables, kernels, host, scratch, most_rank) {
    call_.bind(inputs, {.check_inputs = false});
    call_.find_streams();
  }
  void supply(size_t input, TensorRef tensor) override { call_.supply(input, std::move(tensor)); }
  void advance(size_t end) override {
    run_steps(plan_, step_, nullptr, [&] { call_.walk(step_, end); });
  }
  std::vector<Value> finish() override {
    advance(plan_.steps.size());
    return call_.outputs();
  }

 private:
  const plan::Plan& plan_;
  Call call_;
  size_t step_ = 0;
};

}  // namespace

Executable::Executable(plan::Plan plan, std::shared_ptr<KernelProvider> kernels, Host& host, GraphSettings graphs)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(kernels), host, graphs)) {}
Executable::~Executable() = default;

const plan::Plan& Executable::plan() const { return impl_->plan; }

std::vector<std::pair<std::string, int>> Executable::not_recorded() const {
  if (impl_->graphs) return impl_->graphs->reasons();
  if (impl_->tables.moments.size() == 1) return {};
  return {{"sizes follow from data of the call", static_cast<int>(impl_->tables.steps.size())}};
}

std::vector<Value> Executable::run(Host& host, std::vector<Value> inputs, const CallOptions& options) const {
  const Impl& impl = *impl_;
  if (!impl.tables.stream_devices.empty()) impl.kernels.provider().raise_failed_checks();
  Call call(impl.plan, impl.tables, impl.kernels, host, impl.scratch, impl.most_rank);
  call.bind(inputs, options);
  inputs.clear();
  call.find_streams();
  std::shared_ptr<GraphSet> set;
  if (impl.graphs && options.graphs && !options.observer)
    set = impl.graphs->find(call.graph_key(options.library_settings), call.values(), [&] { return call.held_inputs(); });
  size_t step = 0;
  run_steps(impl.plan, step, options.written, [&] {
    if (options.observer) [[unlikely]]
      call.walk(step, *options.observer);
    else if (set)
      call.walk(step, *impl.graphs, *set);
    else
      call.walk(step, impl.plan.steps.size());
  });
  return call.outputs();
}

std::unique_ptr<PartialCall> Executable::begin(Host& host, std::vector<Value> inputs) const {
  if (!impl_->tables.stream_devices.empty()) impl_->kernels.provider().raise_failed_checks();
  return std::make_unique<CallInParts>(impl_->plan, impl_->tables, impl_->kernels, host, impl_->scratch, impl_->most_rank, std::move(inputs));
}

}  // namespace cxxinductor::runtime

// run(): bind symbols, evaluate the program, check, walk the steps, each with the arenas that it is the first to use, build
// the outputs. Nothing here hashes, locks or formats; a call's own tables live in one block (call_memory.h) and in one vector of tensors.
#include "runtime/executable.h"

#include <algorithm>

#include "ir/plan/index_width.h"
#include "runtime/call_memory.h"
#include "runtime/executable_tables.h"
#include "runtime/failed_check.h"
#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

constexpr int kVariants = 4;
int variant_number(plan::Variant variant) { return (variant.vectorized ? 1 : 0) + (variant.index64 ? 2 : 0); }
bool aligned16(const void* address) { return (reinterpret_cast<uintptr_t>(address) & 15u) == 0; }

}  // namespace

struct Executable::Impl {
  plan::Plan plan;
  std::shared_ptr<KernelProvider> kernels;
  Tables tables;
  // One entry per kernel and variant, filled on first use: the provider is asked once.
  std::unique_ptr<std::atomic<const LoadedKernel*>[]> loaded;
  size_t most_rank = 0;
  size_t scratch = 0;  // bytes of CallMemory that a call takes

  Impl(plan::Plan the_plan, std::shared_ptr<KernelProvider> the_kernels, Host& host)
      : plan(std::move(the_plan)),
        kernels(std::move(the_kernels)),
        tables(build_tables(plan, host)),
        loaded(new std::atomic<const LoadedKernel*>[plan.kernels.size() * kVariants]()) {
    for (const BufferRecord& buffer : tables.buffers) most_rank = std::max<size_t>(most_rank, buffer.geometry.rank);
    // A result that the plan does not allocate is compared with its declared sizes and strides.
    tables.most_dims += 2 * most_rank;
    scratch = CallMemory::bytes_for<int64_t>(tables.program.workspace_size()) +
              CallMemory::bytes_for<void*>(tables.buffers.size()) + CallMemory::bytes_for<void*>(tables.most_args) +
              CallMemory::bytes_for<int64_t>(tables.most_symbols) +
              2 * CallMemory::bytes_for<GroupedLaunchItem>(tables.most_launches) +
              CallMemory::bytes_for<plan::Variant>(tables.most_launches) +
              CallMemory::bytes_for<bool>(tables.conditions.size()) +
              CallMemory::bytes_for<void*>(tables.stream_devices.size()) +
              CallMemory::bytes_for<Operand>(tables.most_operands) +
              CallMemory::bytes_for<TensorView>(tables.most_results) +
              CallMemory::bytes_for<int64_t>(tables.most_dims) + 2 * CallMemory::bytes_for<int64_t>(most_rank);
  }

  const LoadedKernel& kernel(uint32_t index, plan::Variant variant) const {
    std::atomic<const LoadedKernel*>& entry = loaded[index * kVariants + static_cast<size_t>(variant_number(variant))];
    if (const LoadedKernel* found = entry.load(std::memory_order_acquire)) [[likely]]
      return *found;
    const LoadedKernel& found = kernels->get(plan::KernelId(index), variant);
    entry.store(&found, std::memory_order_release);
    return found;
  }

  // Null where another thread is still to compile it.
  const LoadedKernel* find_kernel(uint32_t index, plan::Variant variant) const {
    std::atomic<const LoadedKernel*>& entry = loaded[index * kVariants + static_cast<size_t>(variant_number(variant))];
    if (const LoadedKernel* found = entry.load(std::memory_order_acquire)) [[likely]]
      return found;
    const LoadedKernel* found = kernels->find(plan::KernelId(index), variant);
    if (found) entry.store(found, std::memory_order_release);
    return found;
  }

  struct Kernels {
    const Impl& impl;
    const LoadedKernel& get(uint32_t kernel, plan::Variant variant) const { return impl.kernel(kernel, variant); }
    const LoadedKernel* find(uint32_t kernel, plan::Variant variant) const { return impl.find_kernel(kernel, variant); }
  };
};

namespace {

// The state of one call. Kernels: get(kernel, variant) and find(kernel, variant) as KernelProvider has them.
template <class Kernels>
class Call {
 public:
  Call(const plan::Plan& plan, const Tables& tables, const Kernels& kernels, Host& host, size_t scratch_bytes,
       size_t most_rank)
      : plan_(plan),
        tables_(tables),
        kernels_(kernels),
        host_(host),
        memory_(scratch_bytes),
        tensors_(tables.buffers.size() + tables.arenas.size()) {
    values_ = memory_.take<int64_t>(tables.program.workspace_size());
    addresses_ = memory_.take<void*>(tables.buffers.size());
    args_ = memory_.take<void*>(tables.most_args);
    symbols_ = memory_.take<int64_t>(tables.most_symbols);
    items_ = memory_.take<GroupedLaunchItem>(tables.most_launches);
    alike_ = memory_.take<GroupedLaunchItem>(tables.most_launches);
    variants_ = memory_.take<plan::Variant>(tables.most_launches);
    holds_ = memory_.take<bool>(tables.conditions.size());
    streams_ = memory_.take<void*>(tables.stream_devices.size());
    operands_ = memory_.take<Operand>(tables.most_operands);
    destinations_ = memory_.take<TensorView>(tables.most_results);
    dims_ = memory_.take<int64_t>(tables.most_dims);
    sizes_ = memory_.take<int64_t>(most_rank);
    strides_ = memory_.take<int64_t>(most_rank);
  }

  void bind(std::vector<Value>& inputs, const CallOptions& options) {
    if (inputs.size() != plan_.inputs.size()) {
      throw_user_error("expected {} inputs, found {}", plan_.inputs.size(), inputs.size());
    }
    if (options.check_inputs) check_ranks_and_types(plan_, inputs);
    for (const SymbolBinding& b : tables_.bindings) {
      const Value& input = inputs[b.input];
      const auto dim = static_cast<uint32_t>(b.dim);
      values_[b.slot] = b.dim < 0      ? input.integer
                        : dim < b.rank ? input.tensor.sizes_data[dim]
                                       : input.tensor.strides_data[dim - b.rank];
    }
    if (options.check_inputs) check_symbols(plan_, tables_, inputs, values_);
    learn(0);
    if (options.check_inputs) check_geometry(plan_, tables_, inputs, values_);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (tables_.input_buffers[i] < 0) continue;
      const auto buffer = static_cast<size_t>(tables_.input_buffers[i]);
      addresses_[buffer] = inputs[i].tensor.data;
      tensors_[buffer] = std::move(inputs[i].tensor);
    }
    for (uint32_t buffer : tables_.unused_inputs) tensors_[buffer].owner.reset();
  }

  // The streams that are current now take all kernels of the call.
  void find_streams() {
    for (size_t i = 0; i < streams_.size(); ++i) streams_[i] = host_.current_stream(tables_.stream_devices[i]);
  }

  // An input that nothing uses is released at once, as bind does.
  void supply(size_t input, TensorRef tensor) {
    if (tables_.input_buffers[input] < 0) return;
    const auto buffer = static_cast<uint32_t>(tables_.input_buffers[input]);
    if (std::ranges::find(tables_.unused_inputs, buffer) != tables_.unused_inputs.end()) return;
    addresses_[buffer] = tensor.data;
    tensors_[buffer] = std::move(tensor);
  }

  void walk(size_t& step_number, size_t end) {
    for (; step_number < end; ++step_number) {
      take_arenas(tables_.steps[step_number]);
      execute(tables_.steps[step_number]);
      release(tables_.steps[step_number]);
    }
  }

  void walk(size_t& step_number, StepObserver& observer) {
    const std::vector<std::string>& names = tables_.program.symbols();
    std::vector<int64_t> symbols;
    const auto note_symbols = [&] {
      while (symbols.size() < names.size() && tables_.program.time_of(static_cast<Slot>(symbols.size())) <= moment_)
        symbols.push_back(values_[symbols.size()]);
    };
    note_symbols();
    for (size_t i = 0; i < tables_.buffers.size(); ++i) {
      const plan::Buffer::Kind kind = tables_.buffers[i].kind;
      if (kind == plan::Buffer::Kind::Standalone || kind == plan::Buffer::Kind::ExternOwned) addresses_[i] = nullptr;
    }
    const CallView view{plan_, host_, names, symbols, addresses_, tensors_};
    for (; step_number < tables_.steps.size(); ++step_number) {
      take_arenas(tables_.steps[step_number]);
      observer.before_step(view, step_number);
      execute(tables_.steps[step_number]);
      note_symbols();
      observer.after_step(view, step_number);
      release(tables_.steps[step_number]);
    }
  }

  std::vector<Value> outputs() {
    std::vector<Value> results(tables_.outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const OutputRecord& output = tables_.outputs[i];
      switch (output.kind) {
        case plan::Output::Kind::Tensor:
          results[i] = Value(output.last_use ? std::move(tensors_[output.buffer]) : tensors_[output.buffer]);
          break;
        case plan::Output::Kind::View: {
          const TensorView view = window(output.geometry, dims_);
          void* data = element_address(output.buffer, values_[output.offset]);
          results[i] = Value(host_.alias(tensors_[output.buffer], data, output.dtype, view.sizes, view.strides));
          break;
        }
        case plan::Output::Kind::Symbol:
          results[i] = Value(values_[output.symbol]);
          break;
        case plan::Output::Kind::None:
          break;
      }
    }
    return results;
  }

 private:
  void take_arenas(const StepRecord& step) {
    for (uint32_t i = step.arenas_first; i < step.arenas_first + step.arenas_count; ++i) {
      const ArenaRecord& arena = tables_.arenas[i];
      void* base = nullptr;
      if (const int64_t bytes = values_[arena.bytes]; bytes > 0)
        tensors_[tables_.buffers.size() + i].owner = host_.allocate(arena.device, bytes, &base);
      for (uint32_t b : arena.buffers) {
        addresses_[b] = static_cast<std::byte*>(base) + values_[tables_.buffers[b].arena_offset];
        place_slices(tables_.buffers[b], addresses_[b]);
      }
    }
  }

  void execute(const StepRecord& step) {
    switch (step.kind) {
      case StepRecord::Kind::Allocate:
        allocate(step.index);
        break;
      case StepRecord::Kind::Free:
        tensors_[step.index].owner.reset();
        break;
      case StepRecord::Kind::Reuse:
        reuse(tables_.reuses[step.index]);
        break;
      case StepRecord::Kind::Launch:
        launch(tables_.launches[step.index]);
        break;
      case StepRecord::Kind::GroupedLaunch:
        launch_grouped(tables_.grouped_launches[step.index]);
        break;
      case StepRecord::Kind::Extern:
        call_extern(tables_.externs[step.index]);
        break;
      case StepRecord::Kind::Read:
        read(tables_.reads[step.index]);
        break;
      case StepRecord::Kind::Assert:
        if (const AssertRecord& assertion = tables_.assertions[step.index]; values_[assertion.condition] == 0)
            [[unlikely]]
          throw FailedAssertion(assertion.message);
        break;
    }
  }

  // ---- Symbols -----------------------------------------------------------------------------------------------------

  // All symbols of the moment have their values: computes what follows from them.
  void learn(uint32_t moment) {
    moment_ = moment;
    tables_.program.run(values_, moment);
    for (uint32_t i : tables_.moments[moment].conditions) {
      const std::vector<Property>& condition = tables_.conditions[i];
      holds_[i] = std::all_of(condition.begin(), condition.end(), [&](const Property& property) {
        const int64_t value = values_[property.symbol];
        return property.range.low <= value && value <= property.range.high && value % property.divisor == 0;
      });
    }
  }

  void define(const DefinitionRecord& definition, int64_t value) {
    if (value < definition.range.low || value > definition.range.high || value % definition.divisor != 0) [[unlikely]]
      reject_definition(tables_.program.symbols()[definition.slot], definition, value);
    values_[definition.slot] = value;
  }

  void read(const ReadRecord& record) {
    define(tables_.moments[record.moment].definitions[0], host_.read_integer(operand_view(record.from, dims_)));
    learn(record.moment);
  }

  // Whether sizes or strides depend on symbols that steps define.
  bool is_data(Geometry geometry) const {
    const auto slots = std::span(tables_.dims).subspan(geometry.first, 2 * geometry.rank);
    return std::ranges::any_of(slots, [this](Slot slot) { return tables_.program.time_of(slot) > 0; });
  }

  void define_by_results(const ExternRecord& record, std::span<const TensorRef> results) {
    for (const DefinitionRecord& definition : tables_.moments[record.moment].definitions) {
      const TensorRef& result = results[static_cast<size_t>(definition.result)];
      const auto dim = static_cast<uint32_t>(definition.dim);
      if (!result.owner || dim >= 2 * result.rank)
        throw_internal("{} returned result {} with {} dimensions, the plan reads {} off dimension {}", record.name,
                       definition.result, result.rank, tables_.program.symbols()[definition.slot], dim);
      define(definition, dim < result.rank ? result.sizes_data[dim] : result.strides_data[dim - result.rank]);
    }
    learn(record.moment);
  }

  void release(const StepRecord& step) {
    for (uint32_t i = 0; i < step.releases_count; ++i)
      tensors_[tables_.releases[step.releases_first + i]].owner.reset();
  }

  void* element_address(uint32_t buffer, int64_t offset) const {
    return static_cast<std::byte*>(addresses_[buffer]) + offset * byte_size(tables_.buffers[buffer].dtype);
  }

  // Sizes and strides evaluated into `to`, which holds at least 2 * rank values.
  TensorView window(Geometry geometry, std::span<int64_t> to) const {
    for (uint32_t d = 0; d < 2 * geometry.rank; ++d) to[d] = values_[tables_.dims[geometry.first + d]];
    TensorView view;
    view.sizes = to.subspan(0, geometry.rank);
    view.strides = to.subspan(geometry.rank, geometry.rank);
    return view;
  }

  TensorView buffer_view(uint32_t buffer, std::span<int64_t> to) const {
    const BufferRecord& record = tables_.buffers[buffer];
    TensorView view = window(record.geometry, to);
    view.data = addresses_[buffer];
    view.dtype = record.dtype;
    view.device = record.device;
    view.base = tensors_[buffer].owner ? &tensors_[buffer] : nullptr;
    view.whole = view.base != nullptr;
    return view;
  }

  void allocate(uint32_t buffer) {
    const BufferRecord& record = tables_.buffers[buffer];
    const Slot* slots = tables_.dims.data() + record.geometry.first;
    const uint32_t rank = record.geometry.rank;
    for (uint32_t d = 0; d < rank; ++d) {
      sizes_[d] = values_[slots[d]];
      strides_[d] = values_[slots[rank + d]];
    }
    tensors_[buffer] = host_.empty_strided(record.dtype, record.device, sizes_.first(rank), strides_.first(rank));
    addresses_[buffer] = tensors_[buffer].data;
    place_slices(record, addresses_[buffer]);
  }

  void place_slices(const BufferRecord& root, void* address) {
    for (uint32_t p = root.slices_first; p < root.slices_first + root.slices_count; ++p) {
      const SliceRecord& slice = tables_.slices[p];
      addresses_[slice.buffer] = static_cast<std::byte*>(address) + values_[slice.offset] * byte_size(root.dtype);
    }
  }

  void reuse(const ReuseRecord& record) {
    const BufferRecord& to = tables_.buffers[record.to];
    if (to.kind == plan::Buffer::Kind::Arena) return;  // the same place
    const TensorView view = window(to.geometry, dims_);
    TensorRef tensor = std::move(tensors_[record.from]);
    const bool alone = host_.reuse_storage(tensor, to.dtype, view.sizes, view.strides);
    // Temporaries have no other owner; inputs and results of externs may have one.
    if (!alone && tables_.buffers[record.from].kind != plan::Buffer::Kind::Standalone) {
      const TensorRef held = std::move(tensor);
      tensor = host_.empty_strided(to.dtype, to.device, view.sizes, view.strides);
      const int64_t count = values_[record.bytes] / byte_size(to.dtype), stride = 1;
      TensorView source{held.data, to.dtype, to.device, {&count, 1}, {&stride, 1}, &held, false}, target = source;
      target.data = tensor.data;
      target.base = &tensor;
      host_.copy_strided(target, source);
    }
    addresses_[record.to] = tensor.data;
    tensors_[record.to] = std::move(tensor);
  }

  // Writes the launch's arguments to the front of args and symbols.
  plan::Variant gather(const LaunchRecord& record, std::span<void*> args, std::span<int64_t> symbols) const {
    for (size_t i = 0; i < record.args.size(); ++i) args[i] = addresses_[record.args[i]];
    for (size_t i = 0; i < record.symbols.size(); ++i) symbols[i] = values_[record.symbols[i]];
    return variant_for(record, args);
  }
  plan::Variant variant_for(const LaunchRecord& record, std::span<void* const> args) const {
    plan::Variant variant;
    for (uint32_t i : record.aligned_args) variant.vectorized &= aligned16(args[i]);
    variant.index64 = record.checks_index_limit && values_[record.index_limit] >= plan::index32_limit;
    return variant;
  }

  // The launches that need the same variant together.
  void launch_grouped(const GroupedLaunchRecord& group) {
    std::span<void*> args = args_;
    std::span<int64_t> symbols = symbols_;
    size_t count = 0;
    for (uint32_t i = group.first; i < group.first + group.count; ++i) {
      const LaunchRecord& record = tables_.launches[i];
      const int64_t grid_x = values_[record.grid_x];
      if (grid_x <= 0) continue;
      variants_[count] = gather(record, args, symbols);
      items_[count++] = {args.first(record.args.size()), symbols.first(record.symbols.size()), grid_x};
      args = args.subspan(record.args.size());
      symbols = symbols.subspan(record.symbols.size());
    }
    const LaunchRecord& any = tables_.launches[group.first];
    for (int number = 0; number < kVariants; ++number) {
      size_t alike = 0;
      for (size_t i = 0; i < count; ++i)
        if (variant_number(variants_[i]) == number) alike_[alike++] = items_[i];
      if (alike == 0) continue;
      const plan::Variant variant{(number & 1) != 0, (number & 2) != 0};
      kernels_.get(any.kernel, variant).launch_grouped(host_, alike_.first(alike), stream_of(any));
    }
  }

  void launch(const LaunchRecord& record) {
    if (values_[record.grid_x] <= 0 || values_[record.grid_y] <= 0) return;
    const plan::Variant variant = gather(record, args_, symbols_);
    for (const SpecialLaunch& special : record.specializations) {
      if (!holds_[special.condition]) continue;
      const LaunchRecord& launch = tables_.launches[special.launch];
      if (variant_for(launch, args_) != plan::Variant()) continue;
      const LoadedKernel* kernel = kernels_.find(launch.kernel, plan::Variant());
      if (kernel) return start(*kernel, launch);
    }
    if (variant.vectorized || variant.index64) [[likely]]
      return start(kernels_.get(record.kernel, variant), record);
    launch_misaligned(record, variant);
  }

  void start(const LoadedKernel& kernel, const LaunchRecord& record) {
    kernel.launch(host_, args_.first(record.args.size()), symbols_.first(record.symbols.size()), values_[record.grid_x],
                  values_[record.grid_y], stream_of(record));
  }

  void* stream_of(const LaunchRecord& record) const {
    return record.stream < 0 ? nullptr : streams_[static_cast<size_t>(record.stream)];
  }

  // Until the kernel for misaligned addresses is compiled, the one for aligned ones reads copies.
  void launch_misaligned(const LaunchRecord& record, plan::Variant variant) {
    const LoadedKernel* kernel = kernels_.find(record.kernel, variant);
    if (kernel) return start(*kernel, record);
    const auto misaligned = [&](uint32_t i) { return !aligned16(args_[i]); };
    if (!std::all_of(record.aligned_args.begin(), record.aligned_args.end(),
                     [&](uint32_t i) { return !misaligned(i) || !record.written[i]; }))
      return start(kernels_.get(record.kernel, variant), record);
    std::vector<Owner> copies;
    for (const uint32_t i : record.aligned_args) {
      if (!misaligned(i)) continue;
      const BufferRecord& buffer = tables_.buffers[record.args[i]];
      const int64_t bytes = values_[buffer.bytes], count = bytes / byte_size(buffer.dtype), stride = 1;
      const TensorView from{args_[i], buffer.dtype, buffer.device, {&count, 1}, {&stride, 1}, nullptr, false};
      TensorView to = from;
      copies.push_back(host_.allocate(buffer.device, bytes, &to.data));
      host_.copy_strided(to, from);
      args_[i] = to.data;
    }
    start(kernels_.get(record.kernel, plan::Variant()), record);
  }

  // A window of the plan as the host sees it; `to` takes its geometry.
  TensorView operand_view(const OperandRecord& from, std::span<int64_t> to) const {
    TensorView view = window(from.geometry, to);
    view.data = element_address(from.buffer, values_[from.offset]);
    view.dtype = from.dtype;
    view.device = tables_.buffers[from.buffer].device;
    view.base = tensors_[from.buffer].owner ? &tensors_[from.buffer] : nullptr;
    view.whole = from.whole && view.base != nullptr;
    return view;
  }

  void call_extern(const ExternRecord& record) {
    size_t used = 0;
    for (size_t i = 0; i < record.operands.size(); ++i) {
      const OperandRecord& from = record.operands[i];
      Operand& to = operands_[i];
      to = Operand();
      if (!from.is_tensor) {
        to.integer = values_[from.integer];
        continue;
      }
      to.kind = Operand::Kind::Tensor;
      to.tensor = operand_view(from, dims_.subspan(used));
      used += 2 * from.geometry.rank;
    }
    const std::span<const Operand> operands = operands_.first(record.operands.size());
    if (record.planned_out) {
      for (size_t i = 0; i < record.results.size(); ++i) {
        const auto buffer = static_cast<uint32_t>(record.results[i]);
        destinations_[i] = buffer_view(buffer, dims_.subspan(used));
        used += 2 * tables_.buffers[buffer].geometry.rank;
      }
      record.callee->call(host_, operands, destinations_.first(record.results.size()), {});
      return;
    }
    std::vector<TensorRef> results(record.results.size());
    record.callee->call(host_, operands, {}, results);
    if (record.moment > 0) define_by_results(record, results);
    for (size_t i = 0; i < results.size(); ++i) {
      if (record.results[i] < 0) continue;
      keep_result(record, i, static_cast<uint32_t>(record.results[i]), results[i], dims_.subspan(used));
    }
  }

  // Stores what an extern returned, in the layout that the plan declares: kernels were compiled for that one.
  void keep_result(const ExternRecord& record, size_t index, uint32_t buffer, TensorRef& result,
                   std::span<int64_t> dims) {
    const BufferRecord& declared = tables_.buffers[buffer];
    const TensorView view = window(declared.geometry, dims);
    const bool elsewhere = result.device != declared.device && !record.result_on_any_device[index];
    // Of no elements, the callee's type is right: no kernel reads any, and recordings may err.
    const bool none = std::ranges::find(view.sizes, 0) != view.sizes.end();
    if (!result.owner || (result.dtype != declared.dtype && !none) || elsewhere || !std::ranges::equal(result.sizes(), view.sizes))
      reject_result(record, index, result, declared, view.sizes, is_data(declared.geometry));
    bool same = true;
    for (uint32_t d = 0; d < result.rank; ++d) same &= result.strides_data[d] == view.strides[d] || view.sizes[d] <= 1;
    if (declared.kind == plan::Buffer::Kind::ExternOwned && (same || none)) [[likely]] {
      addresses_[buffer] = result.data;
      tensors_[buffer] = std::move(result);
      return;
    }
    if (record.result_aliases[index]) reject_strides(record, index, result, view.strides);
    if (declared.kind == plan::Buffer::Kind::ExternOwned) {
      tensors_[buffer] = host_.empty_strided(declared.dtype, declared.device, view.sizes, view.strides);
      addresses_[buffer] = tensors_[buffer].data;
    }
    TensorView to = view;
    to.data = addresses_[buffer];
    to.dtype = declared.dtype;
    to.device = declared.device;
    to.base = tensors_[buffer].owner ? &tensors_[buffer] : nullptr;
    to.whole = to.base != nullptr;
    host_.copy_strided(to, {result.data, result.dtype, result.device, result.sizes(), result.strides(), &result, true});
  }

  const plan::Plan& plan_;
  const Tables& tables_;
  const Kernels& kernels_;
  Host& host_;
  CallMemory memory_;
  std::vector<TensorRef> tensors_;  // for each buffer, empty for those in an arena; then for each arena, owners alone
  std::span<int64_t> values_;
  std::span<void*> addresses_;
  std::span<void*> streams_;  // of Tables::stream_devices
  std::span<void*> args_;
  std::span<int64_t> symbols_;
  std::span<GroupedLaunchItem> items_, alike_;
  std::span<plan::Variant> variants_;
  std::span<bool> holds_;  // Tables::conditions
  uint32_t moment_ = 0;    // the latest whose symbols are known
  std::span<Operand> operands_;
  std::span<TensorView> destinations_;
  std::span<int64_t> dims_, sizes_, strides_;
};

// Steps from `step` to `end`; `step` is then `end`, or the one that failed.
template <class Kernels>
void run_steps(Call<Kernels>& call, const plan::Plan& plan, size_t& step, size_t end, const CallOptions& options) {
  try {
    if (options.observer) [[unlikely]]
      call.walk(step, *options.observer);
    else
      call.walk(step, end);
  } catch (const Error& error) {
    rethrow_with_step(error, plan, step);
  } catch (...) {
    if (options.written) *options.written = written_inputs(plan, step);
    throw;
  }
}

template <class Kernels>
class CallInParts final : public PartialCall {
 public:
  CallInParts(const plan::Plan& plan, const Tables& tables, const Kernels& kernels, Host& host, size_t scratch, size_t most_rank,
              std::vector<Value> inputs)
      : plan_(plan), kernels_(kernels), call_(plan, tables, kernels_, host, scratch, most_rank) {
    call_.bind(inputs, {.check_inputs = false});
    call_.find_streams();
  }
  void supply(size_t input, TensorRef tensor) override { call_.supply(input, std::move(tensor)); }
  void advance(size_t end) override { run_steps(call_, plan_, step_, end, {}); }
  std::vector<Value> finish() override {
    advance(plan_.steps.size());
    return call_.outputs();
  }

 private:
  const plan::Plan& plan_;
  const Kernels kernels_;
  Call<Kernels> call_;
  size_t step_ = 0;
};

}  // namespace

Executable::Executable(plan::Plan plan, std::shared_ptr<KernelProvider> kernels, Host& host)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(kernels), host)) {}
Executable::~Executable() = default;

const plan::Plan& Executable::plan() const { return impl_->plan; }

std::vector<Value> Executable::run(Host& host, std::vector<Value> inputs, const CallOptions& options) const {
  const Impl::Kernels kernels{*impl_};
  Call<Impl::Kernels> call(impl_->plan, impl_->tables, kernels, host, impl_->scratch, impl_->most_rank);
  call.bind(inputs, options);
  inputs.clear();
  call.find_streams();
  size_t step = 0;
  run_steps(call, impl_->plan, step, impl_->plan.steps.size(), options);
  return call.outputs();
}

std::unique_ptr<PartialCall> Executable::begin(Host& host, std::vector<Value> inputs) const {
  return std::make_unique<CallInParts<Impl::Kernels>>(impl_->plan, impl_->tables, Impl::Kernels{*impl_}, host, impl_->scratch,
                                                      impl_->most_rank, std::move(inputs));
}

}  // namespace cxxinductor::runtime

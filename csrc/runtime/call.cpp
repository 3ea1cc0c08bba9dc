#include "runtime/call.h"

#include <algorithm>

#include "runtime/failed_check.h"
#include "support/error.h"

namespace cxxinductor::runtime {

size_t Call::scratch_bytes(const Tables& tables, size_t most_rank) {
  return CallMemory::bytes_for<int64_t>(tables.program.workspace_size()) + CallMemory::bytes_for<void*>(tables.buffers.size()) +
         CallMemory::bytes_for<void*>(tables.arenas.size()) + CallMemory::bytes_for<void*>(tables.most_args) +
         CallMemory::bytes_for<int64_t>(tables.most_symbols) + 2 * CallMemory::bytes_for<LaunchArgs>(tables.most_launches) +
         CallMemory::bytes_for<plan::Variant>(tables.most_launches) + CallMemory::bytes_for<bool>(tables.conditions.size()) +
         CallMemory::bytes_for<void*>(tables.stream_devices.size()) + CallMemory::bytes_for<Operand>(tables.most_operands) +
         CallMemory::bytes_for<TensorView>(tables.most_results) + CallMemory::bytes_for<int64_t>(tables.most_dims) +
         2 * CallMemory::bytes_for<int64_t>(most_rank);
}

Call::Call(const plan::Plan& plan, const Tables& tables, const KernelTable& kernels, Host& host, size_t scratch, size_t most_rank)
    : plan_(plan), tables_(tables), kernels_(kernels), host_(host), memory_(scratch), tensors_(tables.buffers.size() + tables.arenas.size()) {
  values_ = memory_.take<int64_t>(tables.program.workspace_size());
  addresses_ = memory_.take<void*>(tables.buffers.size());
  arena_addresses_ = memory_.take<void*>(tables.arenas.size());
  args_ = memory_.take<void*>(tables.most_args);
  symbols_ = memory_.take<int64_t>(tables.most_symbols);
  items_ = memory_.take<LaunchArgs>(tables.most_launches);
  alike_ = memory_.take<LaunchArgs>(tables.most_launches);
  variants_ = memory_.take<plan::Variant>(tables.most_launches);
  holds_ = memory_.take<bool>(tables.conditions.size());
  streams_ = memory_.take<void*>(tables.stream_devices.size());
  operands_ = memory_.take<Operand>(tables.most_operands);
  destinations_ = memory_.take<TensorView>(tables.most_results);
  dims_ = memory_.take<int64_t>(tables.most_dims);
  sizes_ = memory_.take<int64_t>(most_rank);
  strides_ = memory_.take<int64_t>(most_rank);
}

void Call::bind(std::vector<Value>& inputs, const CallOptions& options) {
  if (inputs.size() != plan_.inputs.size()) {
    throw_user_error("expected {} inputs, found {}", plan_.inputs.size(), inputs.size());
  }
  if (options.check_inputs) check_ranks_and_types(plan_, inputs);
  for (const SymbolBinding& b : tables_.bindings) {
    const Value& input = inputs[b.input];
    const auto dim = static_cast<uint32_t>(b.dim);
    values_[b.slot] = b.dim < 0 ? input.integer : dim < b.rank ? input.tensor.sizes_data[dim] : input.tensor.strides_data[dim - b.rank];
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

void Call::find_streams() {
  for (size_t i = 0; i < streams_.size(); ++i) streams_[i] = host_.current_stream(tables_.stream_devices[i]);
}

void Call::supply(size_t input, TensorRef tensor) {
  if (tables_.input_buffers[input] < 0) return;
  const auto buffer = static_cast<uint32_t>(tables_.input_buffers[input]);
  if (std::ranges::find(tables_.unused_inputs, buffer) != tables_.unused_inputs.end()) return;
  addresses_[buffer] = tensor.data;
  tensors_[buffer] = std::move(tensor);
}

void Call::walk(size_t& step_number, size_t end) {
  for (; step_number < end; ++step_number) {
    take_arenas(tables_.steps[step_number]);
    execute(tables_.steps[step_number]);
    release(tables_.steps[step_number]);
  }
}

void Call::walk(size_t& step_number, StepObserver& observer) {
  const std::vector<std::string>& names = tables_.program.symbols();
  std::vector<int64_t> symbols;
  const auto note_symbols = [&] {
    while (symbols.size() < names.size() && tables_.program.time_of(static_cast<Slot>(symbols.size())) <= moment_) symbols.push_back(values_[symbols.size()]);
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

std::vector<Value> Call::outputs() {
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

void Call::take_arenas(const StepRecord& step) {
  for (uint32_t i = step.arenas_first; i < step.arenas_first + step.arenas_count; ++i)
    if (!tensors_[tables_.buffers.size() + i].owner) take_arena(i);
}

void Call::take_arena(uint32_t arena) {
  void* base = nullptr;
  const ArenaRecord& record = tables_.arenas[arena];
  if (const int64_t bytes = values_[record.bytes]; bytes > 0) tensors_[tables_.buffers.size() + arena].owner = host_.allocate(record.device, bytes, &base);
  place_arena(arena, base);
}

void Call::place_arena(uint32_t arena, void* base) {
  arena_addresses_[arena] = base;
  for (uint32_t b : tables_.arenas[arena].buffers) {
    addresses_[b] = static_cast<std::byte*>(base) + values_[tables_.buffers[b].arena_offset];
    place_slices(tables_.buffers[b], addresses_[b]);
  }
}

void Call::execute(const StepRecord& step) {
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
      if (const AssertRecord& assertion = tables_.assertions[step.index]; values_[assertion.condition] == 0) [[unlikely]]
        throw FailedAssertion(assertion.message);
      break;
  }
}

// ---- Symbols -----------------------------------------------------------------------------------------------------

// All symbols of the moment have their values: computes what follows from them.
void Call::learn(uint32_t moment) {
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

void Call::define(const DefinitionRecord& definition, int64_t value) {
  if (value < definition.range.low || value > definition.range.high || value % definition.divisor != 0) [[unlikely]]
    reject_definition(tables_.program.symbols()[definition.slot], definition, value);
  values_[definition.slot] = value;
}

void Call::read(const ReadRecord& record) {
  define(tables_.moments[record.moment].definitions[0], host_.read_integer(operand_view(record.from, dims_)));
  learn(record.moment);
}

// Whether sizes or strides depend on symbols that steps define.
bool Call::is_data(Geometry geometry) const {
  const auto slots = std::span(tables_.dims).subspan(geometry.first, 2 * geometry.rank);
  return std::ranges::any_of(slots, [this](Slot slot) { return tables_.program.time_of(slot) > 0; });
}

void Call::define_by_results(const ExternRecord& record, std::span<const TensorRef> results) {
  for (const DefinitionRecord& definition : tables_.moments[record.moment].definitions) {
    const TensorRef& result = results[static_cast<size_t>(definition.result)];
    const auto dim = static_cast<uint32_t>(definition.dim);
    if (!result.owner || dim >= 2 * result.rank)
      throw_internal("{} returned result {} with {} dimensions, the plan reads {} off dimension {}", record.name, definition.result, result.rank,
                     tables_.program.symbols()[definition.slot], dim);
    define(definition, dim < result.rank ? result.sizes_data[dim] : result.strides_data[dim - result.rank]);
  }
  learn(record.moment);
}

void Call::release(const StepRecord& step) {
  for (uint32_t i = 0; i < step.releases_count; ++i) tensors_[tables_.releases[step.releases_first + i]].owner.reset();
}

void* Call::element_address(uint32_t buffer, int64_t offset) const {
  return static_cast<std::byte*>(addresses_[buffer]) + offset * byte_size(tables_.buffers[buffer].dtype);
}

// Sizes and strides evaluated into `to`, which holds at least 2 * rank values.
TensorView Call::window(Geometry geometry, std::span<int64_t> to) const {
  for (uint32_t d = 0; d < 2 * geometry.rank; ++d) to[d] = values_[tables_.dims[geometry.first + d]];
  TensorView view;
  view.sizes = to.subspan(0, geometry.rank);
  view.strides = to.subspan(geometry.rank, geometry.rank);
  return view;
}

TensorView Call::buffer_view(uint32_t buffer, std::span<int64_t> to) const {
  const BufferRecord& record = tables_.buffers[buffer];
  TensorView view = window(record.geometry, to);
  view.data = addresses_[buffer];
  view.dtype = record.dtype;
  view.device = record.device;
  view.base = tensors_[buffer].owner ? &tensors_[buffer] : nullptr;
  view.whole = view.base != nullptr;
  return view;
}

void Call::allocate(uint32_t buffer) {
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

void Call::place_slices(const BufferRecord& root, void* address) {
  for (uint32_t p = root.slices_first; p < root.slices_first + root.slices_count; ++p) {
    const SliceRecord& slice = tables_.slices[p];
    addresses_[slice.buffer] = static_cast<std::byte*>(address) + values_[slice.offset] * byte_size(root.dtype);
  }
}

void Call::reuse(const ReuseRecord& record) {
  const BufferRecord& to = tables_.buffers[record.to];
  if (to.kind == plan::Buffer::Kind::Arena) return;  // the same place
  const TensorView view = window(to.geometry, dims_);
  TensorRef tensor = std::move(tensors_[record.from]);
  // Temporaries have no other owner; inputs and results of externs may have one.
  const bool is_temporary = tables_.buffers[record.from].kind == plan::Buffer::Kind::Standalone;
  const auto is_laid_out_alike = [&] {
    return tensor.dtype == to.dtype && std::ranges::equal(view.sizes, tensor.sizes()) && std::ranges::equal(view.strides, tensor.strides());
  };
  const bool stays = is_temporary && is_laid_out_alike();
  const bool alone = stays || host_.reuse_storage(tensor, to.dtype, view.sizes, view.strides);
  if (!alone && !is_temporary) {
    const TensorRef held = std::move(tensor);
    tensor = host_.empty_strided(to.dtype, to.device, view.sizes, view.strides);
    const int64_t count = values_[record.bytes] / byte_size(to.dtype), stride = 1;
    TensorView source{held.data, to.dtype, to.device, {&count, 1}, {&stride, 1}, &held, false}, target = source;
    target.data = tensor.data;
    target.base = &tensor;
    host_.copy_strided(target, source);
    // Recordings know both by the number of the first (CallMemoryUse).
    if (tables_.buffers[record.from].kind == plan::Buffer::Kind::ExternOwned) addresses_[record.from] = tensor.data;
  }
  addresses_[record.to] = tensor.data;
  tensors_[record.to] = std::move(tensor);
}

}  // namespace cxxinductor::runtime

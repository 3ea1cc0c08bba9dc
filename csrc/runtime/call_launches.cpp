// Launches of a call: variants, specializations, groups.
#include <algorithm>

#include "ir/plan/index_width.h"
#include "runtime/call.h"
#include "support/error.h"

namespace cxxinductor::runtime {
namespace {
bool aligned16(const void* address) { return (reinterpret_cast<uintptr_t>(address) & 15u) == 0; }
}  // namespace

// Writes the launch's arguments to the front of args and symbols.
plan::Variant Call::gather(const LaunchRecord& record, std::span<void*> args, std::span<int64_t> symbols) const {
  for (size_t i = 0; i < record.args.size(); ++i) args[i] = addresses_[record.args[i]];
  for (size_t i = 0; i < record.symbols.size(); ++i) symbols[i] = values_[record.symbols[i]];
  return variant_for(record, args);
}
plan::Variant Call::variant_for(const LaunchRecord& record, std::span<void* const> args) const {
  plan::Variant variant;
  for (uint32_t i : record.aligned_args) variant.vectorized &= aligned16(args[i]);
  variant.index64 = record.checks_index_limit && values_[record.index_limit] >= plan::index32_limit;
  return variant;
}

// The launches that need the same variant together.
void Call::launch_grouped(const GroupedLaunchRecord& group) {
  std::span<void*> args = args_;
  std::span<int64_t> symbols = symbols_;
  size_t count = 0;
  for (uint32_t i = group.first; i < group.first + group.count; ++i) {
    const LaunchRecord& record = tables_.launches[i];
    const int64_t grid_x = values_[record.grid_x];
    if (grid_x <= 0) continue;
    variants_[count] = gather(record, args, symbols);
    items_[count++] = {args.first(record.args.size()), symbols.first(record.symbols.size()), {grid_x}};
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

void Call::launch(const LaunchRecord& record) {
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

void Call::start(const LoadedKernel& kernel, const LaunchRecord& record) {
  kernel.launch(host_, {args_.first(record.args.size()), symbols_.first(record.symbols.size()), {values_[record.grid_x], values_[record.grid_y]}},
                stream_of(record));
}

void* Call::stream_of(const LaunchRecord& record) const { return record.stream < 0 ? nullptr : streams_[static_cast<size_t>(record.stream)]; }

// Until the kernel for misaligned addresses is compiled, the one for aligned ones reads copies.
void Call::launch_misaligned(const LaunchRecord& record, plan::Variant variant) {
  const LoadedKernel* kernel = kernels_.find(record.kernel, variant);
  if (kernel) return start(*kernel, record);
  const auto misaligned = [&](uint32_t i) { return !aligned16(args_[i]); };
  if (!std::all_of(record.aligned_args.begin(), record.aligned_args.end(), [&](uint32_t i) { return !misaligned(i) || !record.written[i]; }))
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

}  // namespace cxxinductor::runtime

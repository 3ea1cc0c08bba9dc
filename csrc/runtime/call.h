// The state of one call of an executable: symbols, addresses and tensors of the plan's buffers, and the steps that change them.
// Internal to the runtime.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/call_memory.h"
#include "runtime/executable.h"
#include "runtime/executable_tables.h"
#include "runtime/graphs/dependencies.h"
#include "runtime/graphs/graph_cache.h"
#include "runtime/kernel_table.h"

namespace cxxinductor::runtime {

class Call {
 public:
  // Bytes of CallMemory that a call takes; `tables` with most_dims large enough for any buffer's sizes and strides.
  static size_t scratch_bytes(const Tables& tables, size_t most_rank);

  Call(const plan::Plan& plan, const Tables& tables, const KernelTable& kernels, Host& host, size_t scratch, size_t most_rank);

  void bind(std::vector<Value>& inputs, const CallOptions& options);
  // The streams that are current now take all kernels of the call.
  void find_streams();
  // An input that nothing uses is released at once, as bind does.
  void supply(size_t input, TensorRef tensor);
  // Runs the steps from `step` to `end`; `step` is then `end`, or the one that failed.
  void walk(size_t& step, size_t end);
  void walk(size_t& step, StepObserver& observer);
  // All steps, with recordings in place of those in the stretches of the set.
  void walk(size_t& step, GraphCache& graphs, GraphSet& set);
  std::vector<Value> outputs();

  // After bind and find_streams: what recordings depend on, besides the plan. See GraphCache::find.
  std::vector<int64_t> graph_key(int64_t library_settings) const;
  std::span<const int64_t> values() const { return values_; }
  // Before the first step: of each input, whether somebody but the call holds it. See Host::held_by_others.
  std::vector<bool> held_inputs() const;

 private:
  void take_arenas(const StepRecord& step);
  void take_arena(uint32_t arena);
  void place_arena(uint32_t arena, void* base);
  void execute(const StepRecord& step);
  void release(const StepRecord& step);

  // Symbols.
  void learn(uint32_t moment);
  void define(const DefinitionRecord& definition, int64_t value);
  void define_by_results(const ExternRecord& record, std::span<const TensorRef> results);
  void read(const ReadRecord& record);
  bool is_data(Geometry geometry) const;

  // Memory.
  void* element_address(uint32_t buffer, int64_t offset) const;
  TensorView window(Geometry geometry, std::span<int64_t> to) const;
  TensorView buffer_view(uint32_t buffer, std::span<int64_t> to) const;
  void allocate(uint32_t buffer);
  void place_slices(const BufferRecord& root, void* address);
  void reuse(const ReuseRecord& record);

  // Launches (call_launches.cpp).
  plan::Variant gather(const LaunchRecord& record, std::span<void*> args, std::span<int64_t> symbols) const;
  plan::Variant variant_for(const LaunchRecord& record, std::span<void* const> args) const;
  void launch(const LaunchRecord& record);
  void launch_grouped(const GroupedLaunchRecord& group);
  void launch_misaligned(const LaunchRecord& record, plan::Variant variant);
  void start(const LoadedKernel& kernel, const LaunchRecord& record);
  void* stream_of(const LaunchRecord& record) const;

  // Library calls (call_externs.cpp).
  TensorView operand_view(const OperandRecord& from, std::span<int64_t> to) const;
  // The operands, and behind them the destinations of a planned_out call; returns how many of dims_ they use.
  size_t gather_operands(const ExternRecord& record);
  void call_extern(const ExternRecord& record);
  void keep_result(const ExternRecord& record, size_t index, uint32_t buffer, TensorRef& result, std::span<int64_t> dims);

  // Recordings (call_graphs.cpp).
  void run_stretch(size_t& step, GraphCache& graphs, GraphSet& set, RecordedStretch& recorded);
  void prepare(const Stretch::Preparation& preparation);
  bool replay(GraphCache& graphs, GraphSet& set, RecordedStretch& recorded);
  bool record(GraphCache& graphs, RecordedStretch& recorded);
  std::unique_ptr<DeviceGraph> record_steps(const GraphCache& graphs, RecordedStretch& recorded, const StepRecord*& step);
  // Memory of the recording's place that a library call takes, and how much was queued by then.
  struct Allocation {
    const void* begin = nullptr;
    int64_t bytes = 0;
    size_t position = 0;
  };
  void record_call(const ExternRecord& record, RecordedStretch& recorded, const std::vector<Allocation>& allocations, std::vector<ReplacedMemory>& replaced);
  size_t address_words(const StepRecord& step) const;
  Accesses accesses_of(uint32_t step);
  void find_ranges(const Stretch& stretch);
  int64_t reach(uint32_t buffer);
  bool can_record(const Stretch& stretch);
  void refuse(GraphCache& graphs, RecordedStretch& recorded, const std::string& reason);
  static void note(GraphCache& graphs, const Stretch& stretch, const std::string& reason);
  std::vector<Stretch::Preparation> undo_results(const Stretch& stretch);
  bool take_block(GraphSet& set, RecordedStretch& recorded, Owner& owner);
  void place_block(const Stretch& stretch);
  void* address_of(MemoryNumber memory) const;

  const plan::Plan& plan_;
  const Tables& tables_;
  const KernelTable& kernels_;
  Host& host_;
  CallMemory memory_;
  std::vector<TensorRef> tensors_;  // for each buffer, empty for those in an arena; then for each arena, owners alone
  std::span<int64_t> values_;
  std::span<void*> addresses_;
  std::span<void*> arena_addresses_;
  std::span<void*> streams_;  // of Tables::stream_devices
  std::span<void*> args_;
  std::span<int64_t> symbols_;
  std::span<LaunchArgs> items_, alike_;
  std::span<plan::Variant> variants_;
  std::span<bool> holds_;  // Tables::conditions
  uint32_t moment_ = 0;    // the latest whose symbols are known
  std::span<Operand> operands_;
  std::span<TensorView> destinations_;
  std::span<int64_t> dims_, sizes_, strides_;
  // Of the stretch that runs now, in the order of Stretch::accessed.
  std::vector<MemoryRange> ranges_;
  std::vector<void*> range_addresses_;
  void* block_ = nullptr;
};

}  // namespace cxxinductor::runtime

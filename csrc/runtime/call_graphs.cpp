// Calls with recordings: the memory of a stretch is taken first, then its recording is queued as a whole at the addresses of this call.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "ir/live_ranges.h"
#include "runtime/call.h"
#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

// Recordings of a stretch that were not the same work as the one before, after which the steps that differ are not recorded any more.
constexpr int most_unlike = 3;
// Recordings of a stretch that ended with an error, after which it is not tried again. The first one may have met a lack of memory.
constexpr int most_failures = 2;

constexpr double least_saving = 0.95;  // branches are worth their forks and joins from here on

// Kernels, ours and those of libraries, are chosen by it too: recordings hold for memory of one alignment.
int64_t alignment_of(const void* address) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address) & 63u); }

bool overlap(std::span<const MemoryRange> ranges) {
  std::vector<MemoryRange> sorted;
  for (const MemoryRange& range : ranges)
    if (range.bytes > 0) sorted.push_back(range);
  std::ranges::sort(sorted, {}, &MemoryRange::begin);
  for (size_t i = 1; i < sorted.size(); ++i)
    if (static_cast<std::byte*>(sorted[i - 1].begin) + sorted[i - 1].bytes > sorted[i].begin) return true;
  return false;
}

std::span<const LaunchRecord> launches_of(const Tables& tables, const StepRecord& step) {
  const std::span<const LaunchRecord> all = tables.launches;
  if (step.kind == StepRecord::Kind::Launch) return all.subspan(step.index, 1);
  if (step.kind != StepRecord::Kind::GroupedLaunch) return {};
  const GroupedLaunchRecord& group = tables.grouped_launches[step.index];
  return all.subspan(group.first, group.count);
}

}  // namespace

std::vector<int64_t> Call::graph_key(int64_t library_settings) const {
  std::vector<int64_t> key;
  key.reserve(2 + streams_.size() + tables_.bindings.size() + tables_.input_buffers.size() / 8 + 1);
  key.push_back(static_cast<int64_t>(kernels_.provider().loads()));  // first: see GraphCache::find
  key.push_back(library_settings);
  for (void* stream : streams_) key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(stream)));
  for (const SymbolBinding& binding : tables_.bindings) key.push_back(values_[binding.slot]);
  int64_t alignments = 0;
  size_t count = 0;
  for (const int64_t buffer : tables_.input_buffers) {
    if (buffer < 0) continue;
    alignments = alignments << 8 | alignment_of(addresses_[static_cast<size_t>(buffer)]);
    if (++count % 8 == 0) key.push_back(std::exchange(alignments, 0));
  }
  key.push_back(alignments);
  return key;
}

std::vector<bool> Call::held_inputs() const {
  std::vector<size_t> positions;
  std::vector<const TensorRef*> tensors;
  for (size_t i = 0; i < tables_.input_buffers.size(); ++i) {
    if (tables_.input_buffers[i] < 0) continue;
    const TensorRef& tensor = tensors_[static_cast<size_t>(tables_.input_buffers[i])];
    if (!tensor.owner) continue;  // nothing uses it
    positions.push_back(i);
    tensors.push_back(&tensor);
  }
  const std::vector<bool> found = host_.held_by_others(tensors);
  std::vector<bool> held(tables_.input_buffers.size());
  for (size_t i = 0; i < positions.size(); ++i) held[positions[i]] = found[i];
  return held;
}

void Call::walk(size_t& step, GraphCache& graphs, GraphSet& set) {
  for (RecordedStretch& recorded : set.stretches) {
    walk(step, recorded.stretch.first);
    run_stretch(step, graphs, set, recorded);
  }
  walk(step, tables_.steps.size());
}

void Call::run_stretch(size_t& step, GraphCache& graphs, GraphSet& set, RecordedStretch& recorded) {
  const Stretch& stretch = recorded.stretch;
  Owner block;
  if (!take_block(set, recorded, block)) return walk(step, stretch.last);
  for (const Stretch::Preparation& preparation : stretch.preparations) {
    step = preparation.step;
    prepare(preparation);
  }
  step = stretch.first;
  if (!replay(graphs, set, recorded)) {
    // Kernels of another call may come between those of this one: what lies in the block needs memory of its own, as long as it is used.
    block.reset();
    const std::vector<Stretch::Preparation> late = undo_results(stretch);
    auto preparation = late.begin();
    for (; step < stretch.last; ++step) {
      const StepRecord& each = tables_.steps[step];
      for (; preparation != late.end() && preparation->step == step; ++preparation) prepare(*preparation);
      const bool ahead = each.kind == StepRecord::Kind::Extern && runs_ahead(tables_, tables_.externs[each.index]);
      if (each.kind == StepRecord::Kind::Launch || each.kind == StepRecord::Kind::GroupedLaunch || (each.kind == StepRecord::Kind::Extern && !ahead))
        execute(each);
      if (each.kind == StepRecord::Kind::Free) tensors_[each.index].owner.reset();
    }
  }
  step = stretch.last;
  for (const uint32_t buffer : stretch.given_back) tensors_[buffer].owner.reset();
}

// Gives back the memory that a replay would have for results of library calls, which return memory of their own step by step. Returns what is
// to be prepared as the steps reach it: what lies in the block, and what takes over such results.
std::vector<Stretch::Preparation> Call::undo_results(const Stretch& stretch) {
  using Kind = Stretch::Preparation::Kind;
  struct Placed {
    Stretch::Preparation preparation;
    bool in_block;
  };
  std::vector<Placed> all;
  for (const Stretch::Preparation& each : stretch.preparations) all.push_back({each, false});
  for (const Stretch::Preparation& each : stretch.block_preparations) all.push_back({each, true});
  std::ranges::stable_sort(all, {}, [](const Placed& each) { return each.preparation.step; });
  std::set<uint32_t> results;
  std::vector<Stretch::Preparation> late;
  for (const auto& [preparation, in_block] : all) {
    const ReuseRecord* const reuse = preparation.kind == Kind::Reuse ? &tables_.reuses[preparation.index] : nullptr;
    const uint32_t buffer = reuse ? reuse->to : preparation.index;
    const bool is_result = preparation.kind == Kind::Buffer && tables_.buffers[buffer].kind == plan::Buffer::Kind::ExternOwned;
    const bool takes_over_result = reuse && results.contains(reuse->from);
    if (is_result || takes_over_result) {
      results.insert(buffer);
      tensors_[buffer].owner.reset();
    }
    if (takes_over_result || (in_block && !is_result)) late.push_back(preparation);
  }
  return late;
}

// False where the stretch is not recorded. Replays are queued as a whole, so nothing comes between the kernels that use the block.
bool Call::take_block(GraphSet& set, RecordedStretch& recorded, Owner& owner) {
  const Stretch& stretch = recorded.stretch;
  std::shared_ptr<RecordingPlace> place;
  {
    const std::lock_guard lock(set.mutex);
    if (recorded.is_refused) return false;
    if (!recorded.place) recorded.place = host_.recording_place(stretch.device, streams_[stretch.stream]);
    if (!recorded.place) return false;
    place = recorded.place;
  }
  block_ = nullptr;
  if (stretch.block.bytes > 0)
    owner = stretch.block_in_scratch ? place->scratch(stretch.block.bytes, &block_) : host_.allocate(stretch.device, stretch.block.bytes, &block_);
  return true;
}

// Where buffers lie in the block, which recordings alone have to know.
void Call::place_block(const Stretch& stretch) {
  const auto at = [&](const SharedBlock::Place& place) { return static_cast<std::byte*>(block_) + place.offset; };
  const auto buffers = static_cast<MemoryNumber>(tables_.buffers.size());
  for (const SharedBlock::Place& place : stretch.block.places)
    if (place.memory >= buffers) place_arena(place.memory - buffers, at(place));
  for (const SharedBlock::Place& place : stretch.block_buffers) {
    addresses_[place.memory] = at(place);
    place_slices(tables_.buffers[place.memory], at(place));
  }
}

// Takes the memory, or makes the call that runs ahead.
void Call::prepare(const Stretch::Preparation& preparation) {
  switch (preparation.kind) {
    case Stretch::Preparation::Kind::Arena:
      if (!tensors_[tables_.buffers.size() + preparation.index].owner) take_arena(preparation.index);
      return;
    case Stretch::Preparation::Kind::Buffer:
      return allocate(preparation.index);
    case Stretch::Preparation::Kind::Reuse:
      return reuse(tables_.reuses[preparation.index]);
    case Stretch::Preparation::Kind::Call:
      return call_extern(tables_.externs[preparation.index]);
  }
}

void* Call::address_of(MemoryNumber memory) const {
  const size_t buffers = tables_.buffers.size(), arenas = tables_.arenas.size();
  return memory < buffers ? addresses_[memory] : memory < buffers + arenas ? arena_addresses_[memory - buffers] : block_;
}

// Bytes from the first element of a buffer to the end of its last one, or of its memory.
int64_t Call::reach(uint32_t buffer) {
  const BufferRecord& record = tables_.buffers[buffer];
  const TensorView view = window(record.geometry, dims_);
  int64_t last = 0;
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    if (view.sizes[d] == 0) return 0;
    last += (view.sizes[d] - 1) * view.strides[d];
  }
  return std::max((last + 1) * byte_size(record.dtype), record.kind == plan::Buffer::Kind::Input ? 0 : values_[record.bytes]);
}

void Call::find_ranges(const Stretch& stretch) {
  ranges_.clear();
  range_addresses_.clear();
  const size_t buffers = tables_.buffers.size(), arenas = tables_.arenas.size();
  for (const MemoryNumber memory : stretch.accessed) {
    range_addresses_.push_back(address_of(memory));
    ranges_.push_back({range_addresses_.back(), memory < buffers            ? reach(memory)
                                                : memory < buffers + arenas ? values_[tables_.arenas[memory - buffers].bytes]
                                                                            : stretch.block.bytes});
  }
}

// False where the steps are to run one by one.
bool Call::replay(GraphCache& graphs, GraphSet& set, RecordedStretch& recorded) {
  const Stretch& stretch = recorded.stretch;
  range_addresses_.clear();
  for (const MemoryNumber memory : stretch.accessed) range_addresses_.push_back(address_of(memory));
  const std::lock_guard lock(set.mutex);
  if (recorded.is_refused) return false;
  // Inputs are aligned as the key says, what the call allocates always alike; what other calls return may not be.
  if (recorded.graph && !std::ranges::equal(range_addresses_, recorded.addresses, {}, alignment_of, alignment_of)) {
    if (!std::exchange(recorded.had_other_alignment, true)) note(graphs, stretch, "results of calls ahead of it are not aligned alike");
    return false;
  }
  bool known = recorded.graph != nullptr;
  for (size_t r = 0; known && r < range_addresses_.size(); ++r) known = range_addresses_[r] == recorded.addresses[r] || recorded.may_move[r];
  if (!known && !record(graphs, recorded)) return false;
  size_t patched = 0;
  try {
    patched = recorded.graph->launch(range_addresses_, streams_[stretch.stream]);
  } catch (const Unsupported& error) {
    recorded.graph.reset();
    if (++recorded.failures == most_failures) refuse(graphs, recorded, error.what());
    return false;
  }
  graph_counters().replays.fetch_add(1, std::memory_order_relaxed);
  graph_counters().patched_nodes.fetch_add(static_cast<int64_t>(patched), std::memory_order_relaxed);
  for (const auto& [buffer, tensor] : recorded.constants) {
    tensors_[buffer] = tensor;
    addresses_[buffer] = tensor.data;
  }
  return true;
}

// Whether all kernels are there, so that recording neither compiles nor takes a makeshift. Another thread compiles what is not.
bool Call::can_record(const Stretch& stretch) {
  const auto is_ready = [&](const LaunchRecord& launch) {
    if (values_[launch.grid_x] <= 0 || values_[launch.grid_y] <= 0) return true;  // it is not queued
    return kernels_.find(launch.kernel, gather(launch, args_, symbols_)) != nullptr;
  };
  for (uint32_t s = stretch.first; s < stretch.last; ++s)
    if (!std::ranges::all_of(launches_of(tables_, tables_.steps[s]), is_ready)) return false;
  return true;
}

// Records the stretch anew. False, and nothing has changed, where that is not possible now, or never (RecordedStretch::is_refused).
bool Call::record(GraphCache& graphs, RecordedStretch& recorded) {
  const Stretch& stretch = recorded.stretch;
  place_block(stretch);
  find_ranges(stretch);
  if (overlap(ranges_)) {  // whose address is whose cannot be told
    if (!std::exchange(recorded.had_overlap, true)) note(graphs, stretch, "inputs share memory in some calls");
    return false;
  }
  if (!can_record(stretch) || (stretch.calls > 0 && !recorded.place->sees_allocations())) return false;
  GraphDevice* const device = kernels_.provider().graphs(stretch.device);
  if (!device) {
    refuse(graphs, recorded, "the device records nothing");
    return false;
  }
  std::unique_ptr<DeviceGraph> graph;
  std::vector<DeviceGraph::Difference> differences;
  const StepRecord* step = nullptr;
  try {
    graph = record_steps(graphs, recorded, step);
    if (recorded.graph) differences = graph->differences(*recorded.graph);
    if (!differences.empty()) {
      graph->ignore(*record_steps(graphs, recorded, step));
      differences = graph->differences(*recorded.graph);
    }
  } catch (const std::exception& error) {
    host_.drop_error();
    recorded.graph.reset();
    if (++recorded.failures < most_failures) return false;
    std::string reason = error.what();
    reason.resize(std::min(reason.size(), reason.find('\n')));
    const bool by_call = step && step->kind == StepRecord::Kind::Extern;
    if (by_call) graphs.refuse(tables_.externs[step->index].name, reason);
    refuse(graphs, recorded, by_call ? "" : reason);
    return false;
  }
  if (recorded.graph && differences.empty()) {
    for (size_t r = 0; r < range_addresses_.size(); ++r)
      if (range_addresses_[r] != recorded.addresses[r]) recorded.may_move[r] = true;
  } else {
    // The arguments of our own kernels are what they were given.
    recorded.may_move.assign(range_addresses_.size(), stretch.calls == 0);
    if (recorded.graph && ++recorded.unlike == most_unlike) {
      std::map<uint32_t, std::string> steps;
      for (const DeviceGraph::Difference& difference : differences)
        steps.emplace(recorded.steps[difference.step], "does other work when its operands move: " + difference.what);
      graphs.refuse(steps);
      refuse(graphs, recorded, "");
      return false;
    }
  }
  recorded.graph = std::move(graph);
  recorded.addresses = range_addresses_;
  return true;
}

// reason: for reports; "": the cache knows it of single steps.
void Call::refuse(GraphCache& graphs, RecordedStretch& recorded, const std::string& reason) {
  recorded.is_refused = true;
  recorded.graph.reset();
  graph_counters().refused_stretches.fetch_add(1, std::memory_order_relaxed);
  if (!reason.empty()) note(graphs, recorded.stretch, reason);
}

void Call::note(GraphCache& graphs, const Stretch& stretch, const std::string& reason) { graphs.note("a stretch: " + reason, stretch); }

// step: the one that is being recorded, for errors; null where the error is of no single one.
std::unique_ptr<DeviceGraph> Call::record_steps(const GraphCache& graphs, RecordedStretch& recorded, const StepRecord*& step) {
  const Stretch& stretch = recorded.stretch;
  std::unique_ptr<DeviceGraph> graph;
  recorded.steps.clear();
  recorded.constants.clear();
  GraphDevice& device = *kernels_.provider().graphs(stretch.device);
  std::unique_ptr<GraphRecorder> recorder;
  std::vector<Allocation> allocations;                           // of one call
  std::vector<std::pair<const StepRecord*, const void*>> taken;  // of all, where each begins
  const auto record = [&](void* stream) {
    void* const own_stream = std::exchange(streams_[stretch.stream], stream);
    try {
      recorder = device.record(stream, [&](const void* address) { return recorded.place->owns(address); });
      std::vector<ReplacedMemory> replaced;
      std::vector<Accesses> accesses;
      for (uint32_t s = stretch.first; s < stretch.last; ++s) {
        step = &tables_.steps[s];
        const bool call = step->kind == StepRecord::Kind::Extern && !runs_ahead(tables_, tables_.externs[step->index]);
        allocations.clear();
        if (call)
          record_call(tables_.externs[step->index], recorded, allocations, replaced);
        else if (step->kind == StepRecord::Kind::Launch || step->kind == StepRecord::Kind::GroupedLaunch)
          execute(*step);
        else
          continue;
        for (const Allocation& allocation : allocations) taken.emplace_back(step, allocation.begin);
        recorded.steps.push_back(s);
        recorder->note(ranges_, replaced, address_words(*step));
        replaced.clear();
        if (graphs.branches()) accesses.push_back(accesses_of(s));
      }
      // Replays would write to memory that somebody else has by then.
      for (const auto& [taker, begin] : taken) {
        step = taker;
        if (!recorded.place->owns(begin)) throw_unsupported("it takes memory that the recording does not keep");
      }
      step = nullptr;
      Dependencies order;
      bool branches = graphs.branches();
      if (branches) {
        const std::vector<bool> uses_own = recorder->uses_of_own_memory();
        for (size_t s = 0; s < accesses.size(); ++s)
          if (uses_own[s]) accesses[s].written.push_back({recorded.place.get(), 1});  // stands for that memory
        order = find_dependencies(accesses);
        const EstimatedTime time = estimate_time(accesses, order, device.bytes_per_second(), device.step_seconds());
        branches = time.in_parallel < least_saving * time.in_order;
      }
      graph = recorder->finish(branches ? &order : nullptr);
      graph_counters().recordings.fetch_add(1, std::memory_order_relaxed);
    } catch (...) {
      streams_[stretch.stream] = own_stream;
      recorder.reset();
      throw;
    }
    streams_[stretch.stream] = own_stream;
  };
  recorded.place->run(record, [&](const void* begin, int64_t bytes) {
    if (recorder) allocations.push_back({begin, bytes, recorder->position()});
  });
  return graph;
}

// Of the arguments of a step's nodes: addresses come first in those of our own kernels, launched alone or by a table (ir/plan/grouped_launch.h).
size_t Call::address_words(const StepRecord& step) const {
  if (step.kind == StepRecord::Kind::Extern) return all_words;
  const plan::Kernel& kernel = plan_.kernels[plan::KernelId(launches_of(tables_, step).front().kernel)];
  return kernel.params.size() * static_cast<size_t>(std::max<int64_t>(kernel.max_grouped, 1));
}

// What the step that was just recorded uses of the stretch's memory: whole buffers, or the parts of them that views reach.
Accesses Call::accesses_of(uint32_t step) {
  Accesses accesses;
  const auto range = [this](uint32_t buffer) { return MemoryRange{addresses_[buffer], reach(buffer)}; };
  const auto write = [&](uint32_t buffer) {
    accesses.written.push_back(range(buffer));
    // Inputs may be views of the same memory in another call.
    if (tables_.buffers[buffer].kind != plan::Buffer::Kind::Input) return;
    for (const int64_t input : tables_.input_buffers)
      if (input >= 0 && tensors_[static_cast<size_t>(input)].owner) accesses.written.push_back(range(static_cast<uint32_t>(input)));
  };
  const StepRecord& record = tables_.steps[step];
  for (const LaunchRecord& launch : launches_of(tables_, record))
    for (size_t i = 0; i < launch.args.size(); ++i) launch.written[i] ? write(launch.args[i]) : accesses.read.push_back(range(launch.args[i]));
  if (record.kind == StepRecord::Kind::Extern) {
    const ExternRecord& call = tables_.externs[record.index];
    const std::vector<uint32_t>& mutated = std::get<plan::CallExtern>(plan_.steps[step]).mutated_operands;
    for (uint32_t i = 0; i < call.operands.size(); ++i) {
      if (!call.operands[i].is_tensor) continue;
      std::ranges::find(mutated, i) != mutated.end() ? write(call.operands[i].buffer) : accesses.read.push_back(range(call.operands[i].buffer));
    }
    for (const int64_t result : call.results)
      if (result >= 0) write(static_cast<uint32_t>(result));
  }
  return accesses;
}

// What the call returns is replaced by memory that this call of the graph took: its results go back to the place at once. allocations: of
// the call, as it makes them.
void Call::record_call(const ExternRecord& record, RecordedStretch& recorded, const std::vector<Allocation>& allocations,
                       std::vector<ReplacedMemory>& replaced) {
  const size_t used = gather_operands(record);
  const std::span<const Operand> operands = operands_.first(record.operands.size());
  if (record.planned_out) return record.callee->call(host_, operands, destinations_.first(record.results.size()), {});
  std::vector<TensorRef> results(record.results.size());
  record.callee->call(host_, operands, {}, results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (record.results[i] < 0) continue;
    const auto buffer = static_cast<uint32_t>(record.results[i]);
    const BufferRecord& declared = tables_.buffers[buffer];
    TensorRef& result = results[i];
    if (result.owner && result.device != declared.device && record.result_on_any_device[i]) {
      recorded.constants.emplace_back(buffer, std::move(result));
      continue;
    }
    const TensorView view = window(declared.geometry, dims_.subspan(used));
    bool same = result.owner && result.device == declared.device && result.dtype == declared.dtype && std::ranges::equal(result.sizes(), view.sizes);
    for (uint32_t d = 0; same && d < result.rank; ++d) same = result.strides_data[d] == view.strides[d] || view.sizes[d] <= 1;
    if (!same) throw_unsupported("{} returns result {} in another layout than the plan has", record.name, i);
    // A replay gives each result memory of its own.
    const MemoryRange memory{result.data, reach(buffer)};
    const bool is_operand = std::ranges::any_of(ranges_, [&](const MemoryRange& range) { return overlap(std::array{range, memory}); });
    const bool is_shared = std::ranges::any_of(replaced, [&](const ReplacedMemory& other) { return overlap(std::array{other.memory, memory}); });
    if (is_operand || is_shared) throw_unsupported("{} returns results that share memory", record.name);
    // Until then the memory may have been the call's for something else, and that may have been larger.
    const auto taken = std::ranges::find(allocations.rbegin(), allocations.rend(), memory.begin, &Allocation::begin);
    // What the call writes behind the result would not lie in the memory that replays have for it.
    const bool is_part = taken == allocations.rend() || taken->bytes < memory.bytes || host_.storage_bytes(result) > allocated(memory.bytes);
    if (memory.bytes > 0 && is_part) throw_unsupported("{} returns a part of larger memory as result {}", record.name, i);
    const SharedBlock::Place* const place = recorded.stretch.block.find(buffer);
    const auto number = place ? block_number(tables_) : buffer;
    const auto range = std::ranges::find(recorded.stretch.accessed, number);
    CXXI_CHECK(range != recorded.stretch.accessed.end(), "{}: result {} has no memory of its own", record.name, i);
    const size_t position = memory.bytes > 0 ? taken->position : 0;
    replaced.push_back({memory, static_cast<size_t>(range - recorded.stretch.accessed.begin()), place ? place->offset : 0, position});
  }
}

}  // namespace cxxinductor::runtime

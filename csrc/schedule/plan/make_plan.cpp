// Regions become kernels, equal ones once; buffers get their places; steps stand in the order for
// memory that order.h chooses.
#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/library_ops.h"
#include "ir/live_ranges.h"
#include "ir/loops/symbols.h"
#include "ir/plan/grouped_launch.h"
#include "ir/plan/memory.h"
#include "ir/plan/text.h"
#include "schedule/fusion/score_fusion.h"
#include "schedule/plan/arena.h"
#include "schedule/plan/buffer_slices.h"
#include "schedule/plan/generalize.h"
#include "schedule/plan/grouped_launches.h"
#include "schedule/plan/in_place.h"
#include "schedule/plan/kernel.h"
#include "schedule/plan/liveness.h"
#include "schedule/plan/order.h"
#include "schedule/plan/placement.h"
#include "schedule/plan/specializations.h"
#include "schedule/plan/symbol_sources.h"
#include "schedule/schedule.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using kernels::FlatRegion;
using plan::Buffer;
using plan::Plan;
using sym::Expr;

constexpr size_t shortest_table = 32;  // launches that the table of a group has room for

// Kinds of inputs and outputs are the same list in both IRs.
static_assert(static_cast<int>(plan::Input::Kind::Opaque) == static_cast<int>(loops::ProgramInput::Kind::Opaque));
static_assert(static_cast<int>(plan::Output::Kind::None) == static_cast<int>(loops::ProgramOutput::Kind::None));

Buffer::Kind kind_of(const loops::Buffer& buffer, const BufferLiveness& liveness) {
  if (buffer.role == loops::Buffer::Role::Input) return Buffer::Kind::Input;
  if (liveness.extern_owned) return Buffer::Kind::ExternOwned;
  if (liveness.is_output || liveness.aliased_output || liveness.escapes) return Buffer::Kind::Standalone;
  return Buffer::Kind::Arena;
}

class PlanBuilder {
 public:
  PlanBuilder(const loops::Program& program, const BufferSlices& slices, const Targets& targets,
              const std::map<Device, int64_t>& eager_peaks)
      : program_(program), slices_(slices), targets_(targets), ids_(program.buffers.size()) {
    plan_.name = program.name;
    plan_.target = targets.main().name;
    plan_.devices = devices_of_program();
    plan_.assumptions = program.assumptions;
    plan_.origins = program.origins;
    for (const auto& [device, bytes] : eager_peaks)
      if (std::ranges::find(plan_.devices, device) != plan_.devices.end()) plan_.eager_peaks[device] = bytes;
  }

  Plan build() {
    map_steps();
    declare_buffers();
    reuses_ = share_memory(program_, slices_, liveness_, mapped_);
    gather_blocks();
    for (Device device : plan_.devices) place_on(device);
    add_steps();
    add_interface();
    plan_.symbols = find_symbol_sources(plan_);
    return std::move(plan_);
  }

  // By name of a region: the step of the plan that runs it.
  const std::map<std::string, size_t>& region_steps() const { return region_steps_; }

 private:
  // Buffers on one piece of memory, each in place of the one before.
  struct Block {
    std::vector<loops::BufferId> buffers;
    LiveRange range;
    // Steps before its first use that define symbols, if its size depends on some; else 0. Blocks of one number may
    // share an arena, whose size is known when it is first used.
    uint32_t definitions = 0;
  };

  template <class F>
  void each_buffer(Buffer::Kind kind, F f) {
    for (size_t b = 0; b < ids_.size(); ++b) {
      const loops::BufferId id(b);
      if (ids_[id].valid() && plan_.buffers[ids_[id]].kind == kind) f(id, liveness_[id]);
    }
  }

  // Kernels first: which steps are grouped launches decides how long buffers live. A grouped launch reuses no memory:
  // what one of its launches overwrites, another may read.
  void map_steps() {
    const size_t count = program_.steps.size();
    std::vector<StepKernel> kernels(count);
    std::vector<std::string> keys(count);
    const std::vector<bool> candidates = may_be_together(program_);
    for (size_t s = 0; s < count; ++s) {
      const auto* region = std::get_if<loops::Region>(&program_.steps[s]);
      if (!region) continue;
      const Target& target = targets_.of(region->device);
      StepKernel& step = kernels[s];
      step.flat = prepare_region(program_, *region, target, program_.assumptions);
      if (candidates[s]) step.sized = build_sized_kernel(program_, step.flat, target);
      if (!step.sized) step.exact = build_kernel(program_, step.flat, target);
      if (candidates[s]) keys[s] = grouping_key(step.for_grouping().kernel);
    }
    groups_ = group_steps(program_, keys, slices_);
    liveness_ = infer_liveness(program_, times_of(program_, groups_), slices_);
    mapped_.resize(groups_.size());
    grouped_launches_.resize(groups_.size());
    for (size_t t = 0; t < groups_.size(); ++t) {
      StepKernel& first = kernels[groups_[t].front()];
      if (groups_[t].size() > 1) {
        for (size_t s : groups_[t]) grouped_launches_[t].push_back(std::move(kernels[s].for_grouping()));
      } else if (const auto* region = std::get_if<loops::Region>(&program_.steps[groups_[t].front()])) {
        const Target& target = targets_.of(region->device);
        mapped_[t] = first.exact ? std::move(*first.exact) : build_kernel(program_, std::move(first.flat), target);
        add_specializations(program_, *region, target, *mapped_[t]);
      }
    }
  }

  // Kernels with the same key run as one grouped launch; empty: never in one.
  static std::string grouping_key(plan::Kernel kernel) {
    if (!traits(kernel.mapping).grouped || plan::grouped_capacity(kernel) < 2) return "";
    kernel.name = kernel.region.name = "k";
    kernel.bytes_read_hint = kernel.bytes_written_hint = 0;
    return plan::print(kernel);
  }

  // The main one first, then the others in order.
  std::vector<Device> devices_of_program() const {
    std::set<Device> others;
    for (const loops::Buffer& buffer : program_.buffers) others.insert(buffer.device);
    for (const loops::Step& step : program_.steps)
      if (const auto* region = std::get_if<loops::Region>(&step)) others.insert(region->device);
    others.erase(targets_.main_device());
    std::vector<Device> devices{targets_.main_device()};
    devices.insert(devices.end(), others.begin(), others.end());
    return devices;
  }

  void declare_buffers() {
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      loops::BufferId id(b);
      if (!liveness_[id].used) continue;
      const loops::Buffer& from = program_.buffers[id];
      Buffer buffer;
      buffer.name = from.name;
      buffer.dtype = from.dtype;
      buffer.device = from.device;
      buffer.sizes = from.sizes;
      buffer.strides = from.strides;
      buffer.bytes =
          simplify(storage_extent(from.sizes, from.strides, program_.assumptions) * byte_size(from.dtype), program_.assumptions);
      buffer.kind = kind_of(from, liveness_[id]);
      ids_[id] = plan_.buffers.push_back(std::move(buffer));
    }
    for (const auto& [id, slice] : slices_) {
      if (!ids_[id].valid()) continue;
      Buffer& buffer = plan_.buffers[ids_[id]];
      buffer.kind = Buffer::Kind::Slice;
      buffer.base = ids_[slice.base];
      buffer.base_offset = slice.offset;
    }
  }

  void gather_blocks() {
    IdVector<loops::BufferId, loops::BufferId> next(program_.buffers.size());
    for (const BufferReuse& reuse : reuses_) {
      next[reuse.from] = reuse.to;
      taken_.insert(reuse.from);
      takes_.insert(reuse.to);
    }
    const int end = static_cast<int>(groups_.size());
    const loops::Definers definers = loops::find_definers(program_);
    const std::vector<uint32_t> definitions = count_definitions();
    for (size_t b = 0; b < ids_.size(); ++b) {
      loops::BufferId id(b);
      if (!ids_[id].valid() || takes_.contains(id) || slices_.contains(id)) continue;
      Block block;
      for (; id.valid(); id = next[id]) block.buffers.push_back(id);
      const BufferLiveness &first = liveness_[block.buffers.front()], &last = liveness_[block.buffers.back()];
      const Buffer& buffer = plan_.buffers[ids_[block.buffers.front()]];
      block.range = {bytes_hint(buffer.bytes, program_.assumptions), first.first, last.last};
      if (buffer.kind == Buffer::Kind::Input) {
        block.range.first = 0;
        block.range.bytes = share_hint(buffer.dtype, buffer.sizes, buffer.strides, program_.assumptions);
      }
      const auto& symbols = buffer.bytes.free_symbols();
      if (first.first >= 0 && std::ranges::any_of(symbols, [&](Expr e) { return definers.contains(e.name()); }))
        block.definitions = definitions[static_cast<size_t>(first.first)];
      if (last.is_output || last.aliased_output) block.range.last = end;
      // What takes over the memory of another owner, or is handed out in the end, is no part of an arena.
      const bool apart = std::any_of(block.buffers.begin(), block.buffers.end(), [&](loops::BufferId member) {
        return plan_.buffers[ids_[member]].kind != Buffer::Kind::Arena;
      });
      if (apart) set_kind(block, Buffer::Kind::Standalone);
      blocks_.push_back(std::move(block));
    }
  }

  // By time: the steps before it that define symbols.
  std::vector<uint32_t> count_definitions() const {
    std::vector<uint32_t> counts;
    uint32_t count = 0;
    for (const std::vector<size_t>& group : groups_) {
      counts.push_back(count);
      const auto* call = std::get_if<loops::ExternCall>(&program_.steps[group.front()]);
      if (call && !call->defines.empty()) ++count;
    }
    return counts;
  }

  void set_kind(const Block& block, Buffer::Kind kind) {
    for (loops::BufferId id : block.buffers) {
      Buffer& buffer = plan_.buffers[ids_[id]];
      if (buffer.kind == Buffer::Kind::Arena || buffer.kind == Buffer::Kind::Standalone) buffer.kind = kind;
    }
  }

  // The arenas of a device, one for each number of definitions that some temporaries wait for.
  void place_on(Device device) {
    std::set<uint32_t> numbers;
    for (const Block& block : blocks_)
      if (kind_of_block(block) == Buffer::Kind::Arena) numbers.insert(block.definitions);
    std::vector<LiveRange> arenas;
    for (uint32_t definitions : numbers) place_on(device, definitions, arenas);
  }

  // An arena on the device besides those that are there, and which temporaries stay out of it.
  void place_on(Device device, uint32_t definitions, std::vector<LiveRange>& arenas) {
    std::vector<LiveRange> temporaries, held = arenas;
    std::vector<const Block*> owners;
    std::vector<bool> donated(program_.buffers.size(), false);
    for (const loops::ProgramInput& input : program_.inputs)
      if (input.donated) donated[input.buffer.index()] = true;
    for (const Block& block : blocks_) {
      const loops::BufferId id = block.buffers.front();
      const Buffer& buffer = plan_.buffers[ids_[id]];
      if (liveness_[block.buffers.back()].last < 0 || liveness_[id].is_alias || buffer.device != device) continue;
      if (buffer.kind == Buffer::Kind::Arena && block.definitions < definitions) continue;  // in one of the arenas
      if (buffer.kind == Buffer::Kind::Arena && block.definitions == definitions) {
        temporaries.push_back(block.range);
        owners.push_back(&block);
      } else if (buffer.kind != Buffer::Kind::Input || donated[id.index()]) {
        held.push_back(block.range);
      }
    }
    if (const auto range = place_on(device, temporaries, owners, held)) arenas.push_back(*range);
  }

  // The arena has gaps, so that its size is known only when it is laid out: the bound is lowered by what they cost.
  std::optional<LiveRange> place_on(Device device, const std::vector<LiveRange>& temporaries,
                                    const std::vector<const Block*>& owners, const std::vector<LiveRange>& held) {
    constexpr int attempts = 4;
    const auto eager = plan_.eager_peaks.find(device);
    const int64_t most = eager == plan_.eager_peaks.end() ? std::numeric_limits<int64_t>::max() : eager->second;
    plan::Arena arena{device, 0};
    LiveRange range;
    int64_t bound = most;
    for (int attempt = 0; attempt <= attempts; ++attempt) {
      const std::vector<bool> own = attempt < attempts ? choose_standalone(temporaries, held, bound)
                                                       : std::vector<bool>(temporaries.size(), true);
      std::vector<LiveRange> apart = held;
      for (size_t i = 0; i < own.size(); ++i) {
        set_kind(*owners[i], own[i] ? Buffer::Kind::Standalone : Buffer::Kind::Arena);
        if (own[i]) apart.push_back(temporaries[i]);
      }
      std::tie(arena.bytes, range.first) = lay_out_arena(owners);
      for (LiveRange& other : apart) other.bytes = allocated(other.bytes);
      range.bytes = allocated(bytes_hint(arena.bytes, program_.assumptions));
      range.last = static_cast<int>(groups_.size());
      apart.push_back(range);
      const int64_t peak = find_peak(apart).bytes;
      if (peak <= most || range.bytes == 0) break;
      bound -= peak - most;
    }
    const auto inside = [&](const Block* block) { return kind_of_block(*block) == Buffer::Kind::Arena; };
    if (std::ranges::none_of(owners, inside)) return std::nullopt;
    plan_.arenas.push_back(std::move(arena));
    return range;
  }

  Buffer::Kind kind_of_block(const Block& block) const { return plan_.buffers[ids_[block.buffers.front()]].kind; }

  // Places the blocks of the arena kind in the next arena; its bytes and first use.
  std::pair<Expr, int> lay_out_arena(const std::vector<const Block*>& blocks) {
    std::vector<ArenaRequest> requests;
    std::vector<const Block*> inside;
    int first = static_cast<int>(groups_.size());
    for (const Block* block : blocks) {
      if (kind_of_block(*block) != Buffer::Kind::Arena) continue;
      const Buffer& buffer = plan_.buffers[ids_[block->buffers.front()]];
      requests.push_back({buffer.bytes, block->range.first, block->range.last});
      inside.push_back(block);
      first = std::min(first, block->range.first);
    }
    ArenaLayout layout = plan_arena(requests);
    for (size_t r = 0; r < inside.size(); ++r)
      for (loops::BufferId id : inside[r]->buffers) {
        plan_.buffers[ids_[id]].arena = static_cast<uint32_t>(plan_.arenas.size());
        plan_.buffers[ids_[id]].arena_offset = layout.offsets[r];
      }
    return {layout.bytes, first};
  }

  // The condition of an assertion about symbols.
  static const Expr* asserted_by(const loops::ExternCall& call) {
    if (!is_call_of(call, OpFamily::Assertion)) return nullptr;
    const OperandRef* ref = find_operand_ref(call, ArgRole::Condition);
    return ref ? std::get_if<Expr>(&call.operands.at(ref->operand)) : nullptr;
  }

  // Each group of steps between what it needs and what it leaves behind.
  void add_steps() {
    std::vector<std::vector<plan::BufferId>> allocated(groups_.size()), freed(groups_.size());
    std::vector<plan::BufferId> never_written;  // outputs without elements
    each_buffer(Buffer::Kind::Standalone, [&](loops::BufferId id, const BufferLiveness& life) {
      if (takes_.contains(id)) return;
      (life.first < 0 ? never_written : allocated[static_cast<size_t>(life.first)]).push_back(ids_[id]);
    });
    for (Buffer::Kind kind : {Buffer::Kind::Standalone, Buffer::Kind::ExternOwned})
      each_buffer(kind, [&](loops::BufferId id, const BufferLiveness& life) {
        if (life.last >= 0 && !life.is_output && !life.aliased_output && !taken_.contains(id))
          freed[static_cast<size_t>(life.last)].push_back(ids_[id]);
      });
    std::vector<std::vector<plan::Reuse>> reused(groups_.size());
    for (const BufferReuse& reuse : reuses_)
      reused[reuse.step].push_back({ids_[reuse.from], ids_[reuse.to]});
    for (size_t t = 0; t < groups_.size(); ++t) {
      for (plan::BufferId id : allocated[t]) plan_.steps.emplace_back(plan::Allocate{id});
      for (const plan::Reuse& reuse : reused[t]) plan_.steps.emplace_back(reuse);
      for (size_t s : groups_[t])
        if (const auto* region = std::get_if<loops::Region>(&program_.steps[s])) region_steps_[region->name] = plan_.steps.size();
      if (!grouped_launches_[t].empty())
        add_grouped_launch(std::move(grouped_launches_[t]));
      else if (mapped_[t])
        add_launch(std::move(*mapped_[t]));
      else
        add_step(std::get<loops::ExternCall>(program_.steps[groups_[t].front()]));
      for (plan::BufferId id : freed[t]) plan_.steps.emplace_back(plan::Free{id});
    }
    for (plan::BufferId id : never_written) plan_.steps.emplace_back(plan::Allocate{id});
  }

  void add_launch(MappedKernel mapped) {
    plan::Launch launch = launch_of(mapped);
    const std::string hint = mapped.hint;
    std::vector<SpecialKernel> specializations = std::move(mapped.specializations);
    launch.kernel = intern_kernel(std::move(mapped.kernel), hint);
    for (SpecialKernel& special : specializations)
      launch.specializations.push_back(
          {intern_kernel(std::move(special.kernel), hint), std::move(special.grid_x), std::move(special.when)});
    plan_.steps.emplace_back(std::move(launch));
  }

  void add_grouped_launch(std::vector<MappedKernel> kernels) {
    plan::GroupedLaunch group;
    int64_t bytes_read = 0, bytes_written = 0;
    for (const MappedKernel& mapped : kernels) {
      bytes_read += mapped.kernel.bytes_read_hint;
      bytes_written += mapped.kernel.bytes_written_hint;
      group.launches.push_back(launch_of(mapped));
    }
    MappedKernel mapped = std::move(kernels.front());
    // As few tables as hold all launches. Several are of equal length; one alone has one of few lengths, so that groups that differ
    // in their numbers of launches alone share a kernel.
    const size_t capacity = plan::grouped_capacity(mapped.kernel);
    const size_t tables = (kernels.size() + capacity - 1) / capacity;
    const size_t length = tables > 1 ? (kernels.size() + tables - 1) / tables
                                     : std::min(std::max(shortest_table, std::bit_ceil(kernels.size())), capacity);
    mapped.kernel.max_grouped = static_cast<int>(length);
    mapped.kernel.bytes_read_hint = bytes_read / static_cast<int64_t>(tables);
    mapped.kernel.bytes_written_hint = bytes_written / static_cast<int64_t>(tables);
    const plan::KernelId kernel = intern_kernel(std::move(mapped.kernel), mapped.hint);
    for (plan::Launch& launch : group.launches) launch.kernel = kernel;
    plan_.steps.emplace_back(std::move(group));
  }

  plan::Launch launch_of(const MappedKernel& mapped) const {
    plan::Launch launch;
    launch.symbol_args = mapped.symbol_args;
    launch.grid_x = mapped.grid_x;
    launch.origin = mapped.origin;
    for (loops::BufferId arg : mapped.args) launch.args.push_back(ids_[arg]);
    return launch;
  }

  // Kernels with sizes as arguments may differ in their hints alone; the first one's stay.
  plan::KernelId intern_kernel(plan::Kernel kernel, std::string_view hint) {
    const int64_t read = std::exchange(kernel.bytes_read_hint, 0), written = std::exchange(kernel.bytes_written_hint, 0);
    kernel.name = kernel.region.name = "k";
    auto [found, is_new] = kernels_.try_emplace(plan::print(kernel), plan::KernelId(plan_.kernels.size()));
    if (is_new) {
      kernel.bytes_read_hint = read;
      kernel.bytes_written_hint = written;
      kernel.name = kernel.region.name = fmt::format("k{}_{}", plan_.kernels.size(), hint);
      plan_.kernels.push_back(std::move(kernel));
    }
    return found->second;
  }

  plan::View view_of(const loops::View& view) const {
    return {ids_[view.buffer], view.dtype, view.sizes, view.strides, view.offset};
  }

  void add_step(const loops::ExternCall& from) {
    if (from.defines.size() == 1 && from.defines[0].result < 0) {
      const loops::View& view = std::get<loops::View>(from.operands.at(0));
      plan_.steps.emplace_back(plan::ReadScalar{from.defines[0].symbol, view_of(view), from.origin});
      return;
    }
    if (const auto* condition = asserted_by(from)) {
      const Arg* argument = find_argument(from, ArgRole::Message);
      const auto* message = argument ? argument->as<std::string>() : nullptr;
      plan_.steps.emplace_back(plan::Assert{*condition, message ? *message : "Assertion is failed", from.origin});
      return;
    }
    plan::CallExtern call;
    static_cast<Call&>(call) = from;
    call.origin = from.origin;
    for (const auto& operand : from.operands) {
      if (const auto* view = std::get_if<loops::View>(&operand))
        call.operands.emplace_back(view_of(*view));
      else
        call.operands.emplace_back(std::get<Expr>(operand));
    }
    for (loops::BufferId result : from.results) call.results.push_back(ids_[result]);
    plan_.steps.emplace_back(std::move(call));
  }

  void add_interface() {
    for (const loops::ProgramInput& from : program_.inputs) {
      plan::Input input;
      input.kind = static_cast<plan::Input::Kind>(from.kind);
      if (from.kind == loops::ProgramInput::Kind::Tensor) input.buffer = ids_[from.buffer];
      input.symbol = from.symbol;
      input.source = from.source;
      input.donated = from.donated;
      plan_.inputs.push_back(std::move(input));
    }
    for (const loops::ProgramOutput& from : program_.outputs) {
      plan::Output output;
      output.kind = static_cast<plan::Output::Kind>(from.kind);
      if (from.kind == loops::ProgramOutput::Kind::Tensor) output.buffer = ids_[from.buffer];
      if (from.kind == loops::ProgramOutput::Kind::View) output.view = view_of(from.view);
      output.symbol = from.symbol;
      plan_.outputs.push_back(std::move(output));
    }
  }

  struct StepKernel {
    FlatRegion flat;
    std::optional<MappedKernel> exact;  // for the region's own extents
    std::optional<MappedKernel> sized;  // for any number of elements, where the step may be one of a grouped launch
    MappedKernel& for_grouping() { return sized ? *sized : *exact; }
  };

  const loops::Program& program_;
  const BufferSlices& slices_;
  const Targets& targets_;
  // Steps of the program in the order in which they run. Times are positions in it; several steps at one position are a
  // grouped launch.
  std::vector<std::vector<size_t>> groups_;
  IdVector<loops::BufferId, BufferLiveness> liveness_;
  IdVector<loops::BufferId, plan::BufferId> ids_;  // invalid: unused
  std::vector<std::optional<MappedKernel>> mapped_;  // by time, nothing for externs and grouped launches
  std::vector<std::vector<MappedKernel>> grouped_launches_;   // by time, empty where there is none
  std::vector<BufferReuse> reuses_;
  std::set<loops::BufferId> taken_, takes_;  // the memory of these goes to others; these get it from others
  std::vector<Block> blocks_;
  std::map<std::string, plan::KernelId> kernels_;  // by text without name
  std::map<std::string, size_t> region_steps_;
  Plan plan_;
};

// On the first device whose peaks differ.
bool needs_less(const Plan& a, const Plan& b) {
  for (Device device : a.devices)
    if (const int64_t x = plan::profile_memory(a, device).peak, y = plan::profile_memory(b, device).peak; x != y)
      return x < y;
  return false;
}

// Names regions as their kernels.
void name_kernels(std::vector<plan::MissedFusion>& missed_fusions, const Plan& plan,
                  const std::map<std::string, size_t>& region_steps) {
  for (plan::MissedFusion& missed : missed_fusions)
    for (std::string* name : {&missed.producer, &missed.consumer})
      if (const auto step = region_steps.find(*name); step != region_steps.end())
        *name = plan.kernels[plan::launches_of(plan.steps[step->second]).front().kernel].name;
}

}  // namespace

Plan make_plan(loops::Program program, const Targets& targets, const Options& options,
               std::map<Device, int64_t> eager_peaks, std::vector<plan::MissedFusion> missed_fusions) {
  std::vector<loops::Step> steps;
  for (size_t s : reorder_for_peak_memory(program)) steps.push_back(std::move(program.steps[s]));
  program.steps = std::move(steps);

  loops::Program placed = program;
  std::vector<plan::MissedFusion> copies;
  const BufferSlices slices = alias_concat_operands(placed, targets, copies);
  PlanBuilder builder(placed, slices, targets, eager_peaks);
  Plan plan = builder.build();
  std::map<std::string, size_t> region_steps = builder.region_steps();
  // What is written in place of something else counts only in finished plans.
  if (!slices.empty()) {
    const BufferSlices none;  // builders refer to theirs
    PlanBuilder without(program, none, targets, eager_peaks);
    Plan apart = without.build();
    if (needs_less(apart, plan)) {
      plan = std::move(apart);
      region_steps = without.region_steps();
      for (const auto& [id, slice] : slices)
        copies.push_back({placed.buffers[id].name, placed.buffers[slice.base].name,
                          "as a part of that, more would be held at once than before",
                          static_cast<int64_t>(FusionCosts(placed, targets).buffer_bytes(id))});
    }
  }
  if (options.generalize_kernels == "auto") generalize_kernels(plan, targets);
  // A copy may be gone, with its kernel.
  std::erase_if(missed_fusions, [&](const plan::MissedFusion& missed) {
    return !region_steps.contains(missed.producer) || !region_steps.contains(missed.consumer);
  });
  missed_fusions.insert(missed_fusions.end(), copies.begin(), copies.end());
  name_kernels(missed_fusions, plan, region_steps);
  plan.missed_fusions = std::move(missed_fusions);
  return plan;
}

}  // namespace cxxinductor::schedule

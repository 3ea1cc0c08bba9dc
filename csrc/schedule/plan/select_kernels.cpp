// Regions become kernels, equal ones once; steps stand in the order for memory that order.h chooses. Every buffer is allocated by itself:
// place_memory.cpp decides on memory.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/library_ops.h"
#include "ir/plan/grouped_launch.h"
#include "ir/plan/memory.h"
#include "ir/plan/text.h"
#include "schedule/fusion/score_fusion.h"
#include "schedule/plan/allocations.h"
#include "schedule/plan/buffer_slices.h"
#include "schedule/plan/generalize.h"
#include "schedule/plan/grouped_launches.h"
#include "schedule/plan/kernel.h"
#include "schedule/plan/kernel_table.h"
#include "schedule/plan/liveness.h"
#include "schedule/plan/order.h"
#include "schedule/plan/specializations.h"
#include "schedule/plan/symbol_sources.h"
#include "schedule/schedule.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using kernels::FlatRegion;
using plan::Plan;
using sym::Expr;

constexpr size_t shortest_table = 32;  // launches that the table of a group has room for

// Kinds of inputs and outputs are the same list in both IRs.
static_assert(static_cast<int>(plan::Input::Kind::Opaque) == static_cast<int>(loops::ProgramInput::Kind::Opaque));
static_assert(static_cast<int>(plan::Output::Kind::None) == static_cast<int>(loops::ProgramOutput::Kind::None));

class KernelSelection {
 public:
  KernelSelection(const loops::Program& program, const BufferSlices& slices, const Targets& targets)
      : program_(program), slices_(slices), targets_(targets), ids_(program.buffers.size()), kernels_(plan_) {
    plan_.name = program.name;
    plan_.target = targets.main().name;
    plan_.devices = devices_of_program();
    plan_.assumptions = program.assumptions;
    plan_.origins = program.origins;
    for (const auto& [device, bytes] : program.eager_peaks)
      if (std::ranges::find(plan_.devices, device) != plan_.devices.end()) plan_.eager_peaks[device] = bytes;
  }

  Plan build() {
    map_steps();
    declare_buffers();
    add_steps();
    add_interface();
    plan_.symbols = find_symbol_sources(plan_);
    add_allocations(plan_, infer_liveness(plan_), {});
    return std::move(plan_);
  }

  // By name of a region: when the plan runs it, counted in steps that compute.
  std::map<std::string, size_t> region_times() && { return std::move(region_times_); }

 private:
  // Kernels first: which steps are grouped launches decides when they run.
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
    const auto liveness = infer_liveness(program_, times_of(program_, groups_), slices_);
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      loops::BufferId id(b);
      if (!liveness[id].used) continue;
      const loops::Buffer& from = program_.buffers[id];
      plan::Buffer buffer;
      buffer.name = from.name;
      buffer.dtype = from.dtype;
      buffer.device = from.device;
      buffer.sizes = from.sizes;
      buffer.strides = from.strides;
      buffer.bytes = simplify(storage_extent(from.sizes, from.strides, program_.assumptions) * byte_size(from.dtype), program_.assumptions);
      const bool input = from.role == loops::Buffer::Role::Input;
      buffer.kind = input ? plan::Buffer::Kind::Input : liveness[id].extern_owned ? plan::Buffer::Kind::ExternOwned : plan::Buffer::Kind::Standalone;
      ids_[id] = plan_.buffers.push_back(std::move(buffer));
    }
    for (const auto& [id, slice] : slices_) {
      if (!ids_[id].valid()) continue;
      plan::Buffer& buffer = plan_.buffers[ids_[id]];
      buffer.kind = plan::Buffer::Kind::Slice;
      buffer.base = ids_[slice.base];
      buffer.base_offset = slice.offset;
    }
  }

  // The condition of an assertion about symbols.
  static const Expr* asserted_by(const loops::ExternCall& call) {
    if (!is_call_of(call, OpFamily::Assertion)) return nullptr;
    const OperandRef* ref = find_operand_ref(call, ArgRole::Condition);
    return ref ? std::get_if<Expr>(&call.operands.at(ref->operand)) : nullptr;
  }

  void add_steps() {
    for (size_t t = 0; t < groups_.size(); ++t) {
      for (size_t s : groups_[t])
        if (const auto* region = std::get_if<loops::Region>(&program_.steps[s])) region_times_[region->name] = t;
      if (!grouped_launches_[t].empty())
        add_grouped_launch(std::move(grouped_launches_[t]));
      else if (mapped_[t])
        add_launch(std::move(*mapped_[t]));
      else
        add_step(std::get<loops::ExternCall>(program_.steps[groups_[t].front()]));
    }
  }

  void add_launch(MappedKernel mapped) {
    plan::Launch launch = launch_of(mapped);
    const std::string hint = mapped.hint;
    std::vector<SpecialKernel> specializations = std::move(mapped.specializations);
    launch.kernel = kernels_.intern(std::move(mapped.kernel), hint);
    for (SpecialKernel& special : specializations)
      launch.specializations.push_back({kernels_.intern(std::move(special.kernel), hint), std::move(special.grid_x), std::move(special.when)});
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
    const size_t length = tables > 1 ? (kernels.size() + tables - 1) / tables : std::min(std::max(shortest_table, std::bit_ceil(kernels.size())), capacity);
    mapped.kernel.max_grouped = static_cast<int>(length);
    mapped.kernel.bytes_read_hint = bytes_read / static_cast<int64_t>(tables);
    mapped.kernel.bytes_written_hint = bytes_written / static_cast<int64_t>(tables);
    const plan::KernelId kernel = kernels_.intern(std::move(mapped.kernel), mapped.hint);
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

  plan::View view_of(const loops::View& view) const { return {ids_[view.buffer], view.dtype, view.sizes, view.strides, view.offset}; }

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
  IdVector<loops::BufferId, plan::BufferId> ids_;            // invalid: unused
  std::vector<std::optional<MappedKernel>> mapped_;          // by time, nothing for externs and grouped launches
  std::vector<std::vector<MappedKernel>> grouped_launches_;  // by time, empty where there is none
  std::map<std::string, size_t> region_times_;
  Plan plan_;
  KernelTable kernels_;
};

// On the first device whose peaks differ.
bool needs_less(const Plan& a, const Plan& b) {
  for (Device device : a.devices)
    if (const int64_t x = plan::profile_memory(a, device).peak, y = plan::profile_memory(b, device).peak; x != y) return x < y;
  return false;
}

// The launches of each step that computes, by time.
std::vector<std::span<const plan::Launch>> launches_by_time(const Plan& plan) {
  std::vector<std::span<const plan::Launch>> launches;
  for (const plan::Step& step : plan.steps)
    if (computes(step)) launches.push_back(plan::launches_of(step));
  return launches;
}

}  // namespace

SelectedKernels select_kernels(loops::Program program, const Targets& targets, std::vector<plan::MissedFusion> missed_fusions) {
  std::vector<loops::Step> steps;
  for (size_t s : reorder_for_peak_memory(program)) steps.push_back(std::move(program.steps[s]));
  program.steps = std::move(steps);

  loops::Program sliced = program;
  std::vector<plan::MissedFusion> copies;
  const BufferSlices slices = alias_concat_operands(sliced, targets, copies);
  KernelSelection selection(sliced, slices, targets);
  SelectedKernels selected{selection.build(), {}, {}};
  selected.region_times = std::move(selection).region_times();
  // What is written in place of something else counts only in finished plans.
  if (!slices.empty()) {
    const BufferSlices none;  // selections refer to theirs
    KernelSelection apart(program, none, targets);
    Plan plan = apart.build();
    if (needs_less(place_memory(plan), place_memory(selected.plan))) {
      selected.plan = std::move(plan);
      selected.region_times = std::move(apart).region_times();
      for (const auto& [id, slice] : slices)
        copies.push_back({sliced.buffers[id].name, sliced.buffers[slice.base].name, "as a part of that, more would be held at once than before",
                          static_cast<int64_t>(FusionCosts(sliced, targets).buffer_bytes(id))});
    }
  }
  // A copy may be gone, with its kernel.
  std::erase_if(missed_fusions, [&](const plan::MissedFusion& missed) {
    return !selected.region_times.contains(missed.producer) || !selected.region_times.contains(missed.consumer);
  });
  missed_fusions.insert(missed_fusions.end(), copies.begin(), copies.end());
  selected.missed_fusions = std::move(missed_fusions);
  return selected;
}

std::vector<plan::MissedFusion> name_kernels(std::vector<plan::MissedFusion> missed_fusions, const Plan& plan,
                                             const std::map<std::string, size_t>& region_times) {
  const std::vector<std::span<const plan::Launch>> launches = launches_by_time(plan);
  for (plan::MissedFusion& missed : missed_fusions)
    for (std::string* name : {&missed.producer, &missed.consumer})
      if (const auto time = region_times.find(*name); time != region_times.end()) *name = plan.kernels[launches.at(time->second).front().kernel].name;
  return missed_fusions;
}

bool merge_kernels(Plan& plan, const Targets& targets, const Options& options) {
  return options.generalize_kernels == "auto" && generalize_kernels(plan, targets);
}

}  // namespace cxxinductor::schedule

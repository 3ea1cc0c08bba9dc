// Regions become kernels, equal ones once; buffers get their places; steps keep the program's order.
#include <map>

#include "ir/plan/text.h"
#include "schedule/plan/arena.h"
#include "schedule/plan/flat_region.h"
#include "schedule/plan/kernel.h"
#include "schedule/plan/lifetimes.h"
#include "schedule/plan/placement.h"
#include "schedule/plan/symbol_sources.h"
#include "schedule/schedule.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using plan::Buffer;
using plan::Plan;
using sym::Expr;

// Kinds of inputs and outputs are the same list in both IRs.
static_assert(static_cast<int>(plan::Input::Kind::Opaque) == static_cast<int>(loops::ProgramInput::Kind::Opaque));
static_assert(static_cast<int>(plan::Output::Kind::None) == static_cast<int>(loops::ProgramOutput::Kind::None));

Buffer::Kind kind_of(const loops::Buffer& buffer, const Lifetime& lifetime, Device arena_device) {
  if (buffer.role == loops::Buffer::Role::Input) return Buffer::Kind::Input;
  if (lifetime.extern_owned) return Buffer::Kind::ExternOwned;
  if (lifetime.is_output || lifetime.aliased_output || buffer.device != arena_device) return Buffer::Kind::Own;
  return Buffer::Kind::Arena;
}

class PlanBuilder {
 public:
  PlanBuilder(const loops::Program& program, const Target& target)
      : program_(program), target_(target), lifetimes_(infer_lifetimes(program)), ids_(program.buffers.size()) {
    plan_.name = program.name;
    plan_.target = target.name;
    plan_.facts = program.facts;
    plan_.origins = program.origins;
  }

  Plan build() {
    declare_buffers();
    give_own_memory();
    place_in_arena();
    for (size_t t = 0; t < program_.steps.size(); ++t) {
      int step = static_cast<int>(t);
      each_buffer(Buffer::Kind::Own, [&](plan::BufferId id, const Lifetime& life) {
        if (life.first == step) plan_.steps.push_back(plan::Allocate{id});
      });
      std::visit([&](const auto& s) { add_step(s); }, program_.steps[t]);
      for (Buffer::Kind kind : {Buffer::Kind::Own, Buffer::Kind::ExternOwned})
        each_buffer(kind, [&](plan::BufferId id, const Lifetime& life) {
          if (life.last == step && !life.is_output && !life.aliased_output) plan_.steps.push_back(plan::Free{id});
        });
    }
    // An output that no step writes has no elements.
    each_buffer(Buffer::Kind::Own, [&](plan::BufferId id, const Lifetime& life) {
      if (life.first < 0) plan_.steps.push_back(plan::Allocate{id});
    });
    add_interface();
    plan_.symbols = find_symbol_sources(plan_);
    return std::move(plan_);
  }

 private:
  template <class F>
  void each_buffer(Buffer::Kind kind, F f) {
    for (size_t b = 0; b < ids_.size(); ++b) {
      plan::BufferId id = ids_[loops::BufferId(b)];
      if (id.valid() && plan_.buffers[id].kind == kind) f(id, lifetimes_[loops::BufferId(b)]);
    }
  }

  // The device of the first temporary of the target's kind; what lives elsewhere is allocated by itself.
  Device choose_arena_device() const {
    for (const loops::Buffer& buffer : program_.buffers)
      if (buffer.role == loops::Buffer::Role::Temporary && buffer.device.type == target_.device) return buffer.device;
    return {target_.device, 0};
  }

  void declare_buffers() {
    plan_.arena_device = choose_arena_device();
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      loops::BufferId id(b);
      if (!lifetimes_[id].used) continue;
      const loops::Buffer& from = program_.buffers[id];
      Buffer buffer;
      buffer.name = from.name;
      buffer.dtype = from.dtype;
      buffer.device = from.device;
      buffer.sizes = from.sizes;
      buffer.strides = from.strides;
      buffer.bytes =
          simplify(storage_extent(from.sizes, from.strides, program_.facts) * byte_size(from.dtype), program_.facts);
      buffer.kind = kind_of(from, lifetimes_[id], plan_.arena_device);
      ids_[id] = plan_.buffers.push_back(std::move(buffer));
    }
  }

  void give_own_memory() {
    const int steps = static_cast<int>(program_.steps.size());
    std::vector<Resident> temporaries, held, inputs;
    std::vector<plan::BufferId> owners;
    for (size_t b = 0; b < ids_.size(); ++b) {
      const plan::BufferId id = ids_[loops::BufferId(b)];
      const Lifetime& life = lifetimes_[loops::BufferId(b)];
      if (!id.valid() || life.last < 0 || plan_.buffers[id].device != plan_.arena_device) continue;
      const bool stays = life.is_output || life.aliased_output;
      Resident resident{static_cast<double>(estimate(plan_.buffers[id].bytes, program_.facts)), life.first, stays ? steps - 1 : life.last};
      if (plan_.buffers[id].kind == Buffer::Kind::Arena) {
        temporaries.push_back(resident);
        owners.push_back(id);
      } else if (plan_.buffers[id].kind == Buffer::Kind::Input) {
        resident.first = 0;
        inputs.push_back(resident);
      } else {
        held.push_back(resident);
      }
    }
    const std::vector<bool> own = choose_own_memory(temporaries, held, inputs, steps);
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i]) plan_.buffers[owners[i]].kind = Buffer::Kind::Own;
  }

  void place_in_arena() {
    std::vector<ArenaRequest> requests;
    std::vector<plan::BufferId> owners;
    each_buffer(Buffer::Kind::Arena, [&](plan::BufferId id, const Lifetime& life) {
      requests.push_back({plan_.buffers[id].bytes, life.first, life.last});
      owners.push_back(id);
    });
    ArenaLayout layout = plan_arena(requests);
    for (size_t r = 0; r < owners.size(); ++r) plan_.buffers[owners[r]].arena_offset = layout.offsets[r];
    plan_.arena_bytes = layout.bytes;
  }

  void add_step(const loops::Region& region) {
    MappedKernel mapped = build_kernel(program_, region, target_);
    plan::Launch launch;
    launch.symbol_args = mapped.symbol_args;
    launch.grid_x = mapped.grid_x;
    launch.origin = mapped.origin;
    for (loops::BufferId arg : mapped.args) launch.args.push_back(ids_[arg]);
    launch.kernel = intern_kernel(std::move(mapped));
    plan_.steps.push_back(std::move(launch));
  }

  plan::KernelId intern_kernel(MappedKernel mapped) {
    plan::Kernel& kernel = mapped.kernel;
    kernel.name = kernel.region.name = "k";
    auto [found, is_new] = kernels_.try_emplace(plan::print(kernel), plan::KernelId(plan_.kernels.size()));
    if (is_new) {
      kernel.name = kernel.region.name = fmt::format("k{}_{}", plan_.kernels.size(), mapped.hint);
      plan_.kernels.push_back(std::move(kernel));
    }
    return found->second;
  }

  plan::View view_of(const loops::View& view) const {
    return {ids_[view.buffer], view.dtype, view.sizes, view.strides, view.offset};
  }

  void add_step(const loops::ExternCall& from) {
    plan::CallExtern call;
    call.callee = from.callee;
    call.overload = from.overload;
    call.args = from.args;
    call.kwargs = from.kwargs;
    call.alias_of = from.alias_of;
    call.mutated_operands = from.mutated_operands;
    call.planned_out = from.planned_out;
    call.origin = from.origin;
    for (const auto& operand : from.operands) {
      if (const auto* view = std::get_if<loops::View>(&operand))
        call.operands.emplace_back(view_of(*view));
      else
        call.operands.emplace_back(std::get<Expr>(operand));
    }
    for (loops::BufferId result : from.results) call.results.push_back(ids_[result]);
    plan_.steps.push_back(std::move(call));
  }

  void add_interface() {
    for (const loops::ProgramInput& from : program_.inputs) {
      plan::Input input;
      input.kind = static_cast<plan::Input::Kind>(from.kind);
      if (from.kind == loops::ProgramInput::Kind::Tensor) input.buffer = ids_[from.buffer];
      input.symbol = from.symbol;
      input.source = from.source;
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

  const loops::Program& program_;
  const Target& target_;
  IdVector<loops::BufferId, Lifetime> lifetimes_;
  IdVector<loops::BufferId, plan::BufferId> ids_;  // invalid: unused
  std::map<std::string, plan::KernelId> kernels_;  // by text without name
  Plan plan_;
};

}  // namespace

Plan make_plan(const loops::Program& program, const Target& target, const Options&) {
  return PlanBuilder(program, target).build();
}

}  // namespace cxxinductor::schedule

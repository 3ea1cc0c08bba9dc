// Kernels and launches stay but for parameters that are merged; buffers get their places, in arenas, alone, or in place of others.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/live_ranges.h"
#include "schedule/plan/allocations.h"
#include "schedule/plan/arena.h"
#include "schedule/plan/in_place.h"
#include "schedule/plan/kernel_table.h"
#include "schedule/plan/placement.h"
#include "schedule/schedule.h"

namespace cxxinductor::schedule {
namespace {

using plan::Plan;
using sym::Expr;

plan::Buffer::Kind kind_of(const plan::Buffer& buffer, const BufferLiveness& liveness) {
  if (buffer.kind != plan::Buffer::Kind::Standalone) return buffer.kind;
  return liveness.is_output || liveness.aliased_output || liveness.escapes ? plan::Buffer::Kind::Standalone : plan::Buffer::Kind::Arena;
}

class MemoryPlanner {
 public:
  explicit MemoryPlanner(Plan plan) : plan_(std::move(plan)) {
    std::erase_if(plan_.steps, [](const plan::Step& step) { return !computes(step); });
    liveness_ = infer_liveness(plan_);
  }

  Plan run() {
    SharedMemory shared = share_memory(plan_, liveness_);
    for (size_t b = 0; b < plan_.buffers.size(); ++b)
      plan_.buffers[plan::BufferId(b)].kind = kind_of(plan_.buffers[plan::BufferId(b)], liveness_[plan::BufferId(b)]);
    gather_blocks(shared.reuses);
    for (Device device : plan_.devices) add_arenas(device);
    renew_kernels(shared.launches);
    add_allocations(plan_, liveness_, shared.reuses);
    return std::move(plan_);
  }

 private:
  // Buffers on one piece of memory, each in place of the one before.
  struct Block {
    std::vector<plan::BufferId> buffers;
    LiveRange range;
    // Steps before its first use that define symbols, if its size depends on some; else 0. Blocks of one number may
    // share an arena, whose size is known when it is first used.
    uint32_t definitions = 0;
  };

  int end() const { return static_cast<int>(plan_.steps.size()); }

  void gather_blocks(const std::vector<BufferReuse>& reuses) {
    IdVector<plan::BufferId, plan::BufferId> next(plan_.buffers.size());
    std::set<plan::BufferId> takes;  // these get their memory from others
    for (const BufferReuse& reuse : reuses) {
      next[reuse.from] = reuse.to;
      takes.insert(reuse.to);
    }
    const std::set<std::string, std::less<>> defined = defined_symbols();
    const std::vector<uint32_t> definitions = count_definitions();
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      plan::BufferId id(b);
      if (takes.contains(id) || plan_.buffers[id].kind == plan::Buffer::Kind::Slice) continue;
      Block block;
      for (; id.valid(); id = next[id]) block.buffers.push_back(id);
      const BufferLiveness &first = liveness_[block.buffers.front()], &last = liveness_[block.buffers.back()];
      const plan::Buffer& buffer = plan_.buffers[block.buffers.front()];
      block.range = {bytes_hint(buffer.bytes, plan_.assumptions), first.first, last.last};
      if (buffer.kind == plan::Buffer::Kind::Input) {
        block.range.first = 0;
        block.range.bytes = share_hint(buffer.dtype, buffer.sizes, buffer.strides, plan_.assumptions);
      }
      const auto& symbols = buffer.bytes.free_symbols();
      if (first.first >= 0 && std::ranges::any_of(symbols, [&](Expr e) { return defined.contains(e.name()); }))
        block.definitions = definitions[static_cast<size_t>(first.first)];
      if (last.is_output || last.aliased_output) block.range.last = end();
      // What takes over the memory of another owner, or is handed out in the end, is no part of an arena.
      const bool apart = std::ranges::any_of(block.buffers, [&](plan::BufferId member) { return plan_.buffers[member].kind != plan::Buffer::Kind::Arena; });
      if (apart) set_kind(block, plan::Buffer::Kind::Standalone);
      blocks_.push_back(std::move(block));
    }
  }

  // Symbols that the step defines.
  static std::vector<std::string> definitions_of(const plan::Step& step) {
    std::vector<std::string> symbols;
    if (const auto* read = std::get_if<plan::ReadScalar>(&step)) symbols.push_back(read->symbol);
    if (const auto* call = std::get_if<plan::CallExtern>(&step))
      for (const auto& definition : call->defines) symbols.push_back(definition.symbol);
    return symbols;
  }

  std::set<std::string, std::less<>> defined_symbols() const {
    std::set<std::string, std::less<>> defined;
    for (const plan::Step& step : plan_.steps)
      for (std::string& symbol : definitions_of(step)) defined.insert(std::move(symbol));
    return defined;
  }

  // By time: the steps before it that define symbols.
  std::vector<uint32_t> count_definitions() const {
    std::vector<uint32_t> counts;
    uint32_t count = 0;
    for (const plan::Step& step : plan_.steps) {
      counts.push_back(count);
      if (!definitions_of(step).empty()) ++count;
    }
    return counts;
  }

  void set_kind(const Block& block, plan::Buffer::Kind kind) {
    for (plan::BufferId id : block.buffers) {
      plan::Buffer& buffer = plan_.buffers[id];
      if (buffer.kind == plan::Buffer::Kind::Arena || buffer.kind == plan::Buffer::Kind::Standalone) buffer.kind = kind;
    }
  }

  // The arenas of a device, one for each number of definitions that some temporaries wait for.
  void add_arenas(Device device) {
    std::set<uint32_t> numbers;
    for (const Block& block : blocks_)
      if (kind_of_block(block) == plan::Buffer::Kind::Arena) numbers.insert(block.definitions);
    std::vector<LiveRange> arenas;
    for (uint32_t definitions : numbers) add_arena(device, definitions, arenas);
  }

  // An arena on the device besides those that are there, and which temporaries stay out of it.
  void add_arena(Device device, uint32_t definitions, std::vector<LiveRange>& arenas) {
    std::vector<LiveRange> temporaries, held = arenas;
    std::vector<const Block*> owners;
    IdVector<plan::BufferId, char> donated(plan_.buffers.size(), 0);
    for (const plan::Input& input : plan_.inputs)
      if (input.donated) donated[input.buffer] = 1;
    for (const Block& block : blocks_) {
      const plan::BufferId id = block.buffers.front();
      const plan::Buffer& buffer = plan_.buffers[id];
      if (liveness_[block.buffers.back()].last < 0 || liveness_[id].is_alias || buffer.device != device) continue;
      if (buffer.kind == plan::Buffer::Kind::Arena && block.definitions < definitions) continue;  // in one of the arenas
      if (buffer.kind == plan::Buffer::Kind::Arena && block.definitions == definitions) {
        temporaries.push_back(block.range);
        owners.push_back(&block);
      } else if (buffer.kind != plan::Buffer::Kind::Input || donated[id]) {
        held.push_back(block.range);
      }
    }
    if (const auto range = lay_out(device, temporaries, owners, held)) arenas.push_back(*range);
  }

  // The arena has gaps, so that its size is known only when it is laid out: the bound is lowered by what they cost.
  std::optional<LiveRange> lay_out(Device device, const std::vector<LiveRange>& temporaries, const std::vector<const Block*>& owners,
                                   const std::vector<LiveRange>& held) {
    constexpr int attempts = 4;
    const auto eager = plan_.eager_peaks.find(device);
    const int64_t most = eager == plan_.eager_peaks.end() ? std::numeric_limits<int64_t>::max() : eager->second;
    plan::Arena arena{device, 0};
    LiveRange range;
    int64_t bound = most;
    for (int attempt = 0; attempt <= attempts; ++attempt) {
      const std::vector<bool> own = attempt < attempts ? choose_standalone(temporaries, held, bound) : std::vector<bool>(temporaries.size(), true);
      std::vector<LiveRange> apart = held;
      for (size_t i = 0; i < own.size(); ++i) {
        set_kind(*owners[i], own[i] ? plan::Buffer::Kind::Standalone : plan::Buffer::Kind::Arena);
        if (own[i]) apart.push_back(temporaries[i]);
      }
      std::tie(arena.bytes, range.first) = lay_out_arena(owners);
      for (LiveRange& other : apart) other.bytes = allocated(other.bytes);
      range.bytes = allocated(bytes_hint(arena.bytes, plan_.assumptions));
      range.last = end();
      apart.push_back(range);
      const int64_t peak = find_peak(apart).bytes;
      if (peak <= most || range.bytes == 0) break;
      bound -= peak - most;
    }
    const auto inside = [&](const Block* block) { return kind_of_block(*block) == plan::Buffer::Kind::Arena; };
    if (std::ranges::none_of(owners, inside)) return std::nullopt;
    plan_.arenas.push_back(std::move(arena));
    return range;
  }

  plan::Buffer::Kind kind_of_block(const Block& block) const { return plan_.buffers[block.buffers.front()].kind; }

  // Places the blocks of the arena kind in the next arena; its bytes and first use.
  std::pair<Expr, int> lay_out_arena(const std::vector<const Block*>& blocks) {
    std::vector<ArenaRequest> requests;
    std::vector<const Block*> inside;
    int first = end();
    for (const Block* block : blocks) {
      if (kind_of_block(*block) != plan::Buffer::Kind::Arena) continue;
      const plan::Buffer& buffer = plan_.buffers[block->buffers.front()];
      requests.push_back({buffer.bytes, block->range.first, block->range.last});
      inside.push_back(block);
      first = std::min(first, block->range.first);
    }
    ArenaLayout layout = plan_arena(requests);
    for (size_t r = 0; r < inside.size(); ++r)
      for (plan::BufferId id : inside[r]->buffers) {
        plan_.buffers[id].arena = static_cast<uint32_t>(plan_.arenas.size());
        plan_.buffers[id].arena_offset = layout.offsets[r];
      }
    return {layout.bytes, first};
  }

  // Launches that reuse memory have kernels of their own, which may be equal again.
  void renew_kernels(std::map<size_t, LaunchInPlace>& in_place) {
    if (in_place.empty()) return;
    const IdVector<plan::KernelId, plan::Kernel> before = std::exchange(plan_.kernels, {});
    KernelTable table(plan_);
    IdVector<plan::KernelId, plan::KernelId> kept(before.size());  // of kernels as they are
    const auto intern = [&](plan::KernelId old, const plan::Kernel* changed) {
      if (changed) return table.intern(*changed, KernelTable::hint_of(before[old]));
      if (!kept[old].valid()) kept[old] = table.intern(before[old], KernelTable::hint_of(before[old]));
      return kept[old];
    };
    const auto renew = [&](plan::Launch& launch, const LaunchInPlace* changed) {
      if (changed) launch.args = changed->launch.args;
      launch.kernel = intern(launch.kernel, changed ? &changed->kernel : nullptr);
      for (size_t i = 0; i < launch.specializations.size(); ++i) {
        plan::KernelId& special = launch.specializations[i].kernel;
        special = intern(special, changed ? &changed->specializations[i] : nullptr);
      }
    };
    for (size_t time = 0; time < plan_.steps.size(); ++time) {
      const auto changed = in_place.find(time);
      if (auto* launch = std::get_if<plan::Launch>(&plan_.steps[time])) renew(*launch, changed == in_place.end() ? nullptr : &changed->second);
      if (auto* group = std::get_if<plan::GroupedLaunch>(&plan_.steps[time]))
        for (plan::Launch& launch : group->launches) renew(launch, nullptr);
    }
  }

  Plan plan_;  // without steps that allocate, until they are added
  IdVector<plan::BufferId, BufferLiveness> liveness_;
  std::vector<Block> blocks_;
};

}  // namespace

Plan place_memory(Plan plan) { return MemoryPlanner(std::move(plan)).run(); }

}  // namespace cxxinductor::schedule

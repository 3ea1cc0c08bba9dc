// Two greedy orders, from the front and from the back, compete with the one that fusion left. Each takes the step that
// changes what is alive for the better, among the few that are next in the old order: neighbours stay neighbours, since
// what was just written is still in the cache. Then single steps move across the fullest one of a device while that lowers its peak.
// Last, collectives start earlier and are waited for later, as far as that leaves the peaks where they are. No order is taken that raises
// the peak of any device; of several orders the one with the least sum of peaks is.
#include "schedule/plan/order.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "ir/callees.h"
#include "ir/live_ranges.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/plan/liveness.h"

namespace cxxinductor::schedule {
namespace {

constexpr size_t window = 64;                 // steps considered at a time
constexpr double clearly = 0.98;              // of the old order's peak, for another order of all steps
constexpr double slightly = 0.9995;           // for the move of one
constexpr size_t most_move_work = 4'000'000;  // blocks and steps looked at for moves

// Buffers that are allocated and freed together.
struct Block {
  Device device;
  int64_t bytes = 0;
  bool from_start = false;      // an input that dies
  bool to_end = false;          // returned to the caller
  std::vector<size_t> touched;  // steps, each once, ascending
};

class Ordering {
 public:
  explicit Ordering(const loops::Program& program) : program_(program), count_(program.steps.size()), blocks_of_(count_), before_(count_), after_(count_) {
    find_blocks();
    const Dependencies dependencies{loops::Program(program)};
    for (size_t s = 0; s < count_; ++s)
      for (StepId earlier : dependencies.predecessors(StepId(s))) {
        before_[s].push_back(earlier.index());
        after_[earlier.index()].push_back(s);
      }
  }

  std::vector<size_t> best() const {
    std::vector<size_t> best(count_);
    std::iota(best.begin(), best.end(), size_t{0});
    const DevicePeaks old = peaks(best);
    auto least = static_cast<int64_t>(clearly * static_cast<double>(total_bytes(old)));
    for (std::vector<size_t> order : {from_front(), from_back()})
      if (const DevicePeaks found = peaks(order); total_bytes(found) < least && !exceed(found, old)) {
        least = total_bytes(found);
        best = std::move(order);
      }
    move_steps(best);
    overlap_collectives(best);
    return best;
  }

 private:
  void find_blocks() {
    std::vector<size_t> block_of(program_.buffers.size());
    for (size_t b = 0; b < block_of.size(); ++b) {
      const bool input = program_.buffers[loops::BufferId(b)].role == loops::Buffer::Role::Input;
      Block block{.device = program_.buffers[loops::BufferId(b)].device};
      block.bytes = input ? 0 : allocated(bytes_of(program_, loops::BufferId(b)));
      block_of[b] = b;
      blocks_.push_back(std::move(block));
    }
    for (const loops::ProgramInput& input : program_.inputs) {
      if (!input.donated) continue;
      const loops::Buffer& buffer = program_.buffers[input.buffer];
      Block& block = blocks_[input.buffer.index()];
      block.bytes = allocated(share_hint(buffer.dtype, buffer.sizes, buffer.strides, program_.assumptions));
      block.from_start = true;
    }
    for (size_t s = 0; s < count_; ++s) {
      if (const auto* call = std::get_if<loops::ExternCall>(&program_.steps[s]))
        for (size_t r = 0; r < call->results.size(); ++r)
          if (const int operand = waits_for_collective(call->callee) ? 0 : call->alias_of[r]; operand >= 0)
            if (const auto* base = std::get_if<loops::View>(&call->operands[static_cast<size_t>(operand)]))
              block_of[call->results[r].index()] = block_of[base->buffer.index()];
      for (loops::BufferId id : touched(program_.steps[s])) {
        Block& block = blocks_[block_of[id.index()]];
        if (!block.touched.empty() && block.touched.back() == s) continue;
        block.touched.push_back(s);
        blocks_of_[s].push_back(block_of[id.index()]);
      }
    }
    for (const loops::ProgramOutput& output : program_.outputs) {
      if (output.kind == loops::ProgramOutput::Kind::Tensor) blocks_[block_of[output.buffer.index()]].to_end = true;
      if (output.kind == loops::ProgramOutput::Kind::View) blocks_[block_of[output.view.buffer.index()]].to_end = true;
    }
  }

  static std::vector<loops::BufferId> touched(const loops::Step& step) {
    std::vector<loops::BufferId> ids;
    if (const auto* region = std::get_if<loops::Region>(&step)) {
      for (const loops::Access& access : loops::accesses(*region)) ids.push_back(access.buffer);
      return ids;
    }
    const auto& call = std::get<loops::ExternCall>(step);
    for (const auto& operand : call.operands)
      if (const auto* view = std::get_if<loops::View>(&operand)) ids.push_back(view->buffer);
    ids.insert(ids.end(), call.results.begin(), call.results.end());
    return ids;
  }

  DevicePeaks peaks(const std::vector<size_t>& order) const {
    std::vector<int> place(count_);
    for (size_t t = 0; t < count_; ++t) place[order[t]] = static_cast<int>(t);
    DeviceRanges ranges;
    for (const Block& block : blocks_) {
      if (block.touched.empty() || block.bytes == 0) continue;
      LiveRange range{block.bytes, place[block.touched.front()], place[block.touched.front()]};
      for (size_t s : block.touched) {
        range.first = std::min(range.first, place[s]);
        range.last = std::max(range.last, place[s]);
      }
      if (block.from_start) range.first = 0;
      if (block.to_end) range.last = static_cast<int>(count_);
      ranges[block.device].push_back(range);
    }
    return find_peaks(ranges);
  }

  // Whether the step at `from` may stand at `to`, those between moved by one.
  bool may_move(const std::vector<size_t>& order, size_t from, size_t to) const {
    const std::vector<size_t>& others = to < from ? before_[order[from]] : after_[order[from]];
    const size_t low = std::min(from, to), high = std::max(from, to);
    for (size_t t = low; t <= high; ++t)
      if (t != from && std::find(others.begin(), others.end(), order[t]) != others.end()) return false;
    return true;
  }

  static void move(std::vector<size_t>& order, size_t from, size_t to) {
    const auto at = [&](size_t t) { return order.begin() + static_cast<std::ptrdiff_t>(t); };
    if (to < from)
      std::rotate(at(to), at(from), at(from) + 1);
    else
      std::rotate(at(from), at(from) + 1, at(to) + 1);
  }

  void move_steps(std::vector<size_t>& order) const {
    size_t work = 0;
    DevicePeaks now = peaks(order);
    for (bool moved = true; moved && work < most_move_work;) {
      moved = false;
      for (const MemoryPeak& peak : std::views::values(DevicePeaks(now))) moved = moved || move_across(order, static_cast<size_t>(peak.step), now, work);
    }
  }

  // A later step that frees more than it allocates moves before the fullest step, an earlier one whose result is not needed yet
  // moves behind it.
  bool move_across(std::vector<size_t>& order, size_t fullest, DevicePeaks& now, size_t& work) const {
    if (fullest >= count_) return false;
    const size_t first = fullest > window ? fullest - window : 0, last = std::min(fullest + window, count_ - 1);
    for (size_t t = first; t <= last && work < most_move_work; ++t) {
      work += window;
      if (t == fullest || !may_move(order, t, fullest)) continue;
      std::vector<size_t> other = order;
      move(other, t, fullest);
      work += blocks_.size() + count_;
      DevicePeaks then = peaks(other);
      if (static_cast<double>(total_bytes(then)) >= slightly * static_cast<double>(total_bytes(now)) || exceed(then, now)) continue;
      order = std::move(other);
      now = std::move(then);
      return true;
    }
    return false;
  }

  bool is_call(size_t step, bool (*holds)(std::string_view)) const {
    const auto* call = std::get_if<loops::ExternCall>(&program_.steps[step]);
    return call && holds(call->callee);
  }

  // Kernels between a collective and its wait run while the collective does. Starts move from the first to the last, since
  // they keep their order; waits from the last to the first, so that one does not stop behind another.
  void overlap_collectives(std::vector<size_t>& order) const {
    const std::vector<size_t> old = order;
    const auto first_place = [&](size_t from) {
      size_t to = from;
      while (to > 0 && !follows(order[from], order[to - 1])) --to;
      return to;
    };
    const auto last_place = [&](size_t from) {
      size_t to = from;
      while (to + 1 < count_ && !follows(order[to + 1], order[from])) ++to;
      return to;
    };
    size_t work = 0;
    const auto place_of = [&](size_t step) { return static_cast<size_t>(std::ranges::find(order, step) - order.begin()); };
    for (size_t step : old)
      if (is_call(step, starts_collective)) move_as_far(order, place_of(step), first_place(place_of(step)), work);
    for (size_t t = old.size(); t-- > 0;)
      if (is_call(old[t], waits_for_collective)) move_as_far(order, place_of(old[t]), last_place(place_of(old[t])), work);
  }
  bool follows(size_t step, size_t other) const { return std::ranges::count(before_[step], other) > 0; }

  // Moves the step to the place, or to half of the way, and so on, unless a peak grows.
  void move_as_far(std::vector<size_t>& order, size_t from, size_t to, size_t& work) const {
    const DevicePeaks now = from == to ? DevicePeaks() : peaks(order);
    while (from != to && work < most_move_work) {
      std::vector<size_t> other = order;
      move(other, from, to);
      work += blocks_.size() + count_;
      if (!exceed(peaks(other), now)) {
        order = std::move(other);
        return;
      }
      to = to < from ? from - (from - to) / 2 : from + (to - from) / 2;
    }
  }

  // What is alive after the step beyond what is alive before it, given the uses of each block that are still to come.
  int64_t growth(size_t step, const std::vector<size_t>& uses_left) const {
    int64_t bytes = 0;
    for (size_t b : blocks_of_[step]) {
      const Block& block = blocks_[b];
      if (!block.from_start && uses_left[b] == block.touched.size()) bytes += block.bytes;
      if (!block.to_end && uses_left[b] == 1) bytes -= block.bytes;
    }
    return bytes;
  }
  // The same for an order that is made from its end: what is alive before the step beyond what is alive after it.
  int64_t growth_backwards(size_t step, const std::vector<size_t>& uses_left) const {
    int64_t bytes = 0;
    for (size_t b : blocks_of_[step]) {
      const Block& block = blocks_[b];
      if (!block.to_end && uses_left[b] == block.touched.size()) bytes += block.bytes;
      if (!block.from_start && uses_left[b] == 1) bytes -= block.bytes;
    }
    return bytes;
  }

  std::vector<size_t> from_front() const { return greedy(before_, after_, false); }
  std::vector<size_t> from_back() const {
    std::vector<size_t> order = greedy(after_, before_, true);
    std::reverse(order.begin(), order.end());
    return order;
  }

  std::vector<size_t> greedy(const std::vector<std::vector<size_t>>& needs, const std::vector<std::vector<size_t>>& frees, bool backwards) const {
    std::vector<size_t> uses_left, open(count_), order;
    for (const Block& block : blocks_) uses_left.push_back(block.touched.size());
    std::vector<size_t> ready;  // in the direction of the old order
    const auto earlier = [&](size_t a, size_t b) { return backwards ? a > b : a < b; };
    const auto add = [&](size_t s) { ready.insert(std::lower_bound(ready.begin(), ready.end(), s, earlier), s); };
    for (size_t s = 0; s < count_; ++s) {
      open[s] = needs[s].size();
      if (open[s] == 0) add(s);
    }
    while (!ready.empty()) {
      size_t chosen = 0;
      int64_t least = 0;
      for (size_t k = 0; k < std::min(window, ready.size()); ++k) {
        const int64_t bytes = backwards ? growth_backwards(ready[k], uses_left) : growth(ready[k], uses_left);
        if (k > 0 && bytes >= least) continue;
        chosen = k;
        least = bytes;
      }
      const size_t step = ready[chosen];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(chosen));
      order.push_back(step);
      for (size_t b : blocks_of_[step]) --uses_left[b];
      for (size_t next : frees[step])
        if (--open[next] == 0) add(next);
    }
    return order;
  }

  const loops::Program& program_;
  size_t count_;
  std::vector<Block> blocks_;
  std::vector<std::vector<size_t>> blocks_of_;       // by step
  std::vector<std::vector<size_t>> before_, after_;  // by step, edges as often as they were found
};

}  // namespace

std::vector<size_t> reorder_for_peak_memory(const loops::Program& program) { return Ordering(program).best(); }

}  // namespace cxxinductor::schedule

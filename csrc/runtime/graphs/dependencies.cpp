#include "runtime/graphs/dependencies.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace cxxinductor::runtime {
namespace {

// Memory as disjoint pieces, each with the steps that used it last.
class Memory {
 public:
  // What a step that reads the range waits for.
  void read(const MemoryRange& range, uint32_t step, std::vector<uint32_t>& waits) {
    each_piece(range, [&](Piece& piece) {
      if (piece.writer) waits.push_back(*piece.writer);
      piece.readers.push_back(step);
    });
  }
  void write(const MemoryRange& range, uint32_t step, std::vector<uint32_t>& waits) {
    each_piece(range, [&](Piece& piece) {
      if (piece.writer) waits.push_back(*piece.writer);
      waits.insert(waits.end(), piece.readers.begin(), piece.readers.end());
      piece.writer = step;
      piece.readers.clear();
    });
  }

 private:
  struct Piece {
    uintptr_t end = 0;
    std::optional<uint32_t> writer;
    std::vector<uint32_t> readers;  // since then
  };
  using Pieces = std::map<uintptr_t, Piece>;

  // The first piece that begins at the address or behind it; one that lies across it is divided.
  Pieces::iterator split(uintptr_t at) {
    const auto after = pieces_.lower_bound(at);
    if (after != pieces_.end() && after->first == at) return after;
    if (after == pieces_.begin()) return after;
    const auto before = std::prev(after);
    if (before->second.end <= at) return after;
    Piece rest = before->second;
    before->second.end = at;
    return pieces_.emplace(at, std::move(rest)).first;
  }

  template <class Use>
  void each_piece(const MemoryRange& range, const Use& use) {
    if (range.bytes <= 0) return;
    uintptr_t at = reinterpret_cast<uintptr_t>(range.begin);
    const uintptr_t end = at + static_cast<uintptr_t>(range.bytes);
    split(end);
    auto piece = split(at);
    while (at < end) {
      if (piece == pieces_.end() || piece->first > at)  // nobody has used what comes here
        piece = pieces_.emplace_hint(piece, at, Piece{piece == pieces_.end() ? end : std::min(end, piece->first), {}, {}});
      use(piece->second);
      at = piece->second.end;
      ++piece;
    }
  }

  Pieces pieces_;
};

}  // namespace

Dependencies find_dependencies(std::span<const Accesses> steps) {
  Memory memory;
  Dependencies found(steps.size());
  std::vector<std::vector<bool>> ancestors(steps.size());
  for (uint32_t step = 0; step < steps.size(); ++step) {
    std::vector<uint32_t> waits;
    for (const MemoryRange& range : steps[step].read) memory.read(range, step, waits);
    for (const MemoryRange& range : steps[step].written) memory.write(range, step, waits);
    std::ranges::sort(waits, std::ranges::greater());
    std::vector<bool>& known = ancestors[step];
    known.resize(step + 1);
    for (const uint32_t earlier : waits) {
      if (earlier == step || known[earlier]) continue;
      found[step].push_back(earlier);
      known[earlier] = true;
      for (uint32_t i = 0; i < earlier; ++i)
        if (ancestors[earlier][i]) known[i] = true;
    }
    std::ranges::reverse(found[step]);
  }
  return found;
}

EstimatedTime estimate_time(std::span<const Accesses> steps, const Dependencies& dependencies, double bytes_per_second, double latency) {
  EstimatedTime time;
  double traffic = 0;
  std::vector<double> ends(steps.size());
  for (size_t step = 0; step < steps.size(); ++step) {
    int64_t bytes = 0;
    for (const auto* ranges : {&steps[step].read, &steps[step].written})
      for (const MemoryRange& range : *ranges) bytes += std::max<int64_t>(range.bytes, 0);
    const double moving = static_cast<double>(bytes) / bytes_per_second;
    double begin = 0;
    for (const uint32_t earlier : dependencies[step]) begin = std::max(begin, ends[earlier]);
    ends[step] = begin + latency + moving;
    time.in_order += latency + moving;
    traffic += moving;
    time.in_parallel = std::max(time.in_parallel, ends[step]);
  }
  time.in_parallel = std::max(time.in_parallel, traffic);
  return time;
}

}  // namespace cxxinductor::runtime

// Work of a device that is recorded once and queued many times by one call (a CUDA graph), at other addresses each time.
//
// A recording knows nothing of the signatures of libraries' kernels: it finds the words in the arguments of its nodes that lie in
// given ranges of memory. Whether that found them all is proved by recording the same work a second time, with the ranges elsewhere:
// two recordings are the same work if they differ in those words alone, and in such that differ without anything having moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cxxinductor::runtime {

// Memory whose address may differ in each replay; without bytes: not there.
struct MemoryRange {
  void* begin = nullptr;
  int64_t bytes = 0;
};

// Memory that a library call took for a result: replays use that of the range with this number in its place, from `offset` bytes on. What
// was queued before the position of its recorder uses other memory, which was given back by then.
struct ReplacedMemory {
  MemoryRange memory;
  size_t range = 0;
  int64_t offset = 0;
  size_t position = 0;
};

// Where it is not known which words are addresses.
inline constexpr size_t all_words = SIZE_MAX;

// By step: the earlier ones that it waits for, in order, less those that these wait for themselves (dependencies.h).
using Dependencies = std::vector<std::vector<uint32_t>>;

class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // In what the recordings differ, words in ranges and in the recording's own memory aside, and those that ignore() found.
  struct Difference {
    size_t step = 0;  // number of the call of GraphRecorder::note
    std::string what;
  };
  virtual std::vector<Difference> differences(const DeviceGraph& other) const = 0;
  // `again` recorded the same steps with all memory where it is in this one: words that differ hold no address of it. A library leaves
  // bytes of its arguments unset, for example.
  virtual void ignore(const DeviceGraph& again) = 0;
  // Queues the work with the ranges at these addresses, one for each range; returns how many nodes had to be changed for it. Unsupported
  // where the driver refuses to change them, or has no memory for the graph: nothing is queued then. InternalError where it refuses the
  // work. Not thread-safe.
  virtual size_t launch(std::span<void* const> addresses, void* stream) = 0;
};

// A recording in progress; destroying it abandons it.
class GraphRecorder {
 public:
  virtual ~GraphRecorder() = default;
  // How much was queued so far.
  virtual size_t position() = 0;
  // The work that was queued since the last call reads and writes these ranges. Unsupported where the work contains what cannot be
  // replayed at other addresses; the message says what. address_words: of each node's arguments, the words at the front that may be
  // addresses. Others are numbers, whatever their value.
  virtual void note(std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced, size_t address_words) = 0;
  // By call of note: whether its work uses the recording's own memory.
  virtual std::vector<bool> uses_of_own_memory() = 0;
  // Ends the recording. Unsupported where it was invalidated. order: what the steps wait for, a step for each call of note; null: all run in
  // the order in which they were queued.
  virtual std::unique_ptr<DeviceGraph> finish(const Dependencies* order) = 0;
};

class GraphDevice {
 public:
  virtual ~GraphDevice() = default;
  // Records what this thread queues on the stream, which is idle, from now on. own: whether an address lies in memory that only
  // recordings use.
  virtual std::unique_ptr<GraphRecorder> record(void* stream, std::function<bool(const void*)> own) = 0;
  // For estimates: of its memory, and what passes between dependent steps of a graph.
  virtual double bytes_per_second() const = 0;
  virtual double step_seconds() const = 0;
};

}  // namespace cxxinductor::runtime

// Which steps of a plan are recorded together. A stretch is a range of steps of one device whose work needs nothing from the host
// in between: kernels, library calls that may be recorded, and changes of memory.
//
// Memory that a stretch frees is free only when its replay is queued, so a stretch ends where that memory exceeds a share of the
// call's peak.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/executable_tables.h"

namespace cxxinductor::runtime {

struct Stretch {
  uint32_t first = 0, last = 0;  // steps [first, last)
  Device device;
  uint32_t stream = 0;           // in Tables::stream_devices
  uint32_t launches = 0, calls = 0;
  // Memory that the steps read and write: numbers of buffers that have some of their own; behind them, those of arenas.
  std::vector<uint32_t> roots;
  // The steps that take memory or run ahead, and those that give memory back: all that a replay does besides.
  std::vector<uint32_t> takes, gives_back;
  // Small arenas that nothing outside of the stretch uses, and where they lie in the scratch memory of the stream.
  struct Scratch {
    uint32_t arena = 0;
    int64_t offset = 0;
  };
  std::vector<Scratch> scratch;
  int64_t scratch_bytes = 0;
};

// Library calls that could not be recorded, by name, with the reasons.
using RefusedCalls = std::map<std::string, std::string>;

// Why a step is not recorded; "" where it is, or queues nothing.
std::string why_not_recorded(const plan::Plan& plan, const Tables& tables, const StepRecord& step, const RefusedCalls& refused);

// values: the workspace of a call, with the sizes.
std::vector<Stretch> find_stretches(const plan::Plan& plan, const Tables& tables, std::span<const int64_t> values,
                                    const RefusedCalls& refused);

// A call without operands, whose results are memory of their own: it may run before the work of the stretch that it stands in.
bool runs_ahead(const Tables& tables, const ExternRecord& record);

}  // namespace cxxinductor::runtime

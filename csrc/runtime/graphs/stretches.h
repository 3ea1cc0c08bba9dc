// Which steps of a plan are recorded together. A stretch is a range of steps of one device whose work needs nothing from the host
// in between: kernels, library calls that may be recorded, and changes of memory.
//
// What a stretch alone uses lies in one block, placed step by step. All other memory is taken before its replay is queued and given back
// after it, so a stretch ends where calls would need more than a share above their peak.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/executable_tables.h"
#include "runtime/graphs/call_memory_use.h"

namespace cxxinductor::runtime {

struct Stretch {
  uint32_t first = 0, last = 0;  // steps [first, last)
  Device device;
  uint32_t stream = 0;  // in Tables::stream_devices
  uint32_t launches = 0, calls = 0;
  // Memory that the steps read and write. Behind the numbers of arenas: the stretch's block, for all that lies in it.
  std::vector<MemoryNumber> accessed;
  SharedBlock block;
  std::vector<SharedBlock::Place> block_buffers;  // all buffers in it, those in arenas and slices of others aside
  bool block_in_scratch = false;                  // of the stream (RecordingPlace::scratch); else each call takes it

  // What is to be done before a replay for memory outside of the block, and for that in the block where the steps run one by one.
  struct Preparation {
    enum class Kind : uint8_t { Arena, Buffer, Reuse, Call };
    Kind kind = Kind::Buffer;
    uint32_t index = 0;  // in Tables
    uint32_t step = 0;
  };
  std::vector<Preparation> preparations, block_preparations;
  std::vector<uint32_t> given_back;  // buffers outside of the block, after the replay
};

// What was found out not to be recordable, with the reasons.
struct Refusals {
  std::map<std::string, std::string> calls;  // library calls by name
  std::map<uint32_t, std::string> steps;     // by number: they do other work when memory moves
};

// Why a step is not recorded; "" where it is, or queues nothing.
std::string why_not_recorded(const plan::Plan& plan, const Tables& tables, const StepRecord& step, const Refusals& refused);

// values: the workspace of a call, with the sizes. held: of each input, whether somebody but the call holds it.
std::vector<Stretch> find_stretches(const plan::Plan& plan, const Tables& tables, std::span<const int64_t> values, const std::vector<bool>& held,
                                    const Refusals& refused);

}  // namespace cxxinductor::runtime

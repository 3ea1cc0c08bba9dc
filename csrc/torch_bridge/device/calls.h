// Calls of a recording: what names them, so that equal recordings are found, and what they are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/call_graph.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/device/buffer.h"

namespace cxxinductor::torch_bridge {

// Ops, operand numbers, dtypes and other arguments; beside them sizes and integers, in the order of the calls.
struct CallCode {
  std::vector<int64_t> words, numbers;

  void clear() {
    words.clear();
    numbers.clear();
  }
  friend bool operator==(const CallCode&, const CallCode&) = default;
};

struct RecordedCalls {
  // Where each call ends in `code`, and how many values there are then.
  struct End {
    size_t words = 0, numbers = 0, values = 0;
  };
  // Of a value. memory: the value that is the base of its storage. None: no tensor.
  struct Value {
    Form form;
    uint32_t memory = 0;
    bool is_none = false;
  };

  CallCode code;
  std::vector<End> ends;
  std::vector<Value> values;
  model::CallGraph graph;  // without outputs

  // The first calls alone.
  RecordedCalls prefix(size_t count) const;
};

// A recording as it was compiled: its calls, which values are wanted, which inputs are not wanted any more.
struct CompiledCalls {
  RecordedCalls calls;
  std::vector<int64_t> results;  // see Recording::finish
  std::shared_ptr<const CompiledGraph> graph;
  std::weak_ptr<CompiledCalls> next;  // what followed last, which the next recording is compared with
};

}  // namespace cxxinductor::torch_bridge

// What the recorded device knows of an op, found once for each.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/infer/infer.h"
#include "torch_bridge/record/composites.h"

namespace cxxinductor::torch_bridge {

// Ops on metadata and memory alone, which the device does itself.
enum class MemoryOp : uint8_t { None, Empty, EmptyStrided, Copy, ToCopy, SetStorage, SetStorageView, SetTensor };

struct OpInfo {
  explicit OpInfo(const c10::OperatorHandle& op);

  // Whether eager has a kernel for the dtypes, kinds of numbers and texts of the arguments: it is tried once for each set of them, on
  // tensors of one element. A call that eager refuses is not recorded, so that the error comes where it does in eager.
  bool has_kernel(const torch::jit::Stack& stack, c10::Device backing) const;

  c10::OperatorHandle op;
  std::string name;                               // "aten::add.Tensor"
  std::optional<model::OpRule> rule;              // none: it cannot be recorded
  Composite composite = nullptr;                  // what runs it instead, where the arguments ask for that
  bool is_composite = false;                      // it runs as the calls that it consists of
  std::optional<c10::OperatorHandle> functional;  // it writes the results of this one
  MemoryOp memory_op = MemoryOp::None;
  bool is_sync = false;  // reads elements by nature
  bool is_random = false;
  bool reads_settings = true;  // of context_settings.h: all but arithmetic by element and views may
  bool returns_list = false;
  bool writes = false;  // to an argument
  // By argument: an integer that is an enum (a dtype), not a size; a tensor that is written.
  std::vector<bool> is_enum, is_written;
  // By result: the argument that it is, written; -1: another tensor.
  std::vector<int> written_argument;
  // By result: whether a write to it is one to an argument. The results of unsafe views are not, as the schemas have it.
  std::vector<bool> is_alias;
  int device_argument = -1, generator_argument = -1;

 private:
  mutable std::map<std::string, bool> has_kernel_;  // by these
};

// The lock of the device is held.
class OpTable {
 public:
  const OpInfo& of(const c10::OperatorHandle& op);

 private:
  std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<OpInfo>> infos_;
};

}  // namespace cxxinductor::torch_bridge

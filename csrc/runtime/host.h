// What the runtime asks of its host (torch, or a test): memory, the current stream, externs, threads.
// Implementations are called without any lock held and must be thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/plan/plan.h"

namespace cxxinductor::runtime {

// A tensor as the runtime sees it. `owner` keeps the storage alive (a host tensor handle); data points at element 0 of
// the logical tensor (storage offset applied). sizes and strides in elements.
struct TensorRef {
  void* data = nullptr;
  DType dtype = DType::F32;
  Device device;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  std::shared_ptr<void> owner;
};

using Value = std::variant<TensorRef, int64_t, std::monostate>;

class Host {
 public:
  virtual ~Host() = default;
  // Uninitialised memory that a later stream-ordered free releases; bytes may be 0. Throws UserError when out of memory.
  virtual std::shared_ptr<void> allocate(Device device, int64_t bytes, void** data) = 0;
  virtual TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) = 0;
  virtual void* current_stream(Device device) = 0;  // CUstream
  // Calls the op; holes of call.args refer to `operands`. For planned_out calls `results` holds the destination tensors;
  // otherwise the host returns fresh (or aliasing) tensors. Strides of returned tensors are the callee's own.
  virtual std::vector<TensorRef> call_extern(const plan::CallExtern& call, std::span<const Value> operands,
                                             std::span<const TensorRef> results) = 0;
  // body(begin, end) over disjoint parts of [0, count), from several threads.
  virtual void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) = 0;
  virtual void* find_symbol(const char* name) = 0;  // address of a function that the process exports (Sleef), or null
};

}  // namespace cxxinductor::runtime

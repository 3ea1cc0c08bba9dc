// What a graph takes beside the caller's inputs: computed of its frozen inputs, and kept until one of them changes.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Stream.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "driver/compile.h"

namespace cxxinductor::torch_bridge {

class FoldedConstants {
 public:
  explicit FoldedConstants(driver::Compilation::ConstGraph const_graph) : const_graph_(std::move(const_graph)) {}

  // Appends them to the caller's inputs, computed anew if a frozen one is another tensor than last time, or PyTorch
  // counted a write to it. Of tensors made in inference mode it counts none: what follows from them is computed by each call.
  // captured: the program captures the call as a CUDA graph. What is current then stays as long as this object, whatever is
  // written later. If nothing is, the captured graph computes it, since folding waits for a stream. Thread-safe.
  void append(std::vector<c10::IValue>& inputs, bool captured);

  const driver::Report& report() const { return const_graph_.report; }
  const plan::Plan& plan() const { return const_graph_.executable->plan(); }
  // Whether the last call that found nothing current had a frozen input that was made in inference mode.
  bool is_folded_by_each_call() const { return by_each_call_.load(std::memory_order_relaxed); }
  int64_t kept_bytes() const;  // of those of now
  // Those of now and those that captured graphs may read, each set as plan() returns it; none before the first call. Thread-safe.
  std::vector<at::Tensor> tensors() const;

 private:
  // What was prepared of one input, which has a count of writes. The weak reference keeps the storage's address from being given to another.
  struct Source {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const void* data;
    uint32_t version;
  };
  struct Prepared {
    std::vector<Source> sources;  // one per input of the const_graph
    std::vector<at::Tensor> tensors;
    mutable std::vector<c10::Stream> streams;  // guarded by ForkLock::Leaf; the allocator knows that these read the tensors
  };
  static bool is_from(const Source& source, const at::Tensor& tensor);
  bool is_current(const Prepared& prepared, const std::vector<c10::IValue>& inputs) const;
  std::vector<at::Tensor> compute(const std::vector<c10::IValue>& inputs) const;
  // Runs without a lock (it may call Python): two threads that find nothing current both prepare, and either result is right.
  std::shared_ptr<const Prepared> fold(const std::vector<c10::IValue>& inputs) const;
  std::shared_ptr<const Prepared> load() const;
  void store(std::shared_ptr<const Prepared> prepared);
  void keep_for_captured(const std::shared_ptr<const Prepared>& prepared);
  static void note_streams(const Prepared& prepared);

  const driver::Compilation::ConstGraph const_graph_;
  std::shared_ptr<const Prepared> current_;                // guarded by ForkLock::Leaf; null before the first call
  std::vector<std::shared_ptr<const Prepared>> captured_;  // guarded by ForkLock::Leaf; that captured graphs may read
  std::atomic<bool> by_each_call_ = false;
};

}  // namespace cxxinductor::torch_bridge

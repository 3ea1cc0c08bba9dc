// A host without torch: malloc, threads, externs through a function that the user gives. For tests and for programs
// that link the core alone. CPU only: asking for memory on a CUDA device is a UserError.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/scalar.h"
#include "runtime/host.h"

namespace cxxinductor::runtime {

class PlainHost : public Host {
 public:
  using ExternFunction = std::function<void(PlainHost&, const plan::CallExtern&, std::span<const Operand>, std::span<const TensorView> destinations,
                                            std::span<TensorRef> results)>;
  // externs: by default naive mm, addmm and bmm.
  explicit PlainHost(int threads = 1, ExternFunction externs = {});

  Owner allocate(Device device, int64_t bytes, void** data) override;
  TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  TensorRef alias(const TensorRef& base, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  bool reuse_storage(TensorRef& tensor, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  void copy_strided(const TensorView& to, const TensorView& from) override;
  int64_t read_integer(const TensorView& from) override;
  void* current_stream(Device) override { return nullptr; }
  std::unique_ptr<ExternCallee> resolve_extern(const plan::CallExtern& call) override;
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) override;
  void* find_symbol(const char* name) override;  // in the libraries that the process has loaded

  // Counters and faults for tests: the allocation with this number (from 0) fails; -1: none.
  std::atomic<int64_t> allocations = 0;
  std::atomic<int64_t> live_allocations = 0;
  int64_t failing_allocation = -1;
  // Every allocation ends where an inaccessible page begins, aligned to its element at least: a kernel that touches
  // anything past the end of a buffer faults.
  bool guard_pages = false;

 private:
  struct Storage;
  struct Tensor;
  static const OwnerOperations kStorageOperations, kTensorOperations;
  Storage* new_storage(Device device, int64_t bytes);
  static void delete_storage(Storage* storage);
  static TensorRef new_tensor(Storage* storage, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides);

  int threads_;
  ExternFunction externs_;
};

// Elements in row-major order of the logical tensor.
std::vector<Scalar> read_elements(const TensorView& view);
void write_elements(const TensorView& view, std::span<const Scalar> elements);
TensorView view_of(const TensorRef& tensor);
std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes);

}  // namespace cxxinductor::runtime

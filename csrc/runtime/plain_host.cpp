#include "runtime/plain_host.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "ir/device_types.h"
#include "ir/library_ops.h"
#include "runtime/element.h"
#include "support/error.h"

namespace cxxinductor::runtime {

struct PlainHost::Storage {
  std::atomic<int64_t> references = 1;
  void* memory = nullptr;
  size_t mapped_bytes = 0;  // of the mapping that holds it and its guard page; 0: from malloc
  std::atomic<int64_t>* live = nullptr;
};

struct PlainHost::Tensor {
  std::atomic<int64_t> references = 1;
  Storage* storage = nullptr;
  std::vector<int64_t> sizes, strides;
};

namespace {

// Calls body(element offset) for each logical element, row-major.
template <class Body>
void for_each_offset(std::span<const int64_t> sizes, std::span<const int64_t> strides, const Body& body) {
  for (int64_t size : sizes) {
    if (size == 0) return;
  }
  std::vector<int64_t> at(sizes.size(), 0);
  int64_t offset = 0;
  while (true) {
    body(offset);
    size_t d = sizes.size();
    while (d > 0) {
      --d;
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= at[d] * strides[d];
      at[d] = 0;
      if (d == 0) return;
    }
    if (sizes.empty()) return;
  }
}

int64_t span_of(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

class FunctionCallee : public ExternCallee {
 public:
  FunctionCallee(const PlainHost::ExternFunction& function, const plan::CallExtern& call) : function_(function), call_(call) {}
  void call(Host& host, std::span<const Operand> operands, std::span<const TensorView> destinations, std::span<TensorRef> results) const override {
    function_(static_cast<PlainHost&>(host), call_, operands, destinations, results);
  }

 private:
  const PlainHost::ExternFunction& function_;
  const plan::CallExtern& call_;
};

// a[b, m, k] @ c[b, k, n] (+ bias broadcast over rows) in double, one rounding at the end.
void multiply(const TensorView& to, const TensorView& a, const TensorView& c, const TensorView* bias) {
  const size_t rank = a.sizes.size();
  const int64_t batch = rank == 3 ? a.sizes[0] : 1;
  const int64_t m = a.sizes[rank - 2], k = a.sizes[rank - 1], n = c.sizes[rank - 1];
  const std::vector<Scalar> left = read_elements(a), right = read_elements(c);
  std::vector<Scalar> out;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += left[static_cast<size_t>((b * m + i) * k + l)].as_real() * right[static_cast<size_t>((b * k + l) * n + j)].as_real();
        }
        if (bias) {
          const size_t br = bias->sizes.size();
          const int64_t col = br >= 1 && bias->sizes[br - 1] != 1 ? j * bias->strides[br - 1] : 0;
          const int64_t row = br >= 2 && bias->sizes[br - 2] != 1 ? i * bias->strides[br - 2] : 0;
          sum += read_element(bias->dtype, static_cast<std::byte*>(bias->data) + (row + col) * byte_size(bias->dtype)).as_real();
        }
        out.push_back(Scalar::from_real(to.dtype, sum));
      }
    }
  }
  write_elements(to, out);
}

void call_matmul(PlainHost& host, const plan::CallExtern& call, std::span<const Operand> operands, std::span<const TensorView> destinations,
                 std::span<TensorRef> results) {
  const auto operand = [&](ArgRole role) {
    const OperandRef* ref = find_operand_ref(call, role);
    return ref ? &operands[ref->operand].tensor : nullptr;
  };
  const TensorView *left = operand(ArgRole::Left), *right = operand(ArgRole::Right), *bias = operand(ArgRole::Addend);
  if (!left || !right || (bias && left->sizes.size() > 2)) throw_unsupported("the plain host has no {}", call.callee);
  const TensorView &a = *left, &c = *right;
  TensorView to;
  if (call.planned_out) {
    to = destinations[0];
  } else {
    std::vector<int64_t> sizes(a.sizes.begin(), a.sizes.end());
    sizes.back() = c.sizes.back();
    results[0] = host.empty_strided(a.dtype, a.device, sizes, contiguous_strides(sizes));
    to = view_of(results[0]);
  }
  multiply(to, a, c, bias);
}

}  // namespace

std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

TensorView view_of(const TensorRef& tensor) { return {tensor.data, tensor.dtype, tensor.device, tensor.sizes(), tensor.strides(), &tensor, true}; }

std::vector<Scalar> read_elements(const TensorView& view) {
  std::vector<Scalar> elements;
  for_each_offset(view.sizes, view.strides,
                  [&](int64_t offset) { elements.push_back(read_element(view.dtype, static_cast<std::byte*>(view.data) + offset * byte_size(view.dtype))); });
  return elements;
}

void write_elements(const TensorView& view, std::span<const Scalar> elements) {
  size_t next = 0;
  for_each_offset(view.sizes, view.strides,
                  [&](int64_t offset) { write_element(elements[next++], static_cast<std::byte*>(view.data) + offset * byte_size(view.dtype)); });
}

const OwnerOperations PlainHost::kStorageOperations = {[](void* object) { static_cast<Storage*>(object)->references.fetch_add(1, std::memory_order_relaxed); },
                                                       [](void* object) {
                                                         auto* storage = static_cast<Storage*>(object);
                                                         if (storage->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
                                                         delete_storage(storage);
                                                       }};

const OwnerOperations PlainHost::kTensorOperations = {[](void* object) { static_cast<Tensor*>(object)->references.fetch_add(1, std::memory_order_relaxed); },
                                                      [](void* object) {
                                                        auto* tensor = static_cast<Tensor*>(object);
                                                        if (tensor->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
                                                        kStorageOperations.release(tensor->storage);
                                                        delete tensor;
                                                      }};

PlainHost::PlainHost(int threads, ExternFunction externs)
    : threads_(std::max(1, threads)), externs_(externs ? std::move(externs) : ExternFunction(call_matmul)) {}

PlainHost::Storage* PlainHost::new_storage(Device device, int64_t bytes) {
  if (has_streams(device)) throw_user_error("the plain host has no device {}", to_string(device));
  const int64_t number = allocations++;
  if (number == failing_allocation) throw_user_error("out of memory: {} bytes on {}", bytes, to_string(device));
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  auto storage = std::make_unique<Storage>();
  if (guard_pages) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t before_guard = (size + page - 1) / page * page;
    storage->mapped_bytes = before_guard + page;
    void* base = ::mmap(nullptr, storage->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw_user_error("out of memory: {} bytes on {}", bytes, to_string(device));
    ::mprotect(static_cast<std::byte*>(base) + before_guard, page, PROT_NONE);
    storage->memory = static_cast<std::byte*>(base) + (before_guard - size);
  } else {
    storage->memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    if (!storage->memory) throw_user_error("out of memory: {} bytes on {}", bytes, to_string(device));
  }
  storage->live = &live_allocations;
  ++live_allocations;
  return storage.release();
}

void PlainHost::delete_storage(Storage* storage) {
  if (storage->mapped_bytes > 0) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    ::munmap(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(storage->memory) / page * page), storage->mapped_bytes);
  } else {
    std::free(storage->memory);
  }
  storage->live->fetch_sub(1);
  delete storage;
}

TensorRef PlainHost::new_tensor(Storage* storage, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  auto* tensor = new Tensor;
  tensor->storage = storage;
  tensor->sizes.assign(sizes.begin(), sizes.end());
  tensor->strides.assign(strides.begin(), strides.end());
  TensorRef ref;
  ref.data = data;
  ref.dtype = dtype;
  ref.rank = static_cast<uint32_t>(sizes.size());
  ref.sizes_data = tensor->sizes.data();
  ref.strides_data = tensor->strides.data();
  ref.owner = Owner(tensor, &kTensorOperations);
  return ref;
}

Owner PlainHost::allocate(Device device, int64_t bytes, void** data) {
  Storage* storage = new_storage(device, bytes);
  *data = storage->memory;
  return Owner(storage, &kStorageOperations);
}

TensorRef PlainHost::empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Storage* storage = new_storage(device, span_of(sizes, strides) * byte_size(dtype));
  return new_tensor(storage, storage->memory, dtype, sizes, strides);
}

TensorRef PlainHost::alias(const TensorRef& base, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Storage* storage = static_cast<Tensor*>(base.owner.get())->storage;
  kStorageOperations.retain(storage);
  return new_tensor(storage, data, dtype, sizes, strides);
}

bool PlainHost::reuse_storage(TensorRef& tensor, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  Storage* storage = static_cast<Tensor*>(tensor.owner.get())->storage;
  kStorageOperations.retain(storage);
  tensor = new_tensor(storage, tensor.data, dtype, sizes, strides);
  return storage->references == 1;
}

void PlainHost::copy_strided(const TensorView& to, const TensorView& from) {
  const auto bytes = static_cast<size_t>(byte_size(to.dtype));
  std::vector<int64_t> sources;
  for_each_offset(from.sizes, from.strides, [&](int64_t offset) { sources.push_back(offset); });
  size_t next = 0;
  for_each_offset(to.sizes, to.strides, [&](int64_t offset) {
    std::memcpy(static_cast<std::byte*>(to.data) + offset * static_cast<int64_t>(bytes),
                static_cast<std::byte*>(from.data) + sources[next++] * static_cast<int64_t>(bytes), bytes);
  });
}

int64_t PlainHost::read_integer(const TensorView& from) { return cast(read_elements(from).at(0), DType::I64).integer(); }

std::unique_ptr<ExternCallee> PlainHost::resolve_extern(const plan::CallExtern& call) { return std::make_unique<FunctionCallee>(externs_, call); }

void PlainHost::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, threads_);
  if (parts == 1) {
    if (count > 0) body(0, count);
    return;
  }
  std::mutex mutex;
  std::exception_ptr error;
  std::vector<std::thread> threads;
  for (int64_t p = 0; p < parts; ++p) {
    threads.emplace_back([&, p] {
      try {
        body(count * p / parts, count * (p + 1) / parts);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

void* PlainHost::find_symbol(const char* name) { return ::dlsym(RTLD_DEFAULT, name); }

}  // namespace cxxinductor::runtime

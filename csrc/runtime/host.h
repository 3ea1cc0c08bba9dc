// The runtime's host (torch, or a test): memory, current streams, externs, threads.
//
// Everything here is on the path of a call, so nothing in it forces an allocation: a TensorRef borrows its sizes and
// strides from the host's own tensor object, an Owner is a counted pointer of the host's (torch: a TensorImpl), and an
// extern sees light views. Implementations must be thread-safe; a call that is recorded holds the lock of its kind's
// recordings (GraphSet::mutex) meanwhile. What the host throws reaches the caller of Executable::run unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ir/dtype.h"
#include "ir/plan/plan.h"

namespace cxxinductor::runtime {

// A counted reference on a host object that keeps memory alive. Copying retains, destroying releases.
struct OwnerOperations {
  void (*retain)(void* object);
  void (*release)(void* object);
};
class Owner {
 public:
  Owner() = default;
  // Takes over one reference on `object`.
  Owner(void* object, const OwnerOperations* operations) : object_(object), operations_(operations) {}
  Owner(const Owner& other) : object_(other.object_), operations_(other.operations_) {
    if (object_) operations_->retain(object_);
  }
  Owner(Owner&& other) noexcept : object_(std::exchange(other.object_, nullptr)), operations_(std::exchange(other.operations_, nullptr)) {}
  Owner& operator=(Owner other) noexcept {
    std::swap(object_, other.object_);
    std::swap(operations_, other.operations_);
    return *this;
  }
  ~Owner() { reset(); }
  void reset() {
    if (void* object = std::exchange(object_, nullptr)) operations_->release(object);
  }
  void* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  // The reference passes to the caller.
  void* detach() { return std::exchange(object_, nullptr); }

 private:
  void* object_ = nullptr;
  const OwnerOperations* operations_ = nullptr;
};

// A tensor of the host's. data points at element 0 of the logical tensor (storage offset applied); sizes and strides,
// in elements, belong to the owner and live as long as it does.
struct TensorRef {
  void* data = nullptr;
  DType dtype = DType::F32;
  Device device;
  uint32_t rank = 0;
  const int64_t* sizes_data = nullptr;
  const int64_t* strides_data = nullptr;
  Owner owner;

  std::span<const int64_t> sizes() const { return {sizes_data, rank}; }
  std::span<const int64_t> strides() const { return {strides_data, rank}; }
};

// An input or output of a call.
struct Value {
  enum class Kind : uint8_t { None, Integer, Tensor };
  Kind kind = Kind::None;
  int64_t integer = 0;
  TensorRef tensor;

  Value() = default;
  Value(int64_t i) : kind(Kind::Integer), integer(i) {}             // NOLINT: a value is what it holds
  Value(TensorRef t) : kind(Kind::Tensor), tensor(std::move(t)) {}  // NOLINT
  bool is_tensor() const { return kind == Kind::Tensor; }
  bool is_integer() const { return kind == Kind::Integer; }
};

// A strided window on memory, for the time of one call: what an extern reads or writes.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::F32;
  Device device;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
  // The host's tensor whose memory this is, or null when it lies in the call's arena. `whole`: the window is that very
  // tensor, and may be passed on as it is; otherwise the host makes a view of it.
  const TensorRef* base = nullptr;
  bool whole = false;
};

struct Operand {
  enum class Kind : uint8_t { Tensor, Integer };
  Kind kind = Kind::Integer;
  int64_t integer = 0;  // the value of a symbolic argument
  TensorView tensor;
};

class Host;

// An extern op made ready once for an executable: the schema looked up, the constant arguments converted.
class ExternCallee {
 public:
  virtual ~ExternCallee() = default;
  // Operand references of the call's arguments refer to `operands`. planned_out calls write into `destinations` and leave `results`
  // alone; others put one tensor in each entry of `results` (fresh, or an alias where the schema says so), with the
  // strides that the op chose; an entry that the op leaves undefined stays without owner.
  virtual void call(Host& host, std::span<const Operand> operands, std::span<const TensorView> destinations, std::span<TensorRef> results) const = 0;
  // Whether the work that a call queues depends on nothing but its operands' sizes, dtypes and addresses, so that it may be recorded
  // and replayed. A call that then cannot be recorded throws.
  virtual bool recordable() const { return false; }
};

// Where calls are recorded for replays on one stream: a stream of its own, and memory for what library calls allocate for
// themselves. Replays of all recordings made there use that memory; the stream that they run on orders them.
class RecordingPlace {
 public:
  virtual ~RecordingPlace() = default;
  // Runs the body with the place's stream and memory. One thread at a time: others wait. allocated: called with all memory of the device that
  // the body takes, when it does; may not throw. It is the place's, unless the body or its caller has chosen other memory, or another stream.
  virtual void run(const std::function<void(void* stream)>& body, const std::function<void(const void* begin, int64_t bytes)>& allocated) = 0;
  // Whether run could tell now what the body takes.
  virtual bool sees_allocations() const = 0;
  // Inside of run: whether the address lies in the place's memory.
  virtual bool owns(const void* address) const = 0;
  // Memory that replays on the stream use one after the other, and nobody in between: the same for every caller, so that its address
  // seldom changes. It grows with the largest request, and is the caller's as long as the owner that comes with it.
  virtual Owner scratch(int64_t bytes, void** data) = 0;
};

class Host {
 public:
  virtual ~Host() = default;
  // Uninitialised memory, aligned to 64 bytes or more, whose release is ordered after the work queued so far; bytes may
  // be 0. Throws when out of memory.
  virtual Owner allocate(Device device, int64_t bytes, void** data) = 0;
  virtual TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) = 0;
  // A new tensor on the memory of base; data: address of its element 0, inside that memory.
  virtual TensorRef alias(const TensorRef& base, void* data, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) = 0;
  // Gives `tensor` this geometry at the same address. True if it is the only owner of its memory and the memory is no larger
  // than the geometry needs: it may be written.
  virtual bool reuse_storage(TensorRef& tensor, DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) = 0;
  // Of all tensors that a call holds: whether somebody else holds the tensor too, or another one on its memory. It may wait for an interpreter's
  // lock, and is called without locks of the runtime's.
  virtual std::vector<bool> held_by_others(std::span<const TensorRef* const> tensors) { return std::vector<bool>(tensors.size(), true); }
  // Of the storage that the tensor lies in, which may be a part of it. For results of calls that are recorded.
  virtual int64_t storage_bytes(const TensorRef& /*tensor*/) { return 0; }
  // Element by element, equal sizes and dtype; queued on the current stream.
  virtual void copy_strided(const TensorView& to, const TensorView& from) = 0;
  // The first element of a view, an integer or a bool, once all work queued on it is done.
  virtual int64_t read_integer(const TensorView& from) = 0;
  virtual void* current_stream(Device device) = 0;  // CUstream; null on the CPU
  // Throws Unsupported or UserError when the op is unknown. The reference to `call` stays valid as long as the callee.
  virtual std::unique_ptr<ExternCallee> resolve_extern(const plan::CallExtern& call) = 0;
  // body(begin, end) over disjoint parts of [0, count) of at least `grain` (but for the last), from several threads.
  // What a body throws is rethrown here.
  virtual void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) = 0;
  // An error of a call was caught and is not passed on: what the host keeps beside it ends too.
  virtual void drop_error() {}
  // For replays on this stream; null where the host records nothing.
  virtual std::shared_ptr<RecordingPlace> recording_place(Device, void* /*stream*/) { return nullptr; }
  virtual void* find_symbol(const char* name) = 0;  // address of a function that the process exports (Sleef), or null
};

}  // namespace cxxinductor::runtime

#include "torch_bridge/recording_place.h"

#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "support/fork_mutex.h"
#include "torch_bridge/cuda_allocator.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/torch_host.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// Numbers of our pools begin here: torch counts its own from 1.
constexpr c10::CaptureId_t first_pool = c10::CaptureId_t{1} << 60;

using Allocated = std::function<void(const void* begin, int64_t bytes)>;

// Torch's own allocator alone has pools and tells what it gives, and does neither where it is told to keep no memory.
bool has_pools(CUDAAllocator& allocator) {
  return allocator.name() == "native" && allocator.isEnabled() && std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") == nullptr;
}

// The allocator tells a profiler of the thread what it gives: here us.
class AllocationReports final : public c10::MemoryReportingInfoBase {
 public:
  AllocationReports(c10::Device device, const Allocated& allocated) : device_(device), allocated_(allocated) {}
  void reportMemoryUsage(void* begin, int64_t bytes, size_t, size_t, c10::Device device) override {
    if (bytes > 0 && device == device_) allocated_(begin, bytes);  // below 0: it is given back
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  const c10::Device device_;
  const Allocated& allocated_;
};

class TorchRecordingPlace final : public runtime::RecordingPlace {
 public:
  TorchRecordingPlace(c10::Device device, void* stream, c10::CaptureId_t number)
      : device_(device), queue_(stream), stream_(c10::Stream::UNSAFE, device, reinterpret_cast<c10::StreamId>(stream)), pool_(first_pool + number, 0) {}
  ~TorchRecordingPlace() override {
    if (has_pool_) cuda_allocator()->releasePool(device_.index(), pool_);
  }

  // A profiler is what its own callbacks take the reports' receiver for.
  bool sees_allocations() const override {
    return c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) == nullptr && has_pools(*cuda_allocator());
  }

  void run(const std::function<void(void* stream)>& body, const Allocated& allocated) override {
    const std::lock_guard lock(mutex_);
    std::optional<c10::DebugInfoGuard> reports;
    if (sees_allocations()) reports.emplace(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<AllocationReports>(device_, allocated));
    const c10::DeviceGuard device(device_);
    CUDAAllocator* const allocator = cuda_allocator();
    const c10::impl::VirtualGuardImpl streams(c10::kCUDA);
    allocator->beginAllocateToPool(device_.index(), pool_, [this](cudaStream_t used) { return used == queue_; });
    const c10::Stream before = streams.exchangeStream(stream_);
    const auto restore = [&] {
      streams.exchangeStream(before);
      allocator->endAllocateToPool(device_.index(), pool_);
      // Each beginning counts as one user of the pool; this object is one.
      if (std::exchange(has_pool_, true)) allocator->releasePool(device_.index(), pool_);
      segments_.reset();
    };
    try {
      body(queue_);
    } catch (...) {
      restore();
      throw;
    }
    restore();
  }

  // The stream that replays run on is current: its order is that of the uses.
  runtime::Owner scratch(int64_t bytes, void** data) override {
    const std::lock_guard lock(scratch_mutex_);
    if (bytes > scratch_bytes_) {
      scratch_ = torch_host().allocate(from_torch(device_), bytes, &scratch_data_);
      scratch_bytes_ = bytes;
    }
    *data = scratch_data_;
    return scratch_;
  }

  std::vector<RecordingSegment> scratch_memory() {
    const std::lock_guard lock(scratch_mutex_);
    if (scratch_bytes_ == 0) return {};
    return {{from_torch(device_), reinterpret_cast<uint64_t>(scratch_data_), scratch_bytes_}};
  }

  bool owns(const void* address) const override {
    if (!segments_) {
      segments_.emplace();
      for (const RecordingSegment& segment : segments()) segments_->emplace(segment.address, segment.address + static_cast<size_t>(segment.bytes));
    }
    const auto value = reinterpret_cast<size_t>(address);
    const auto after = segments_->upper_bound(value);
    return after != segments_->begin() && value < std::prev(after)->second;
  }

  std::vector<RecordingSegment> segments() const {
    std::vector<RecordingSegment> found;
    for (const auto& segment : cuda_allocator()->snapshot(pool_, false).segments)
      if (segment.owner_private_pool_id == pool_) found.push_back({from_torch(device_), segment.address, static_cast<int64_t>(segment.total_size)});
    return found;
  }

 private:
  const c10::Device device_;
  void* const queue_;
  const c10::Stream stream_;
  const c10::MempoolId_t pool_;
  ForkMutex mutex_;  // what it guards is of no use in a child, where CUDA refuses all calls
  bool has_pool_ = false;
  mutable std::optional<std::map<size_t, size_t>> segments_;  // begin and end, once asked for in a run
  ForkMutex scratch_mutex_;
  runtime::Owner scratch_;
  void* scratch_data_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

struct RecordingPlaces {
  std::map<std::pair<Device, void*>, std::shared_ptr<TorchRecordingPlace>> all;  // guarded by ForkLock::Targets
};
constinit MadeOnce<RecordingPlaces, ForkLock::Targets> made_places;

template <class MemoryOf>  // (TorchRecordingPlace&) -> std::vector<RecordingSegment>
std::vector<RecordingSegment> of_all_places(MemoryOf memory_of) {
  std::vector<std::shared_ptr<TorchRecordingPlace>> places;
  if (RecordingPlaces* made = made_places.find()) {
    const ForkGuard guard(ForkLock::Targets);
    for (const auto& [key, place] : made->all) places.push_back(place);
  }
  std::vector<RecordingSegment> found;
  for (const auto& place : places)
    for (const RecordingSegment& memory : memory_of(*place)) found.push_back(memory);
  return found;
}

}  // namespace

std::shared_ptr<runtime::RecordingPlace> recording_place(Device device, void* stream) {
  RecordingPlaces& places = made_places.get([] { return RecordingPlaces(); });
  const ForkGuard guard(ForkLock::Targets);
  if (const auto found = places.all.find({device, stream}); found != places.all.end()) return found->second;
  const auto number = static_cast<c10::CaptureId_t>(places.all.size()) + 1;
  const auto place = std::make_shared<TorchRecordingPlace>(to_torch(device), make_stream(device), number);
  places.all.emplace(std::pair(device, stream), place);
  return place;
}

std::vector<RecordingSegment> recording_segments() {
  return of_all_places([](TorchRecordingPlace& place) { return place.segments(); });
}
std::vector<RecordingSegment> recording_scratch() {
  return of_all_places([](TorchRecordingPlace& place) { return place.scratch_memory(); });
}

}  // namespace cxxinductor::torch_bridge

#else
namespace cxxinductor::torch_bridge {
std::shared_ptr<runtime::RecordingPlace> recording_place(Device, void*) { return nullptr; }
std::vector<RecordingSegment> recording_segments() { return {}; }
std::vector<RecordingSegment> recording_scratch() { return {}; }
}  // namespace cxxinductor::torch_bridge
#endif

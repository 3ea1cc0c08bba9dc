// A device in software, for tests of recordings: kernels are functions on addresses, a stream runs them at once or, while it is
// recorded, keeps them. As the drivers of real devices do, recordings know the words of arguments and not what they mean.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/graphs/device_graph.h"
#include "runtime/kernels.h"
#include "runtime/plain_host.h"
#include "support/error.h"

namespace cxxinductor::runtime {

constexpr Device software_gpu{DeviceType::Cuda, 0};
using Words = std::vector<uint64_t>;
struct Task {
  int number = 0;  // tasks with the same number are the same code
  std::function<void(const Words&)> code;
  Words words;
};

class SoftwareGraph final : public DeviceGraph {
  // Another one each time, of those that the dependencies allow.
  void run_in_some_order() {
    std::vector<size_t> ready, open(order.size());
    for (size_t s = 0; s < order.size(); ++s)
      if ((open[s] = order[s].size()) == 0) ready.push_back(s);
    for (size_t done = 0; done < order.size(); ++done) {
      CXXI_CHECK(!ready.empty(), "dependencies in a circle");
      const size_t chosen = random() % ready.size(), step = ready[chosen];
      ready.erase(ready.begin() + static_cast<ptrdiff_t>(chosen));
      for (size_t t = step == 0 ? 0 : step_ends[step - 1]; t < step_ends[step]; ++t) tasks[t].code(tasks[t].words);
      for (size_t s = 0; s < order.size(); ++s)
        if (std::ranges::find(order[s], step) != order[s].end() && --open[s] == 0) ready.push_back(s);
    }
  }
  std::mt19937 random;

  // Numbers of the code, and words without those that are not compared.
  using Tasks = std::vector<std::pair<int, Words>>;
  Tasks compared(const SoftwareGraph& with) const {
    Tasks all;
    for (const Task& task : tasks) all.emplace_back(task.number, task.words);
    for (const Word& word : words) all[word.task].second[word.at] = 1000 * word.range + static_cast<uint64_t>(word.offset);
    for (const auto* places : {&own, &ignored, &with.ignored})
      for (const auto& [task, at] : *places) all[task].second[at] = 0;
    return all;
  }

 public:
  static inline std::atomic<int> alive = 0;
  SoftwareGraph() { ++alive; }
  ~SoftwareGraph() override { --alive; }

  struct Word {
    size_t task, at, range;
    int64_t offset;
    bool operator==(const Word&) const = default;
  };
  std::vector<Task> tasks;
  std::vector<Word> words;
  std::set<std::pair<size_t, size_t>> own, ignored;
  Dependencies order;             // empty: as they were queued
  std::vector<size_t> step_ends;  // steps as ranges of tasks

  std::vector<Difference> differences(const DeviceGraph& other_graph) const override {
    const auto& other = static_cast<const SoftwareGraph&>(other_graph);
    std::vector<Difference> found;
    const Tasks mine = compared(other), others = other.compared(*this);
    for (size_t s = 0; s < step_ends.size(); ++s) {
      const auto in_step = [s](const SoftwareGraph& graph, const Tasks& all) {
        const auto at = [&all](size_t task) { return all.begin() + static_cast<ptrdiff_t>(task); };
        return Tasks(at(s == 0 ? 0 : graph.step_ends[s - 1]), at(graph.step_ends[s]));
      };
      if (order != other.order || in_step(*this, mine) != in_step(other, others)) found.push_back({s, "other words"});
    }
    return found;
  }
  void ignore(const DeviceGraph& again) override {
    const auto& other = static_cast<const SoftwareGraph&>(again);
    const Tasks mine = compared(other), others = other.compared(*this);
    for (size_t t = 0; t < mine.size(); ++t)
      for (size_t at = 0; at < mine[t].second.size(); ++at)
        if (mine[t].second[at] != others[t].second[at]) ignored.emplace(t, at);
  }
  const bool* refuses_patches = nullptr;
  size_t launch(std::span<void* const> begins, void*) override {
    if (*refuses_patches) throw_unsupported("nodes are not patched");
    for (const Word& word : words) tasks[word.task].words[word.at] = reinterpret_cast<uintptr_t>(begins[word.range]) + static_cast<uint64_t>(word.offset);
    if (order.empty()) {
      for (const Task& task : tasks) task.code(task.words);
    } else {
      run_in_some_order();
    }
    return words.size();
  }
};

// The host, the place of recordings and the device in one: all memory is the CPU's.
class SoftwareDevice : public PlainHost, public GraphDevice {
 public:
  // name -> library call: adds tasks through queue(); results are allocated through empty_strided.
  using Allocated = std::function<void(const void* begin, int64_t bytes)>;
  using Library = std::function<void(SoftwareDevice&, std::span<const Operand>, std::span<const TensorView>, std::span<TensorRef>)>;

  SoftwareDevice() : PlainHost(1) {}
  std::map<std::string, Library> library;
  std::set<std::string> not_recordable;  // calls that say so themselves
  int recorded_calls = 0, reordered_recordings = 0;
  bool refuses_patches = false;  // in replays
  double bytes_per_second() const override { return 1e12; }
  double step_seconds() const override { return 3e-6; }

  void queue(Task task) {
    if (current_ == &recording_)
      recorded_.push_back(std::move(task));
    else
      task.code(task.words);
  }
  void queue_on(void* stream, Task task) {
    if (stream == &recording_)
      recorded_.push_back(std::move(task));
    else
      task.code(task.words);
  }
  void fail_if_recording() const {
    if (current_ == &recording_) throw_user_error("the device waits for its stream, which is recorded");
  }

  Owner allocate(Device, int64_t bytes, void** data) override { return PlainHost::allocate({}, bytes, data); }
  TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) override {
    TensorRef tensor = PlainHost::empty_strided(dtype, {}, sizes, strides);
    tensor.device = device;
    if (current_ == &recording_) {
      place_memory_.push_back(tensor);  // the place keeps it
      int64_t count = 1;
      for (const int64_t size : sizes) count *= size;
      storage_bytes_[tensor.data] = count * byte_size(dtype);
      (*allocated_)(tensor.data, count * byte_size(dtype));
    }
    return tensor;
  }
  // A library call took the tensor's memory as this one's, behind the work queued so far.
  void take_again(const TensorRef& tensor, int64_t bytes) {
    if (current_ != &recording_) return;
    storage_bytes_[tensor.data] = bytes;
    (*allocated_)(tensor.data, bytes);
  }
  int64_t storage_bytes(const TensorRef& tensor) override { return storage_bytes_.at(tensor.data); }
  void* current_stream(Device) override { return &user_; }
  std::shared_ptr<RecordingPlace> recording_place(Device, void*) override { return std::make_shared<Place>(*this); }
  std::unique_ptr<ExternCallee> resolve_extern(const plan::CallExtern& call) override { return std::make_unique<Callee>(*this, call.callee); }
  std::unique_ptr<GraphRecorder> record(void* stream, std::function<bool(const void*)> own) override {
    CXXI_CHECK(stream == &recording_, "expected the place's stream");
    recorded_.clear();
    return std::make_unique<Recorder>(*this, std::move(own));
  }

 private:
  class Callee final : public ExternCallee {
   public:
    Callee(SoftwareDevice& device, std::string name) : device_(device), name_(std::move(name)) {}
    bool recordable() const override { return !device_.not_recordable.contains(name_); }
    void call(Host&, std::span<const Operand> operands, std::span<const TensorView> destinations, std::span<TensorRef> results) const override {
      if (device_.current_ == &device_.recording_) ++device_.recorded_calls;
      device_.library.at(name_)(device_, operands, destinations, results);
    }

   private:
    SoftwareDevice& device_;
    const std::string name_;
  };

  class Place final : public RecordingPlace {
   public:
    explicit Place(SoftwareDevice& device) : device_(device) {}
    bool sees_allocations() const override { return true; }
    void run(const std::function<void(void* stream)>& body, const Allocated& allocated) override {
      const std::lock_guard lock(device_.mutex_);
      device_.allocated_ = &allocated;
      device_.current_ = &device_.recording_;
      try {
        body(&device_.recording_);
      } catch (...) {
        device_.current_ = &device_.user_;
        throw;
      }
      device_.current_ = &device_.user_;
    }
    bool owns(const void* address) const override {
      for (const TensorRef& tensor : device_.place_memory_)
        if (address >= tensor.data && address < static_cast<char*>(tensor.data) + 64) return true;
      return false;
    }
    Owner scratch(int64_t bytes, void** data) override {
      const std::lock_guard lock(device_.scratch_mutex_);
      if (bytes > device_.scratch_bytes_) {
        device_.scratch_ = device_.allocate(software_gpu, bytes, &device_.scratch_data_);
        device_.scratch_bytes_ = bytes;
      }
      *data = device_.scratch_data_;
      return device_.scratch_;
    }

   private:
    SoftwareDevice& device_;
  };

  class Recorder final : public GraphRecorder {
   public:
    Recorder(SoftwareDevice& device, std::function<bool(const void*)> own) : device_(device), own_(std::move(own)) {}
    size_t position() override { return device_.recorded_.size(); }
    void note(std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced, size_t address_words) override {
      step_ends_.push_back(device_.recorded_.size());
      for (; next_ < device_.recorded_.size(); ++next_) {
        const Words& words = device_.recorded_[next_].words;
        for (size_t at = 0; at < std::min(words.size(), address_words); ++at) find(words[at], at, ranges, replaced);
      }
    }
    std::vector<bool> uses_of_own_memory() override {
      std::vector<bool> uses;
      for (size_t t = 0; const size_t end : step_ends_) {
        uses.push_back(false);
        for (; t < end; ++t)
          for (size_t at = 0; at < device_.recorded_[t].words.size(); ++at) uses.back() = uses.back() || is_own(t, at, device_.recorded_[t].words[at]);
      }
      return uses;
    }
    std::unique_ptr<DeviceGraph> finish(const Dependencies* order) override {
      if (order) graph_->order = *order;
      device_.reordered_recordings += order ? 1 : 0;
      graph_->refuses_patches = &device_.refuses_patches;
      graph_->step_ends = std::move(step_ends_);
      graph_->tasks = std::move(device_.recorded_);
      for (size_t t = 0; t < graph_->tasks.size(); ++t)
        for (size_t at = 0; at < graph_->tasks[t].words.size(); ++at)
          if (is_own(t, at, graph_->tasks[t].words[at])) graph_->own.emplace(t, at);
      return std::move(graph_);
    }

   private:
    bool is_own(size_t task, size_t at, uint64_t value) const {
      const bool known = std::ranges::any_of(graph_->words, [&](const auto& word) { return word.task == task && word.at == at; });
      return !known && own_(reinterpret_cast<void*>(value));
    }
    void find(uint64_t value, size_t at, std::span<const MemoryRange> ranges, std::span<const ReplacedMemory> replaced) {
      const auto inside = [value](const MemoryRange& memory) {
        const auto begin = reinterpret_cast<uintptr_t>(memory.begin);
        return value >= begin && value < begin + static_cast<uint64_t>(memory.bytes);
      };
      const auto add = [&](size_t range, void* begin, int64_t offset) {
        graph_->words.push_back({next_, at, range, offset + static_cast<int64_t>(value - reinterpret_cast<uintptr_t>(begin))});
      };
      for (const ReplacedMemory& result : replaced)
        if (inside(result.memory) && next_ >= result.position) return add(result.range, result.memory.begin, result.offset);
      for (size_t r = 0; r < ranges.size(); ++r)
        if (inside(ranges[r])) return add(r, ranges[r].begin, 0);
    }

    SoftwareDevice& device_;
    const std::function<bool(const void*)> own_;
    size_t next_ = 0;
    std::vector<size_t> step_ends_;  // tasks recorded by then
    std::unique_ptr<SoftwareGraph> graph_ = std::make_unique<SoftwareGraph>();
  };

  char user_ = 0, recording_ = 0;
  void* current_ = &user_;
  std::mutex mutex_;
  std::vector<Task> recorded_;
  std::vector<TensorRef> place_memory_;
  std::map<const void*, int64_t> storage_bytes_;  // of what calls take while they are recorded
  const Allocated* allocated_ = nullptr;          // while a call is recorded
  std::mutex scratch_mutex_;
  Owner scratch_;
  void* scratch_data_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

// Kernels of the software device: y[i] = code(buffers, symbols), by number in the plan.
class SoftwareKernels : public KernelProvider {
 public:
  using Body = std::function<void(const Words& buffers, const Words& symbols)>;
  SoftwareKernels(SoftwareDevice& device, std::vector<Body> bodies) : device_(device) {
    for (size_t k = 0; k < bodies.size(); ++k) kernels_.push_back(std::make_unique<Kernel>(device, static_cast<int>(k), std::move(bodies[k])));
  }
  void prepare(const plan::Plan&, const InterruptCheck&) override {}
  const LoadedKernel& get(plan::KernelId kernel, plan::Variant) override { return *kernels_.at(kernel.index()); }
  uint64_t loads() const override { return late_kernels; }
  GraphDevice* graphs(Device) override { return &device_; }
  uint64_t late_kernels = 0;

 private:
  struct Kernel : LoadedKernel {
    Kernel(SoftwareDevice& d, int n, Body b) : device(d), number(n), body(std::move(b)) {}
    void launch(Host&, const LaunchArgs& args, void* stream) const override {
      Task task{number, {}, {}};
      for (void* buffer : args.buffers) task.words.push_back(reinterpret_cast<uintptr_t>(buffer));
      for (const int64_t symbol : args.symbols) task.words.push_back(static_cast<uint64_t>(symbol));
      task.code = [this, count = args.buffers.size()](const Words& words) {
        body(Words(words.begin(), words.begin() + static_cast<ptrdiff_t>(count)), Words(words.begin() + static_cast<ptrdiff_t>(count), words.end()));
      };
      device.queue_on(stream, std::move(task));
    }
    SoftwareDevice& device;
    int number;
    Body body;
  };
  SoftwareDevice& device_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

}  // namespace cxxinductor::runtime

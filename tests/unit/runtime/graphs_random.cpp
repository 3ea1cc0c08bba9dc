// Random plans on a device in software, called with inputs that share memory or are not aligned, and without memory: recordings have to
// give the results of the same calls step by step.
#include <cstring>
#include <random>

#include "unit/runtime/recorded_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;

namespace {

using Kind = plan::Buffer::Kind;

// What a library call does beside adding ten.
struct Habits {
  bool has_workspace = false, leaves_word_unset = false, hides_address = false;
};
constexpr Habits habits[] = {{}, {true, false, false}, {false, true, false}, {true, true, false}, {false, false, true}};
constexpr unsigned honest_habits = 4;

uint64_t word(const void* address) { return reinterpret_cast<uintptr_t>(address); }

void add_ten_as(const Habits& habit, uint64_t& unset, SoftwareDevice& device, const TensorView& x, std::span<const TensorView> destinations,
                std::span<TensorRef> results) {
  const auto count = static_cast<uint64_t>(x.sizes[0]);
  const uint64_t last = habit.leaves_word_unset ? ++unset : 0;
  const void* from = x.data;
  TensorRef workspace;
  if (habit.has_workspace) {
    const int64_t larger = x.sizes[0] + 3, one = 1;
    workspace = device.empty_strided(x.dtype, software_gpu, {&larger, 1}, {&one, 1});
    device.queue({200, [](const Words& w) { std::memcpy(floats(w[1]), floats(w[0]), w[2] * sizeof(float)); }, {word(from), word(workspace.data), count}});
    from = workspace.data;
  }
  if (destinations.empty()) results[0] = device.empty_strided(x.dtype, software_gpu, x.sizes, x.strides);
  const void* const to = destinations.empty() ? results[0].data : destinations[0].data;
  const uint64_t mask = habit.hides_address ? ~uint64_t{0} : 0;
  device.queue({habit.hides_address ? 201 : 202,
                [mask](const Words& w) {
                  for (uint64_t i = 0; i < w[2]; ++i) floats(w[1])[i] = floats(w[0] ^ mask)[i] + 10;
                },
                {word(from) ^ mask, word(to), count, last}});
}

class RandomPlan {
 public:
  DevicePlanBuilder b;

  RandomPlan(std::mt19937& random, int inputs) : random_(random), some_hide_(random() % 4 == 0), some_run_alone_(random() % 2 == 0) {
    for (int i = 0; i < inputs; ++i) live_.push_back(b.gpu_input(fmt::format("x{}", i).c_str()));
    const int count = 5 + static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      add_step();
      if (random() % 3 == 0) end_one();
    }
    for (const plan::BufferId id : live_) {
      if (kind(id) == Kind::Input) continue;
      auto out = id;
      if (kind(id) == Kind::Arena) b.add(id, out = allocated());
      b.output(out);
    }
  }

 private:
  Kind kind(plan::BufferId id) const { return b.plan.buffers[id].kind; }
  plan::BufferId buffer(Kind kind) { return b.on_gpu(fmt::format("t{}", b.plan.buffers.size()).c_str(), kind); }
  plan::BufferId arena() { return b.arena(fmt::format("t{}", b.plan.buffers.size()).c_str()); }
  plan::BufferId allocated() {
    const auto id = buffer(Kind::Standalone);
    b.allocate(id);
    return id;
  }
  std::string callee() {
    const bool alone = some_run_alone_ && random_() % 4 == 0;
    return fmt::format("test::{}{}", alone ? "alone" : "call", random_() % (some_hide_ ? std::size(habits) : honest_habits));
  }
  void add_step() {
    const size_t chosen = random_() % live_.size();
    const auto from = live_[chosen];
    const unsigned what = random_() % 8;
    if (what == 0 && kind(from) == Kind::Input) return b.add(from, from);
    if (what <= 1 && kind(from) != Kind::Input) {
      const auto to = buffer(kind(from) == Kind::Arena ? Kind::Arena : Kind::Standalone);
      b.plan.buffers[to].arena_offset = b.plan.buffers[from].arena_offset;
      b.plan.steps.emplace_back(plan::Reuse{from, to});
      b.add(to, to);
      live_[chosen] = to;
      return;
    }
    auto to = from;
    if (what <= 3)
      b.call(callee(), {b.whole(from)}, {to = buffer(Kind::ExternOwned)}, false);
    else if (what == 4)
      b.call(callee(), {b.whole(from)}, {to = random_() % 2 == 0 ? arena() : allocated()}, true);
    else
      b.add(from, to = what == 5 ? allocated() : arena());
    live_.push_back(to);
  }
  void end_one() {
    const auto ended = live_.begin() + static_cast<ptrdiff_t>(random_() % live_.size());
    if (kind(*ended) == Kind::Input) return;
    if (kind(*ended) != Kind::Arena) b.free(*ended);
    live_.erase(ended);
  }

  std::mt19937& random_;
  const bool some_hide_, some_run_alone_;
  std::vector<plan::BufferId> live_;
};

// Views of one memory: `distance` elements lie between their beginnings.
std::vector<TensorRef> make_inputs(SoftwareDevice& device, int count, int64_t size, int64_t distance, float first) {
  const int64_t all = size + distance * count, one = 1;
  const TensorRef memory = device.empty_strided(DType::F32, software_gpu, {&all, 1}, {&one, 1});
  for (int64_t i = 0; i < all; ++i) static_cast<float*>(memory.data)[i] = first + static_cast<float>(i % 50);
  std::vector<TensorRef> inputs;
  for (int i = 0; i < count; ++i) {
    inputs.push_back(device.alias(memory, static_cast<float*>(memory.data) + i * distance, DType::F32, {&size, 1}, {&one, 1}));
    inputs.back().device = software_gpu;
  }
  return inputs;
}

}  // namespace

TEST_CASE("random plans write and return what they do without recordings", "[graphs]") {
  const uint32_t seed = GENERATE(range(0u, 100u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  DeviceRun run(seed % 3 == 0 ? UseGraphs::AtOnce : UseGraphs::On);
  uint64_t unset = 0;
  for (size_t h = 0; h < std::size(habits); ++h) {
    const auto call = [h, &unset](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView> destinations,
                                  std::span<TensorRef> results) { add_ten_as(habits[h], unset, device, operands[0].tensor, destinations, results); };
    run.device.library[fmt::format("test::call{}", h)] = run.device.library[fmt::format("test::alone{}", h)] = call;
    run.device.not_recordable.insert(fmt::format("test::alone{}", h));
  }
  const int inputs = 1 + static_cast<int>(random() % 3);
  run.load(RandomPlan(random, inputs).b);
  for (int call = 0; call < 25; ++call) {
    CAPTURE(call);
    const int64_t size = random() % 3 == 0 ? 5 : 300;
    const int64_t distances[] = {size + 20, (size + 31) / 16 * 16, 0, 1};
    const int64_t distance = distances[random() % std::size(distances)];
    const auto make = [&] { return make_inputs(run.device, inputs, size, distance, static_cast<float>(call)); };
    const auto call_with = [&](const std::vector<TensorRef>& tensors, bool graphs) {
      CallOptions options;
      options.graphs = graphs;
      return run.executable->run(run.device, std::vector<Value>(tensors.begin(), tensors.end()), options);
    };
    const std::vector<TensorRef> written = make(), wanted_written = make();
    const std::vector<Value> wanted = call_with(wanted_written, false);
    std::vector<Value> results;
    if (random() % 4 == 0) run.device.failing_allocation = run.device.allocations + static_cast<int64_t>(random() % 12);
    try {
      results = call_with(written, true);
    } catch (const UserError&) {
      run.device.failing_allocation = -1;
      continue;  // what follows is as if this call had not been
    }
    run.device.failing_allocation = -1;
    const auto is_same = [size](const TensorRef& a, const TensorRef& b) { return std::memcmp(a.data, b.data, static_cast<size_t>(size) * sizeof(float)) == 0; };
    for (size_t r = 0; r < results.size(); ++r) REQUIRE(is_same(results[r].tensor, wanted[r].tensor));
    for (size_t i = 0; i < written.size(); ++i) REQUIRE(is_same(written[i], wanted_written[i]));
  }
}

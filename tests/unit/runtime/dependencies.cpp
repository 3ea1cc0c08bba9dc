#include "runtime/graphs/dependencies.h"

#include <array>
#include <random>

#include "unit/catch.h"

using namespace cxxinductor::runtime;

namespace {

std::array<char, 256> all_memory;

MemoryRange bytes(int begin, int count) { return {all_memory.data() + begin, count}; }

// All pairs, without reduction.
bool conflict(const Accesses& a, const Accesses& b) {
  const auto meet = [](const std::vector<MemoryRange>& some, const std::vector<MemoryRange>& others) {
    for (const MemoryRange& x : some)
      for (const MemoryRange& y : others)
        if (x.bytes > 0 && y.bytes > 0 && static_cast<char*>(x.begin) < static_cast<char*>(y.begin) + y.bytes &&
            static_cast<char*>(y.begin) < static_cast<char*>(x.begin) + x.bytes)
          return true;
    return false;
  };
  return meet(a.written, b.written) || meet(a.written, b.read) || meet(a.read, b.written);
}

}  // namespace

TEST_CASE("readers of one buffer do not wait for one another", "[graphs]") {
  const std::vector<Accesses> steps{
      {{}, {bytes(0, 16)}}, {{bytes(0, 16)}, {bytes(16, 16)}}, {{bytes(0, 8)}, {bytes(32, 16)}}, {{bytes(16, 32)}, {bytes(48, 16)}}};
  CHECK(find_dependencies(steps) == Dependencies{{}, {0}, {0}, {1, 2}});
}

TEST_CASE("a step that overwrites memory waits for its readers and not for what they wait for", "[graphs]") {
  const std::vector<Accesses> steps{{{}, {bytes(0, 16)}}, {{bytes(0, 16)}, {bytes(16, 16)}}, {{}, {bytes(4, 4)}}, {{bytes(8, 8)}, {bytes(32, 4)}}};
  CHECK(find_dependencies(steps) == Dependencies{{}, {0}, {1}, {0}});
}

TEST_CASE("a step that reads what it writes does not wait for itself", "[graphs]") {
  const std::vector<Accesses> steps{{{bytes(0, 16)}, {bytes(0, 16)}}, {{bytes(0, 16), bytes(0, 0)}, {bytes(0, 16)}}};
  CHECK(find_dependencies(steps) == Dependencies{{}, {0}});
}

TEST_CASE("dependencies order all steps that use the same memory, and only those", "[graphs]") {
  std::mt19937 random(1);
  const auto number = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Accesses> steps(20);
    for (Accesses& step : steps) {
      for (int i = number(3); i > 0; --i) step.read.push_back(bytes(number(200), number(40)));
      for (int i = number(2); i >= 0; --i) step.written.push_back(bytes(number(200), number(20)));
    }
    const Dependencies found = find_dependencies(steps);
    std::array<std::array<bool, 20>, 20> waits{}, expected{};
    for (size_t j = 0; j < steps.size(); ++j) {
      for (const uint32_t i : found[j]) {
        waits[j][i] = true;
        for (size_t k = 0; k < i; ++k) waits[j][k] |= waits[i][k];
      }
      for (size_t i = 0; i < j; ++i) {
        if (!conflict(steps[i], steps[j])) continue;
        expected[j][i] = true;
        for (size_t k = 0; k < i; ++k) expected[j][k] |= expected[i][k];
      }
    }
    CHECK(waits == expected);
  }
}

TEST_CASE("branches of small steps save their latency, and memory traffic is shared", "[graphs]") {
  std::vector<Accesses> steps{{{}, {bytes(0, 10)}}, {{bytes(0, 10)}, {bytes(10, 10)}}, {{bytes(0, 10)}, {bytes(20, 10)}}};
  EstimatedTime time = estimate_time(steps, find_dependencies(steps), 1e9, 1e-6);
  CHECK(time.in_order == Approx(3e-6 + 50e-9));
  CHECK(time.in_parallel == Approx(2e-6 + 30e-9));
  time = estimate_time(steps, find_dependencies(steps), 1e6, 1e-9);
  CHECK(time.in_parallel == Approx(50e-6).epsilon(1e-3));
}

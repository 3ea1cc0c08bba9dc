// Seconds of each stage and pass of a compile.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cxxinductor::driver {

struct StageTime {
  std::string stage;
  double seconds = 0;
};

struct StageTimer {
  std::vector<StageTime> times;              // in the order that they ended
  std::map<std::string, double> pass_times;  // seconds by pass, of all its runs

  template <class F>
  auto measure(std::string stage, F&& work) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    times.push_back({std::move(stage), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()});
    return result;
  }
};

}  // namespace cxxinductor::driver

// Seconds of each stage and pass of a compile.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cxxinductor::driver {

struct StageTime {
  std::string stage;
  double seconds = 0;  // without those of stages that ran inside of it
};

struct StageTimer {
  std::vector<StageTime> times;              // in the order that they ended; a stage that ran twice is there twice
  std::map<std::string, double> pass_times;  // seconds by pass, of all its runs

  template <class F>
  auto measure(std::string stage, F&& work) {
    const double outer = std::exchange(nested_, 0);
    const auto start = std::chrono::steady_clock::now();
    const auto record = [&] {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      times.push_back({std::move(stage), seconds - nested_});
      nested_ = outer + seconds;
    };
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      work();
      record();
    } else {
      auto result = work();
      record();
      return result;
    }
  }

 private:
  double nested_ = 0;  // seconds of the stages that ended inside of the one that runs
};

}  // namespace cxxinductor::driver

// The time of a call, compiled and op by op through ATen, measured in turns in one process.
#include "cli/bench.h"

#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>

#include "cli/inputs.h"
#include "cli/quiet.h"
#include "ir/device_types.h"
#include "support/error.h"
#include "torch_bridge/types.h"

namespace cxxinductor::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::vector<int> gpus_of(const readers::Program& program) {
  std::vector<int> gpus;
  for (const model::CallValueInfo& value : program.calls.values)
    if (value.kind == model::CallValueInfo::Kind::Tensor && has_streams(value.device) && std::find(gpus.begin(), gpus.end(), value.device.index) == gpus.end())
      gpus.push_back(value.device.index);
  return gpus;
}

// Seconds of a call. A sample is as many calls as take a few milliseconds.
class Timer {
 public:
  Timer(std::function<void()> call, const std::vector<int>& gpus) : gpus_(gpus), call_(std::move(call)) {
    constexpr double warm_up = 0.3, sample = 5e-3;
    const Clock::time_point start = Clock::now();
    int64_t calls = 0;
    do {
      call_();
      synchronize();
      ++calls;
    } while (seconds_since(start) < warm_up);
    calls_ = std::max<int64_t>(1, static_cast<int64_t>(sample / (seconds_since(start) / static_cast<double>(calls))));
  }
  void measure() {
    const Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < calls_; ++i) call_();
    synchronize();
    samples_.push_back(seconds_since(start) / static_cast<double>(calls_));
  }
  // Of the samples; 0.5: the median.
  double quantile(double part) const {
    std::vector<double> sorted = samples_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(part * static_cast<double>(sorted.size() - 1) + 0.5)];
  }

 private:
  void synchronize() const {
    for (const int gpu : gpus_) at::detail::getCUDAHooks().deviceSynchronize(static_cast<c10::DeviceIndex>(gpu));
  }
  std::vector<int> gpus_;
  std::function<void()> call_;
  int64_t calls_ = 1;
  std::vector<double> samples_;
};

void print_row(std::string_view name, const Timer& timer) {
  std::cout << fmt::format("{:<10}{:>12}   quartiles {}, {}\n", name, time_text(timer.quantile(0.5)), time_text(timer.quantile(0.25)),
                           time_text(timer.quantile(0.75)));
}

}  // namespace

void check_samples(const Arguments& arguments) {
  if (arguments.samples < 1) throw_user_error("--samples: expected at least 1, found {}", arguments.samples);
}

void compare_times(std::function<void()> aten_call, std::function<void()> compiled_call, const std::vector<int>& gpus, double load_time, int64_t samples) {
  Timer aten(std::move(aten_call), gpus), compiled(std::move(compiled_call), gpus);
  for (int64_t i = 0; i < samples; ++i) {
    aten.measure();
    compiled.measure();
  }
  std::cout << fmt::format("load      {:>12}\n", time_text(load_time));
  print_row("ATen", aten);
  print_row("compiled", compiled);
  std::cout << fmt::format("ATen / compiled: {:.2f} (medians of {} samples, {} threads)\n", aten.quantile(0.5) / compiled.quantile(0.5), samples,
                           at::get_num_threads());
}

int bench(const Arguments& arguments) {
  check_samples(arguments);
  const ModelFile file = read_model(arguments.file);
  const Options options = library_options(arguments);
  Options op_by_op = options;
  op_by_op.tier = "aten";
  const Model reference = load_quietly(arguments.file, op_by_op);
  const Clock::time_point start = Clock::now();
  const Model model = load(arguments.file, options);
  const double load_time = seconds_since(start);

  const Inputs inputs = choose_inputs(file, arguments);
  std::cout << "inputs: " << inputs.origin << "\n";
  for (const c10::IValue& input : inputs.values) std::cout << "  " << value_text(input) << "\n";
  const auto call = [](const Model& of, const std::vector<c10::IValue>& values) { return [&of, given = copies(values)] { (void)of.run(given); }; };
  compare_times(call(reference, inputs.values), call(model, inputs.values), gpus_of(file.program), load_time, arguments.samples);
  return success;
}

}  // namespace cxxinductor::cli

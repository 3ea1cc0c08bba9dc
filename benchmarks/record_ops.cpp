// Cost of recording an op on the recorded device, beside eager's cost of running it: additions of small tensors.
// Prints JSON, microseconds per op: the first recording, whose metadata is inferred; one that is compared with it; eager.
#include <ATen/ATen.h>
#include <cxxinductor/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace {

constexpr int ops = 1000;

// Of `ops` additions to x, without what a sync point does.
double microseconds(at::Tensor& x, const at::Tensor& y) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < ops; ++i) x = x + y;
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count() / ops;
}

double median_of(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  const c10::InferenceMode below_autograd;
  cxxinductor::register_device("cxxi", c10::kCPU);
  const at::Tensor a = at::ones({8}), b = at::ones({8});
  const at::Tensor x = a.to("cxxi"), y = b.to("cxxi");
  at::Tensor sum = x;  // lives at the sync point, or there would be nothing to run
  const double first = microseconds(sum, y);
  cxxinductor::mark_step();
  std::vector<double> recorded, eager;
  for (int repeat = 0; repeat < 21; ++repeat) {
    sum = x;
    recorded.push_back(microseconds(sum, y));
    cxxinductor::mark_step();
    at::Tensor eager_sum = a;
    eager.push_back(microseconds(eager_sum, b));
  }
  std::printf("{\"first\": %.3f, \"known\": %.3f, \"eager\": %.3f}\n", first, median_of(recorded), median_of(eager));
}

// An op and a reduction of one's own inside of compiled kernels: the library defines them for eager PyTorch, and registers what they compute.
//
//   custom_op            prints the difference from eager and what was compiled
#include <ATen/ATen.h>
#include <cxxinductor/extend.h>
#include <cxxinductor/function.h>
#include <torch/library.h>

#include <iostream>

namespace {

// What eager runs.
at::Tensor swish(const at::Tensor& x, double beta) { return x * at::sigmoid(beta * x); }
at::Tensor spread(const at::Tensor& x, at::IntArrayRef dim, bool keepdim) { return at::amax(x, dim, keepdim) - at::amin(x, dim, keepdim); }

TORCH_LIBRARY(example, library) {
  library.def("swish(Tensor x, float beta) -> Tensor");
  library.impl("swish", c10::DispatchKey::CompositeExplicitAutograd, swish);
  library.def("spread(Tensor x, int[] dim, bool keepdim=False) -> Tensor");
  library.impl("spread", c10::DispatchKey::CompositeExplicitAutograd, spread);
}

void register_ops() {
  cxxinductor::register_op({.overload = "example::swish",
                            .arguments = {"x", "beta"},
                            .transcendental = true,
                            .cuda = "example_swish({0}, {1})",
                            .cpu = "example_swish({0}, {1})",
                            .cuda_source = "template <class T> __device__ T example_swish(T x, T beta) { return x / (T(1) + exp(-beta * x)); }",
                            .cpu_source = "template <class T> inline T example_swish(T x, T beta) { return x / (T(1) + T(__builtin_exp(-beta * x))); }",
                            .standard_result = true,
                            .definition = "result = mul(x, sigmoid(mul(beta, x)))"});
  cxxinductor::register_reduction({.overload = "example::spread",
                                   .state = "low:T high:T",
                                   .results = "spread:T",
                                   .start = "low = highest, high = lowest",
                                   .lift = "low = x, high = x",
                                   .merge = "low = minimum(a.low, b.low), high = maximum(a.high, b.high)",
                                   .finish = "spread = sub(high, low)",
                                   .order_matters = false,
                                   .standard_result = true});
}

at::Tensor call_swish(const at::Tensor& x, double beta) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("example::swish", "").typed<at::Tensor(const at::Tensor&, double)>();
  return op.call(x, beta);
}
at::Tensor call_spread(const at::Tensor& x) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("example::spread", "").typed<at::Tensor(const at::Tensor&, at::IntArrayRef, bool)>();
  const int64_t last[] = {-1};
  return op.call(x, last, true);
}

// Scaled to a spread of one after the activation.
at::Tensor normalized(const at::Tensor& x) {
  const at::Tensor activated = call_swish(x + 1, 1.5);
  return activated / call_spread(activated);
}

}  // namespace

int main() {
  register_ops();
  const at::Tensor x = at::randn({64, 500}, at::hasCUDA() ? at::kCUDA : at::kCPU);
  const auto compiled = cxxinductor::compile([](at::Tensor input) { return normalized(input); }, cxxinductor::Options());
  const double difference = (compiled(x) - normalized(x)).abs().max().item<double>();
  std::cout << "largest difference from eager: " << difference << '\n' << compiled.explain() << '\n';
  return difference < 1e-4 ? 0 : 1;
}

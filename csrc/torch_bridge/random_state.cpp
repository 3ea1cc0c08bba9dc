// cxxinductor::philox_state(int[] counts, int[] numbers, Device device) -> Tensor: what fused random ops need of torch's
// generator, each for its count.
//
// The generator advances as ATen's own kernels for `count` elements would advance it, one after the other: by four words a call of each
// thread, where a call gives `numbers` elements theirs (calc_execution_policy in ATen/native/cuda/DistributionTemplates.h, torch 2.11).
#include <ATen/Context.h>
#include <ATen/Tensor.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/tensor.h>

#include <mutex>
#include <vector>

#include "ir/device_types.h"
#include "ir/random_threads.h"
#include "support/error.h"
#include "sym/integer.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/registered_ops.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr int64_t words_of_call = 4;

// i64[3 * counts] on the device: of each count the seed, the number of the next call, and threads.
at::Tensor philox_state(at::IntArrayRef counts, at::IntArrayRef numbers, at::Device device) {
  const Device drawn_on = from_torch(device);
  if (!has_streams(drawn_on)) throw_user_error("philox_state is for GPUs, found {}", device.str());
  if (counts.size() != numbers.size()) throw_user_error("philox_state takes as many counts as numbers, found {} and {}", counts.size(), numbers.size());
  for (const int64_t each : numbers)
    if (each <= 0) throw_user_error("philox_state draws at least one number a call, found {}", each);
  const Target target = target_for(drawn_on, Options());
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::vector<int64_t> states;
  states.reserve(3 * counts.size());
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    const auto seed = static_cast<int64_t>(generator.current_seed());
    auto offset = static_cast<int64_t>(generator.get_offset());
    for (size_t i = 0; i < counts.size(); ++i) {
      const int64_t threads = random_threads(counts[i], target);
      states.insert(states.end(), {seed, offset / words_of_call, threads});
      if (counts[i] > 0) offset += sym::ceil_quotient(counts[i], threads * numbers[i]) * words_of_call;
    }
    generator.set_offset(static_cast<uint64_t>(offset));
  }
  return at::tensor(states, at::kLong).to(device, /*non_blocking=*/true);
}

const RegisteredOps random_ops([](torch::Library& library) {
  library.def("philox_state(int[] counts, int[] numbers, Device device) -> Tensor", {at::Tag::nondeterministic_seeded});
  library.impl("philox_state", c10::DispatchKey::CompositeExplicitAutograd, philox_state);
});

}  // namespace
}  // namespace cxxinductor::torch_bridge

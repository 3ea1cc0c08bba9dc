// cxxinductor::philox_state(int count, int numbers, Device device) -> Tensor: what a fused random op needs of torch's
// generator.
//
// The generator advances as ATen's own kernel for `count` elements would advance it: by four words a call of each thread,
// where a call gives `numbers` elements theirs (calc_execution_policy in ATen/native/cuda/DistributionTemplates.h, torch 2.11).
#include <ATen/Context.h>
#include <ATen/Tensor.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/tensor.h>

#include <mutex>

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

// i64[3] on the device: seed, number of the next call, threads.
at::Tensor philox_state(int64_t count, int64_t numbers, at::Device device) {
  const Device drawn_on = from_torch(device);
  if (!has_streams(drawn_on)) throw_user_error("philox_state is for GPUs, found {}", device.str());
  if (numbers <= 0) throw_user_error("philox_state draws at least one number a call, found {}", numbers);
  const Target target = target_for(drawn_on);
  const int64_t threads = random_threads(count, target);
  at::Generator generator = at::globalContext().defaultGenerator(device);
  int64_t seed = 0, offset = 0;
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    seed = static_cast<int64_t>(generator.current_seed());
    offset = static_cast<int64_t>(generator.get_offset());
    if (count > 0) generator.set_offset(static_cast<uint64_t>(offset + sym::ceil_quotient(count, threads * numbers) * words_of_call));
  }
  return at::tensor({seed, offset / words_of_call, threads}, at::kLong).to(device, /*non_blocking=*/true);
}

const RegisteredOps ops([](torch::Library& library) {
  library.def("philox_state(int count, int numbers, Device device) -> Tensor", {at::Tag::nondeterministic_seeded});
  library.impl("philox_state", c10::DispatchKey::CompositeExplicitAutograd, philox_state);
});

}  // namespace
}  // namespace cxxinductor::torch_bridge

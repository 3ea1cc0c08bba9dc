#include "ir/machine.h"

#include <algorithm>
#include <iterator>

#include "support/error.h"

namespace cxxinductor {
namespace {

constexpr Machine machines[] = {
#define MACHINE(...) Machine{__VA_ARGS__},
#include "ir/machines.def"
#undef MACHINE
};

}  // namespace

const Machine& find_machine(DeviceType device, std::string_view arch) {
  const auto found = std::ranges::find_if(machines, [&](const Machine& machine) { return machine.device == device && arch.starts_with(machine.arch); });
  CXXI_CHECK(found != std::end(machines), "machines.def has no row for unknown processors of {}", to_string(device));
  return *found;
}

std::string to_string(const Machine& machine) {
  // All members by name: a new one does not compile until it stands here.
  const auto& [device, arch, shared_bytes_per_block, registers_per_multiprocessor, bytes, bytes_alone, l2_bytes, instructions, library_flops, mma_flops,
               wgmma_flops, launch, launch_bytes, graph_step, library_overhead, template_overhead, library_split_overhead, small_product, small_block,
               warpgroup_step_overhead, exposed_store, warpgroup_start] = machine;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", to_string(device), arch, shared_bytes_per_block,
                     registers_per_multiprocessor, bytes, bytes_alone, l2_bytes, instructions, library_flops, mma_flops, wgmma_flops, launch, launch_bytes,
                     graph_step, library_overhead, template_overhead, library_split_overhead, small_product, small_block, warpgroup_step_overhead,
                     exposed_store, warpgroup_start);
}

}  // namespace cxxinductor

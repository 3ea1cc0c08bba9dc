#include "ir/target.h"

#include <algorithm>

#include "support/error.h"

namespace cxxinductor {

std::string to_string(const Target& target) {
  // All members by name: a new one does not compile until it stands here.
  const auto& [name, device, arch, vector_bytes, warp, max_threads_per_block, multiprocessors, threads_per_multiprocessor, machine] = target;
  return fmt::format("{} {} {} vector_bytes {} warp {} max_threads_per_block {} multiprocessors {} threads_per_multiprocessor {} machine {}", name,
                     to_string(device), arch, vector_bytes, warp, max_threads_per_block, multiprocessors, threads_per_multiprocessor, to_string(machine));
}

Target cuda_target(std::string arch, int multiprocessors) {
  Target target;
  target.name = "cuda";
  target.device = DeviceType::Cuda;
  target.machine = find_machine(target.device, arch);
  target.arch = std::move(arch);
  target.vector_bytes = 16;
  target.warp = 32;
  target.max_threads_per_block = 1024;
  target.multiprocessors = multiprocessors;
  return target;
}

Target cpu_target(std::string arch, int threads) {
  Target target;
  target.name = "cpu";
  target.device = DeviceType::Cpu;
  target.machine = find_machine(target.device, arch);
  target.vector_bytes = arch == "x86-64-v4" ? 64 : arch == "x86-64-v3" ? 32 : 16;
  target.arch = std::move(arch);
  target.multiprocessors = threads;
  return target;
}

Targets::Targets(Target main) : Targets(Device{main.device, 0}, main) {}
Targets::Targets(Device device, Target target) { list_.emplace_back(device, std::move(target)); }

void Targets::add(Device device, Target target) {
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const auto& entry) { return entry.first == device; });
  if (found != list_.end())
    found->second = std::move(target);
  else
    list_.emplace_back(device, std::move(target));
  std::sort(list_.begin() + 1, list_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

const Target& Targets::of(Device device) const {
  for (const auto& [known, target] : list_)
    if (known == device) return target;
  std::string all;
  for (const auto& entry : list_) all += (all.empty() ? "" : ", ") + to_string(entry.first);
  throw_unsupported("nothing is compiled for {}: expected a device among {}", to_string(device), all);
}

Device Targets::main_device() const {
  CXXI_CHECK(!list_.empty(), "there is no target");
  return list_.front().first;
}

std::vector<Device> Targets::devices() const {
  std::vector<Device> devices;
  for (const auto& entry : list_) devices.push_back(entry.first);
  return devices;
}

}  // namespace cxxinductor

#include "ir/target.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "support/error.h"

namespace cxxinductor {
namespace {

// Reached rates by architecture, a multiprocessor: memory and library of sm_90 as measured on an H200 of 132, the
// others from data sheets, times what sm_90 reaches of its own.
struct Rates {
  std::string_view arch;
  double memory, library, mma, wgmma;
};
constexpr Rates rates[] = {
    {"sm_80", 1.4e12 / 108, 250e12 / 108, 230e12 / 108, 0},   {"sm_86", 0.8e12 / 84, 65e12 / 84, 60e12 / 84, 0},
    {"sm_89", 0.85e12 / 128, 150e12 / 128, 140e12 / 128, 0},  {"sm_90", 4.2e12 / 132, 720e12 / 132, 420e12 / 132, 640e12 / 132},
    {"sm_100", 6.5e12 / 148, 1500e12 / 148, 420e12 / 148, 0}, {"sm_120", 1.6e12 / 170, 380e12 / 170, 360e12 / 170, 0}};

}  // namespace

std::string to_string(const Target& target) {
  // All members by name: a new one does not compile until it stands here.
  const auto& [name, device, arch, vector_bytes, warp, max_threads_per_block, multiprocessors, threads_per_multiprocessor,
               shared_bytes_per_block, registers_per_thread, bytes_per_second, library_flops, template_flops, warpgroup_flops] = target;
  return fmt::format(
      "{} {} {} vector_bytes {} warp {} max_threads_per_block {} multiprocessors {} threads_per_multiprocessor {} shared_bytes_per_block {} "
      "registers_per_thread {} bytes_per_second {} library_flops {} template_flops {} warpgroup_flops {}",
      name, to_string(device), arch, vector_bytes, warp, max_threads_per_block, multiprocessors, threads_per_multiprocessor,
      shared_bytes_per_block, registers_per_thread, bytes_per_second, library_flops, template_flops, warpgroup_flops);
}

Target cuda_target(std::string arch, int multiprocessors) {
  Target target;
  target.name = "cuda";
  target.device = DeviceType::Cuda;
  // Shared memory a block may opt in to (CUDA programming guide): 64 KB on sm_75, 163 KB on sm_80 and sm_87, 99 KB on
  // other sm_8x and on sm_12x, 227 KB on sm_90 and sm_10x.
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return arch.starts_with(name); });
  };
  target.shared_bytes_per_block = is_one_of({"sm_7"})             ? 64 * 1024
                                  : is_one_of({"sm_80", "sm_87"}) ? 163 * 1024
                                  : is_one_of({"sm_8", "sm_12"})  ? 99 * 1024
                                                                  : 227 * 1024;
  for (const Rates& row : rates) {
    if (!arch.starts_with(row.arch)) continue;
    target.bytes_per_second = row.memory * multiprocessors;
    target.library_flops = row.library * multiprocessors;
    target.template_flops = row.mma * multiprocessors;
    // Instructions of sm_90a, which code for sm_90 alone may not have.
    if (arch.ends_with("a")) target.warpgroup_flops = row.wgmma * multiprocessors;
  }
  target.arch = std::move(arch);
  target.vector_bytes = 16;
  target.warp = 32;
  target.max_threads_per_block = 1024;
  target.multiprocessors = multiprocessors;
  target.registers_per_thread = 255;
  return target;
}

Target cpu_target(std::string arch, int threads) {
  Target target;
  target.name = "cpu";
  target.device = DeviceType::Cpu;
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

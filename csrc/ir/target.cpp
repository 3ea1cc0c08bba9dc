#include "ir/target.h"

#include "support/error.h"

namespace cxxinductor {

Target cuda_target(std::string arch, int multiprocessors) {
  Target target;
  target.name = "cuda";
  target.device = DeviceType::Cuda;
  // Shared memory a block may opt in to: 163 KB on sm_80, 99 KB on sm_86/89, 227 KB on sm_90 (CUDA programming guide).
  target.shared_bytes_per_block = arch.starts_with("sm_80") ? 163 * 1024 : arch.starts_with("sm_8") ? 99 * 1024 : 227 * 1024;
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
  target.vector_bytes = arch == "x86-64-v4" ? 64 : 32;
  target.arch = std::move(arch);
  target.multiprocessors = threads;
  return target;
}

}  // namespace cxxinductor

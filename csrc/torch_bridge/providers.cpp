#include "torch_bridge/providers.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "runtime/compile_pool.h"
#include "runtime/cpu/cpu_kernels.h"
#include "runtime/cpu/host_compiler.h"
#include "runtime/cuda/cuda_kernels.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvrtc.h"
#include "support/error.h"

namespace cxxinductor::torch_bridge {
namespace {

namespace fs = std::filesystem;

// The folder of the shared library that holds `address`; empty when unknown.
fs::path library_folder(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path path = fs::canonical(found.dli_fname, error);
  return error ? fs::path() : path.parent_path();
}

// NVRTC as torch's wheel brings it: site-packages/torch/lib -> site-packages/nvidia/cu13/lib.
std::vector<std::string> nvrtc_candidates() {
  std::vector<std::string> names;
  const fs::path torch_lib = library_folder(reinterpret_cast<const void*>(&at::get_num_threads));
  if (!torch_lib.empty()) names.push_back((torch_lib / "../../nvidia/cu13/lib/libnvrtc.so.13").string());
  return names;
}

std::string default_cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/cxxinductor";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') return std::string(home) + "/.cache/cxxinductor";
  return {};
}

// Never throws: where TMPDIR names no folder, /tmp is tried.
std::string temporary_folder() {
  std::error_code error;
  const fs::path found = fs::temp_directory_path(error);
  return error ? "/tmp" : found.string();
}

// A cached kernel is as good as the build that wrote it: the library's own size and time of change name the build.
std::string build_id() {
  Dl_info found{};
  struct stat status {};
  if (dladdr(reinterpret_cast<const void*>(&target_for), &found) == 0 || stat(found.dli_fname, &status) != 0) return "unknown";
  return fmt::format("{}-{}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::string cpu_arch() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return "x86-64-v4";
  return "x86-64-v3";
}

// What all compiles of the process share. Never destroyed: kernels may outlive main's statics.
struct Services {
  runtime::CompilePool pool;
  runtime::HostCompiler compiler{runtime::HostCompilerConfig{{}, temporary_folder()}};
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<runtime::DiskCache>> caches;
  std::unique_ptr<runtime::CudaDriver> driver;
  std::unique_ptr<runtime::Nvrtc> nvrtc;

  explicit Services(int threads) : pool(threads) {}

  runtime::DiskCache* cache(const Options& options) {
    if (options.cache == "off") return nullptr;
    const std::string folder = options.cache_dir.empty() ? default_cache_folder() : options.cache_dir;
    const std::lock_guard lock(mutex);
    auto& found = caches[folder];
    if (!found) found = std::make_unique<runtime::DiskCache>(folder, build_id());
    return found.get();
  }
  runtime::CudaDriver& cuda() {
    const std::lock_guard lock(mutex);
    if (!driver) driver = std::make_unique<runtime::CudaDriver>();
    return *driver;
  }
  runtime::Nvrtc& compiler_for_gpu() {
    const std::lock_guard lock(mutex);
    if (!nvrtc) nvrtc = std::make_unique<runtime::Nvrtc>(nvrtc_candidates());
    return *nvrtc;
  }
};

// Null until the first compile, whose options decide how many threads there are.
std::atomic<Services*> made_services = nullptr;

Services& services(const Options& options) {
  static Services* instance = [&] {
    made_services = new Services(static_cast<int>(options.compile_threads));
    return made_services.load();
  }();
  return *instance;
}

// Asking the driver costs microseconds, but compiles ask often: once a device.
const Target& cuda_target_of(int device) {
  static std::mutex mutex;
  static std::map<int, Target> targets;
  const std::lock_guard lock(mutex);
  auto found = targets.find(device);
  if (found == targets.end()) {
    const runtime::CudaDeviceProperties properties = services({}).cuda().properties(device);
    Target target = cuda_target(properties.arch, properties.multiprocessors);
    target.threads_per_multiprocessor = properties.threads_per_multiprocessor;
    found = targets.emplace(device, std::move(target)).first;
  }
  return found->second;
}

}  // namespace

std::string cache_status(const Options& options) {
  const runtime::DiskCache* cache = services(options).cache(options);
  return cache ? cache->status() : std::string();
}

runtime::CompilePool::Progress compile_progress() {
  const Services* services = made_services;
  return services ? services->pool.progress() : runtime::CompilePool::Progress();
}

void wait_for_compiles() {
  Services* services = made_services;
  if (services) services->pool.finish();
}

bool is_capturing(void* stream) { return services({}).cuda().is_capturing(stream); }

Target target_for(Device device) {
  if (device.type == DeviceType::Cuda) return cuda_target_of(device.index);
  return cpu_target(cpu_arch(), at::get_num_threads());
}

std::shared_ptr<runtime::KernelProvider> make_provider(const plan::Plan& plan, const Target& target, const Options& options,
                                                       runtime::Host& host, const std::optional<std::string>& source) {
  CXXI_CHECK(!source || plan.kernels.size() == 1, "one source for {} kernels", plan.kernels.size());
  Services& shared = services(options);
  if (target.device == DeviceType::Cpu) {
    auto emitter = [target, source](const std::vector<const plan::Kernel*>& kernels) {
      static const OriginTable none;
      return runtime::CpuUnitSource{source ? *source : codegen::emit_cpu(kernels, target, none),
                                    codegen::cpu_math_symbols(kernels, target)};
    };
    return std::make_shared<runtime::CpuKernelProvider>(target, emitter, shared.compiler, shared.pool, shared.cache(options), host);
  }
  auto emitter = [target, source](const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins) {
    const codegen::CudaLaunchShape shape = codegen::cuda_launch_shape(kernel, variant);
    runtime::CudaUnitSource unit;
    unit.text = source ? *source : codegen::emit_cuda({&kernel}, variant, target, origins);
    unit.block_x = shape.block_x;
    unit.block_y = shape.block_y;
    unit.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    unit.has_checks = codegen::cuda_has_checks(kernel);
    return unit;
  };
  int device = 0;
  for (const plan::Kernel& kernel : plan.kernels) device = kernel.device.index;
  return std::make_shared<runtime::CudaKernelProvider>(target, device, emitter, shared.compiler_for_gpu(), shared.cuda(),
                                                       shared.pool, shared.cache(options));
}

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/providers.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "runtime/build_id.h"
#include "runtime/compile_pool.h"
#include "targets/cpu/cpu_kernels.h"
#include "targets/cpu/host_compiler.h"
#include "targets/cuda/cuda_kernels.h"
#include "targets/cuda/driver.h"
#include "targets/cuda/nvrtc.h"
#include "targets/cuda/nvrtc_places.h"
#include "runtime/device_kernels.h"
#include "support/error.h"
#include "support/files.h"
#include "support/fork_locks.h"
#include "torch_bridge/torch_host.h"

namespace cxxinductor::torch_bridge {
namespace {

// The folder of the shared library that holds `address`; empty when unknown.
std::string library_folder(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  const std::string path = resolved_path(found.dli_fname);
  return path.empty() ? path : parent_path(path);
}

targets::NvrtcPlaces nvrtc_places(const Options& options) {
  targets::NvrtcPlaces places{options.nvrtc, library_folder(reinterpret_cast<const void*>(&at::get_num_threads)), {}};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* toolkit = std::getenv(variable); toolkit != nullptr && toolkit[0] != '\0') places.toolkits.emplace_back(toolkit);
  places.toolkits.emplace_back("/usr/local/cuda");
  return places;
}

std::string default_cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/cxxinductor";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') return std::string(home) + "/.cache/cxxinductor";
  return {};
}

// The widest level of the instruction set that the CPU and the operating system support.
std::string cpu_arch() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  if (__builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
  return "x86-64";
}

void stop_at_exit();

// The GPUs as the driver describes them. Apart from the Services, whose threads the options of the first compile decide:
// what compiles nothing asks for GPUs too. Never destroyed: kernels may outlive main's statics.
struct Gpus {
  std::unique_ptr<targets::CudaDriver> driver;                      // guarded by ForkLock::Services
  std::atomic<const targets::CudaDriver*> opened_driver = nullptr;  // the same one, for calls, which take no lock
  std::map<int, Target> targets;                                    // guarded by ForkLock::Targets

  targets::CudaDriver& cuda() {
    const ForkGuard guard(ForkLock::Services);
    if (!driver) {
      driver = std::make_unique<targets::CudaDriver>();
      opened_driver.store(driver.get(), std::memory_order_release);
      stop_at_exit();
    }
    return *driver;
  }
  // Asking the driver costs microseconds, but compiles ask often: once a device.
  const Target& target_of(int device) {
    const ForkGuard guard(ForkLock::Targets);
    auto found = targets.find(device);
    if (found == targets.end()) {
      const targets::CudaDeviceProperties properties = cuda().properties(device);
      Target target = cuda_target(properties.arch, properties.multiprocessors);
      target.threads_per_multiprocessor = properties.threads_per_multiprocessor;
      found = targets.emplace(device, std::move(target)).first;
    }
    return found->second;
  }
};

constinit MadeOnce<Gpus, ForkLock::Services> made_gpus;

Gpus& gpus() {
  return made_gpus.get([] { return Gpus(); });
}

// The user's, of all caches. A process that sets none never makes it.
struct RemoteCache {
  std::shared_ptr<const runtime::RemoteStore> store;  // guarded by ForkLock::Leaf
};
constinit MadeOnce<RemoteCache, ForkLock::Services> made_remote_cache;

std::shared_ptr<const runtime::RemoteStore> remote_cache() {
  const RemoteCache* remote = made_remote_cache.find();
  if (!remote) return nullptr;
  const ForkGuard guard(ForkLock::Leaf);
  return remote->store;
}

// What all compiles of the process share. Never destroyed, as Gpus.
struct Services {
  runtime::CompilePool pool;
  runtime::CompilePool graphs{2};  // for whole graphs, whose kernels `pool` compiles: a task of one waits for tasks of the other
  targets::HostCompiler compiler{targets::HostCompilerConfig{{}, temporary_folder()}};
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<runtime::DiskCache>> caches;  // guarded by ForkLock::Services
  std::map<std::string, std::unique_ptr<targets::Nvrtc>> nvrtcs;                          // by option nvrtc; the same
  std::set<std::string> told_problems;                                                    // of caches; the same

  explicit Services(int threads) : pool(threads) { stop_at_exit(); }

  runtime::DiskCache* cache(const Options& options) {
    if (options.cache == "off") return nullptr;
    // What is cached is as good as the build that made it, which has to be known.
    const std::string build = runtime::build_id(reinterpret_cast<const void*>(&target_for));
    const std::string folder = build.empty() ? "" : options.cache_dir.empty() ? default_cache_folder() : options.cache_dir;
    const int64_t limit = std::clamp<int64_t>(options.cache_size, 1, int64_t{1} << 40) << 20;
    const auto remote = remote_cache();
    const ForkGuard guard(ForkLock::Services);
    auto& found = caches[{folder, limit}];
    if (!found) found = std::make_unique<runtime::DiskCache>(folder, build, limit);
    found->set_remote(remote);
    return found.get();
  }
  targets::Nvrtc& compiler_for_gpu(const Options& options) {
    const ForkGuard guard(ForkLock::Services);
    auto& found = nvrtcs[options.nvrtc];
    if (!found) {
      found = std::make_unique<targets::Nvrtc>(targets::nvrtc_candidates(nvrtc_places(options)));
      stop_at_exit();
    }
    return *found;
  }
};

// Made by the first compile, whose options decide how many threads there are.
constinit MadeOnce<Services, ForkLock::Services> made_services;

Services& services(const Options& options) {
  return made_services.get([&] { return Services(static_cast<int>(options.compile_threads)); });
}

// The end of the process tears down libraries in the reverse order of their opening. Registered again with each library that
// tasks of the pool use, so that no task runs by then.
void stop_at_exit() {
  std::atexit([] {
    Services* services = made_services.find();
    if (!services) return;
    services->graphs.stop();
    services->pool.stop();
  });
}

}  // namespace

runtime::DiskCache* disk_cache(const Options& options) { return services(options).cache(options); }

void set_remote_cache(std::shared_ptr<const runtime::RemoteStore> store) {
  RemoteCache& remote = made_remote_cache.get([] { return RemoteCache(); });
  const ForkGuard guard(ForkLock::Leaf);
  remote.store = std::move(store);
}

std::string take_cache_problem(const Options& options) {
  Services& shared = services(options);
  const runtime::DiskCache* cache = shared.cache(options);
  const std::string problem = cache ? cache->status() : std::string();
  if (problem.empty()) return problem;
  const ForkGuard guard(ForkLock::Services);
  return shared.told_problems.insert(problem).second ? problem : std::string();
}

void open_torch_cuda() {
  const std::string path = join_path(library_folder(reinterpret_cast<const void*>(&at::get_num_threads)), "libtorch_cuda.so");
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* message = dlerror();
  throw_user_error("the model is on a GPU, but the CUDA library of LibTorch does not open: {}; take a CUDA build of LibTorch, or export the model for the CPU",
                   message ? message : path);
}

bool has_host_compiler(const Options& options) {
  try {
    services(options).compiler.identity();
    return true;
  } catch (const UserError&) {
    return false;
  }
}

runtime::CompilePool::Progress compile_progress() {
  const Services* services = made_services.find();
  return services ? services->pool.progress() : runtime::CompilePool::Progress();
}

void wait_for_compiles() {
  Services* services = made_services.find();
  if (!services) return;
  services->graphs.finish();  // which may leave tasks to the other
  services->pool.finish();
}

runtime::CompilePool& graph_compiles(const Options& options) { return services(options).graphs; }

void* make_stream(Device device) { return targets::CudaContext(gpus().cuda(), device.index).create_stream(); }

bool is_capturing(void* stream) {
  const Gpus* gpus = made_gpus.find();
  const targets::CudaDriver* driver = gpus ? gpus->opened_driver.load(std::memory_order_acquire) : nullptr;
  return driver && driver->is_capturing(stream);
}

Target target_for(Device device) {
  if (device.type == DeviceType::Cuda) return gpus().target_of(device.index);
  return cpu_target(cpu_arch(), at::get_num_threads());
}

Targets targets_for(const std::vector<Device>& devices) {
  Targets targets;
  for (Device device : devices) targets.add(device, target_for(device));
  return targets;
}

namespace {

// From the one that all have to the widest.
constexpr std::array<std::string_view, 4> cpu_levels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

std::optional<size_t> cpu_level(std::string_view arch) {
  const auto found = std::ranges::find(cpu_levels, arch);
  return found == cpu_levels.end() ? std::nullopt : std::optional<size_t>(found - cpu_levels.begin());
}

// "sm_90a" is 90, with features that later architectures lack.
struct GpuArch {
  int number = 0;
  bool specific = false;
};
std::optional<GpuArch> parse_gpu_arch(std::string_view arch) {
  GpuArch out;
  if (!arch.starts_with("sm_")) return std::nullopt;
  arch.remove_prefix(3);
  out.specific = arch.ends_with('a');
  if (out.specific) arch.remove_suffix(1);
  const auto [end, error] = std::from_chars(arch.data(), arch.data() + arch.size(), out.number);
  const bool valid = error == std::errc() && end == arch.data() + arch.size() && out.number >= 50 && out.number < 1000;
  return valid ? std::optional(out) : std::nullopt;
}

// Whether a GPU runs code of the other architecture: of its own, or an earlier one of the same generation.
bool runs_gpu_code(const std::string& gpu, const std::string& code) {
  const auto own = parse_gpu_arch(gpu), other = parse_gpu_arch(code);
  if (!own || !other) return false;
  if (other->specific) return gpu == code;
  return own->number / 10 == other->number / 10 && own->number >= other->number;
}

}  // namespace

std::optional<Target> find_target(Device device, const std::string& arch) {
  if (device.type == DeviceType::Cpu) {
    const auto level = cpu_level(arch);
    if (!level || *level > cpu_level(cpu_arch()).value()) return std::nullopt;
    return cpu_target(arch, at::get_num_threads());
  }
  try {
    Target target = target_for(device);
    if (!runs_gpu_code(target.arch, arch)) return std::nullopt;
    target.arch = arch;
    return target;
  } catch (const UserError&) {  // no driver, or no such GPU
    return std::nullopt;
  }
}

Target target_of_arch(Device device, const std::string& arch) {
  if (auto here = find_target(device, arch)) return *here;
  if (device.type == DeviceType::Cpu) {
    if (!cpu_level(arch)) throw_user_error("expected an architecture x86-64, x86-64-v2, x86-64-v3 or x86-64-v4, found '{}'", arch);
    return cpu_target(arch, at::get_num_threads());
  }
  const auto gpu = parse_gpu_arch(arch);
  if (!gpu) throw_user_error("expected the architecture of a GPU, as sm_90, found '{}'", arch);
  constexpr int a100 = 108, h100 = 132;  // multiprocessors; more or fewer change how work is divided, not what is right
  return cuda_target(arch, gpu->number < 90 ? a100 : h100);
}

namespace {

targets::CpuEmitter cpu_emitter(const Target& target, const std::optional<std::string>& source) {
  return [target, source](const std::vector<const plan::Kernel*>& kernels) {
    return targets::CpuUnitSource{source ? *source : codegen::emit_cpu(kernels, target, OriginTable()),
                                  codegen::cpu_math_symbols(kernels, target)};
  };
}

std::shared_ptr<targets::CpuKernelProvider> make_cpu_provider(const Target& target, const Options& options, runtime::Host& host,
                                                              const std::optional<std::string>& source,
                                                              const runtime::PackagedCode& packaged) {
  Services& shared = services(options);
  return std::make_shared<targets::CpuKernelProvider>(target, cpu_emitter(target, source), shared.compiler, shared.pool, shared.cache(options), host,
                                                      std::chrono::seconds(std::max<int64_t>(options.compile_timeout, 1)), packaged);
}

targets::CudaEmitter cuda_emitter(const std::optional<std::string>& source) {
  return [source](const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins) {
    const codegen::CudaLaunchShape shape = codegen::cuda_launch_shape(kernel, variant);
    targets::CudaUnitSource unit;
    unit.text = source ? *source : codegen::emit_cuda({&kernel}, variant, origins);
    unit.block_x = shape.block_x;
    unit.block_y = shape.block_y;
    unit.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    unit.has_checks = codegen::cuda_has_checks(kernel);
    return unit;
  };
}

std::shared_ptr<runtime::KernelProvider> make_cuda_provider(Device device, const Target& target, const Options& options,
                                                            const std::optional<std::string>& source,
                                                            const runtime::PackagedCode& packaged) {
  Services& shared = services(options);
  const auto nvrtc = [&shared, options]() -> const targets::Nvrtc& { return shared.compiler_for_gpu(options); };
  return std::make_shared<targets::CudaKernelProvider>(target, device.index, cuda_emitter(source), nvrtc, gpus().cuda(), shared.pool,
                                                       shared.cache(options), packaged);
}

}  // namespace

std::shared_ptr<runtime::KernelProvider> make_provider(const plan::Plan& plan, const Targets& targets, const Options& options,
                                                       runtime::Host& host, const std::optional<std::string>& source,
                                                       const runtime::PackagedCode& packaged) {
  CXXI_CHECK(!source || plan.kernels.size() == 1, "one source for {} kernels", plan.kernels.size());
  std::map<Device, std::shared_ptr<runtime::KernelProvider>> providers;
  for (const plan::Kernel& kernel : plan.kernels) {
    auto& provider = providers[kernel.device];
    if (provider) continue;
    const Target& target = targets.of(kernel.device);
    if (target.device == DeviceType::Cpu)
      provider = make_cpu_provider(target, options, host, source, packaged);
    else
      provider = make_cuda_provider(kernel.device, target, options, source, packaged);
  }
  return std::make_shared<runtime::DeviceKernels>(std::move(providers));
}

runtime::CodeByHash compile_for_package(const plan::Plan& plan, const Targets& targets, const Options& options) {
  runtime::CodeByHash code;
  std::set<Device> devices;
  for (const plan::Kernel& kernel : plan.kernels) devices.insert(kernel.device);
  Services& shared = services(options);
  for (Device device : devices) {
    const Target& target = targets.of(device);
    if (device.type == DeviceType::Cpu)
      code.merge(make_cpu_provider(target, options, torch_host(), {}, {})->compile_for_package(plan));
    else
      code.merge(targets::compile_cuda_for_package(plan, device, target, cuda_emitter({}), shared.compiler_for_gpu(options), shared.pool,
                                                   shared.cache(options)));
  }
  return code;
}

}  // namespace cxxinductor::torch_bridge

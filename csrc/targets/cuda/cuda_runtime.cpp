#include "targets/cuda/cuda_runtime.h"

#include <charconv>
#include <cstdlib>

#include "codegen/cuda/emit.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "targets/cuda/cuda_kernels.h"
#include "targets/cuda/node_updates.h"
#include "targets/cuda/nvrtc_places.h"

namespace cxxinductor::targets {
namespace {

// "sm_90a" is 90, with features that later architectures lack.
struct Arch {
  int number = 0;
  bool specific = false;
};

std::optional<Arch> parse_arch(std::string_view text) {
  Arch out;
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  out.specific = text.ends_with('a');
  if (out.specific) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.number);
  const bool valid = error == std::errc() && end == text.data() + text.size() && out.number >= 50 && out.number < 1000;
  return valid ? std::optional(out) : std::nullopt;
}

// Whether a GPU runs code of the other architecture: of its own, or an earlier one of the same generation.
bool runs_code(std::string_view gpu, std::string_view code) {
  const auto own = parse_arch(gpu), other = parse_arch(code);
  if (!own || !other) return false;
  if (other->specific) return gpu == code;
  return own->number / 10 == other->number / 10 && own->number >= other->number;
}

NvrtcPlaces nvrtc_places(const Options& options, const Surroundings& surroundings) {
  NvrtcPlaces places{options.nvrtc, surroundings.torch_folder, {}};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* toolkit = std::getenv(variable); toolkit != nullptr && toolkit[0] != '\0') places.toolkits.emplace_back(toolkit);
  places.toolkits.emplace_back("/usr/local/cuda");
  return places;
}

CudaEmitter emitter(const std::optional<std::string>& source) {
  return [source](const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins) {
    return CudaUnitSource{source ? *source : codegen::emit_cuda({&kernel}, variant, origins), plan::launch_shape(kernel), codegen::cuda_has_checks(kernel)};
  };
}

}  // namespace

CudaDriver& CudaRuntime::driver() {
  const ForkGuard guard(ForkLock::Services);
  if (!driver_) {
    driver_ = std::make_unique<CudaDriver>();
    opened_driver_.store(driver_.get(), std::memory_order_release);
    surroundings_.opened_library();
  }
  return *driver_;
}

NvrtcSource& CudaRuntime::compiler(const Options& options) {
  const ForkGuard guard(ForkLock::Services);
  auto& found = compilers_[options.nvrtc];
  if (!found)
    found = std::make_unique<NvrtcSource>([this, options] { return nvrtc_candidates(nvrtc_places(options, surroundings_)); },
                                          [this] { surroundings_.opened_library(); });
  return *found;
}

// Asking the driver costs microseconds, but compiles ask often: once a device.
Target CudaRuntime::describe(int index) {
  const ForkGuard guard(ForkLock::Targets);
  auto found = targets_.find(index);
  if (found == targets_.end()) {
    const CudaDeviceProperties properties = driver().properties(index);
    Target target = cuda_target(properties.arch, properties.multiprocessors);
    target.threads_per_multiprocessor = properties.threads_per_multiprocessor;
    found = targets_.emplace(index, std::move(target)).first;
  }
  return found->second;
}

std::optional<Target> CudaRuntime::describe(int index, std::string_view arch) {
  try {
    Target target = describe(index);
    if (!runs_code(target.arch, arch)) return std::nullopt;
    target.arch = arch;
    return target;
  } catch (const UserError&) {  // no driver, or no such GPU
    return std::nullopt;
  }
}

std::optional<Target> CudaRuntime::target_of_arch(std::string_view arch, std::optional<int> multiprocessors) {
  const auto parsed = parse_arch(arch);
  if (!parsed) return std::nullopt;
  constexpr int a100 = 108, h100 = 132;  // more or fewer change how work is divided, not what is right
  return cuda_target(std::string(arch), multiprocessors.value_or(parsed->number < 90 ? a100 : h100));
}

std::shared_ptr<runtime::KernelProvider> CudaRuntime::make_provider(Device device, const Target& target, const CompileResources& resources,
                                                                    const std::optional<std::string>& source, const runtime::PackagedCode& packaged) {
  NvrtcSource& nvrtc = compiler(resources.options);
  const auto updates = [this, index = device.index, &nvrtc, &pool = resources.pool, cache = resources.cache] {
    return node_updates(index, nvrtc, pool, cache);
  };
  return std::make_shared<CudaKernelProvider>(target, device.index, emitter(source), nvrtc, driver(), resources.pool, resources.cache, packaged, updates);
}

NodeUpdateKernels* CudaRuntime::node_updates(int index, NvrtcSource& nvrtc, runtime::CompilePool& pool, runtime::DiskCache* cache) {
  {
    const ForkGuard guard(ForkLock::Targets);
    const auto [found, is_new] = node_updates_.try_emplace(index);
    if (!is_new) return found->second.get();
  }
  const auto compile = [this, index, &nvrtc, cache](const InterruptCheck& interrupted) {
    try {
      std::string arch = describe(index).arch;
      if (arch.ends_with('a')) arch.pop_back();
      const CompiledCubin compiled = compile_cuda_unit(nvrtc, NodeUpdateKernels::source(), arch, "update_nodes", cache, false, interrupted);
      auto kernels = std::make_unique<NodeUpdateKernels>(driver(), index, compiled.cubin);
      const ForkGuard guard(ForkLock::Targets);
      node_updates_[index] = std::move(kernels);
    } catch (const std::exception&) {
      // No compiler, or a driver that is too old: the host patches nodes.
    }
  };
  pool.run_in_background(this, {"update_nodes", 1, compile});
  return nullptr;
}

runtime::CodeByHash CudaRuntime::compile_for_package(const plan::Plan& plan, Device device, const Target& target, const CompileResources& resources) {
  return compile_cuda_for_package(plan, device, target, emitter({}), compiler(resources.options), resources.pool, resources.cache);
}

void CudaRuntime::start_compiler(const Target& target, const CompileResources& resources) { compiler(resources.options).start(resources.pool, target.arch); }

bool CudaRuntime::has_compiler(const CompileResources& resources) {
  try {
    compiler(resources.options).version(resources.cache);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void* CudaRuntime::make_stream(int index) { return CudaContext(driver(), index).create_stream(); }

bool CudaRuntime::is_recording(void* stream) const {
  const CudaDriver* const driver = opened_driver_.load(std::memory_order_acquire);
  return driver && driver->is_capturing(stream);
}

}  // namespace cxxinductor::targets

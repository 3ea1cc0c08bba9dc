#include "targets/cuda/cuda_kernels.h"

#include <array>

#include "codegen/cuda/emit.h"
#include "codegen/registered_sources.h"
#include "ir/plan/index_width.h"
#include "runtime/failed_check.h"
#include "runtime/kernel_table.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "targets/compile_cost.h"
#include "targets/grouped_launch_table.h"

namespace cxxinductor::targets {
namespace {

constexpr double usual_bytes_per_second = 1e12;  // of GPUs that ir/machines.def has no rates of

// The text without comments and #line: equal code of two models is one entry of the cache.
std::string without_origins(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  while (!source.empty()) {
    const size_t end = source.find('\n');
    std::string_view line = source.substr(0, end);
    source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string_view::npos && line.substr(first).starts_with("#line")) continue;
    line = line.substr(0, line.find("  // "));
    text.append(line).push_back('\n');
  }
  return text;
}

// All that a cubin depends on but the compiler.
std::string content_of(const std::string& source, const std::string& arch) {
  std::string content = "\n" + arch;
  for (const char* option : Nvrtc::options()) content += std::string("\n") + option;
  return content + "\n" + without_origins(source);
}
std::string packaged_hash(const std::string& source, const std::string& arch) { return runtime::content_hash("cubin" + content_of(source, arch)); }

// Whether sizes that the assumptions allow need it: launches ask for no other.
bool may_need_index64(const plan::Kernel& kernel) {
  return !kernel.always_index32 && sym::bounds(kernel.index_limit, kernel.assumptions).high >= plan::index32_limit;
}

// Blames the op whose text the user gave, where the kernel has one.
CompiledCubin compile_kernel(NvrtcSource& nvrtc, const std::string& source, const std::string& arch, const plan::Kernel& kernel, runtime::DiskCache* cache,
                             bool rebuild, const InterruptCheck& interrupted, std::chrono::milliseconds patience = runtime::DiskCache::kPatience) {
  try {
    return compile_cuda_unit(nvrtc, source, arch, kernel.name, cache, rebuild, interrupted, patience);
  } catch (const InternalError& error) {
    codegen::throw_if_registered({&kernel}, error);
    throw;
  }
}

}  // namespace

CompiledCubin compile_cuda_unit(NvrtcSource& nvrtc, const std::string& source, const std::string& arch, const std::string& what, runtime::DiskCache* cache,
                                bool rebuild, const InterruptCheck& interrupted, std::chrono::milliseconds patience) {
  const std::string key = "cubin\nnvrtc " + nvrtc.version(cache) + content_of(source, arch);
  runtime::DiskCache::Claim claim;
  if (cache && !rebuild) {
    claim = cache->claim(key, patience, interrupted);
    if (claim.bytes) return {{reinterpret_cast<const char*>(claim.bytes->data()), claim.bytes->size()}, true};
    if (claim.busy && patience.count() == 0) return {};
  }
  CompiledCubin out{nvrtc.get().compile_to_cubin(source, arch, what, {}, interrupted).cubin, false};
  if (cache) cache->put(key, out.cubin);
  return out;
}

runtime::CodeByHash compile_cuda_for_package(const plan::Plan& plan, Device device, const Target& target, const CudaEmitter& emitter, NvrtcSource& nvrtc,
                                             runtime::CompilePool& pool, runtime::DiskCache* cache) {
  runtime::CodeByHash code;
  std::vector<runtime::CompileTask> tasks;
  const std::vector<bool> own = plan::base_kernels(plan);
  const auto add = [&](const plan::Kernel& kernel, plan::Variant variant) {
    tasks.push_back({kernel.name, compile_cost(kernel), [&, variant](const InterruptCheck& stopped) {
                       const std::string source = emitter(kernel, variant, plan.origins).text;
                       std::string cubin = compile_kernel(nvrtc, source, target.arch, kernel, cache, false, stopped).cubin;
                       const ForkGuard guard(ForkLock::Leaf);
                       code.insert_or_assign(packaged_hash(source, target.arch), std::move(cubin));
                     }});
  };
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(i)];
    if (kernel.device != device) continue;
    if (!plan::needs_index64(kernel)) add(kernel, {.vectorized = true});
    if (!own[i]) continue;  // specializations run in this variant alone
    if (!plan::needs_index64(kernel)) add(kernel, {.vectorized = false});
    if (!may_need_index64(kernel)) continue;
    add(kernel, {.vectorized = true, .index64 = true});
    add(kernel, {.vectorized = false, .index64 = true});
  }
  const std::vector<runtime::CompileFailure> failures = pool.run_all(std::move(tasks));
  if (!failures.empty()) std::rethrow_exception(failures.front().error);
  return code;
}

// Everything that a launch needs, so that it does not read the plan.
class CudaKernelProvider::Kernel : public runtime::LoadedKernel {
 public:
  Kernel(const CudaKernelProvider& provider, const plan::Kernel& kernel, CudaFunction function, const CudaUnitSource& source, void* record)
      : provider_(provider), name_(kernel.name), layout_(kernel), function_(function), shape_(source.shape), record_(source.has_checks ? record : nullptr) {}

  void launch(runtime::Host&, const runtime::LaunchArgs& args, void* stream) const override {
    const size_t count = args.buffers.size() + args.symbols.size() + 1;
    if (count <= plan::usual_arguments) [[likely]] {
      std::array<void*, plan::usual_arguments> arguments;
      launch_with(arguments.data(), args, stream);
    } else {
      std::vector<void*> arguments(count);
      launch_with(arguments.data(), args, stream);
    }
  }

  void launch_grouped(runtime::Host&, std::span<const runtime::LaunchArgs> all, void* stream) const override {
    alignas(8) std::array<std::byte, plan::max_grouped_bytes + 8> table;
    CXXI_CHECK(layout_.bytes() <= table.size(), "kernel {} takes a table of {} bytes", name_, layout_.bytes());
    std::array<void*, 2> arguments{table.data(), const_cast<void**>(&record_)};
    while (!all.empty()) {
      const FilledTable filled = fill_grouped_table(layout_, all, table.data());
      provider_.context_.launch(function_, {filled.blocks}, shape_, stream, arguments.data(), name_);
      all = all.subspan(filled.taken);
    }
  }

 private:
  void launch_with(void** arguments, const runtime::LaunchArgs& args, void* stream) const {
    // The driver reads through these addresses before the call returns.
    void** next = arguments;
    for (size_t i = 0; i < args.buffers.size(); ++i) *next++ = layout_.value_bytes[i] > 0 ? args.buffers[i] : const_cast<void**>(&args.buffers[i]);
    for (const int64_t& symbol : args.symbols) *next++ = const_cast<int64_t*>(&symbol);
    if (record_) *next = const_cast<void**>(&record_);
    provider_.context_.launch(function_, args.grid, shape_, stream, arguments, name_);
  }

  const CudaKernelProvider& provider_;
  std::string name_;
  plan::GroupedLaunchLayout layout_;
  CudaFunction function_;
  plan::LaunchShape shape_;
  void* record_;
};

struct CudaKernelProvider::Unit {
  plan::KernelId id;
  plan::Variant variant;
  CudaUnitSource source;
  std::string cubin;
  bool from_cache = false, from_package = false;
};

CudaKernelProvider::CudaKernelProvider(Target target, int device, CudaEmitter emitter, NvrtcSource& nvrtc, CudaDriver& driver, runtime::CompilePool& pool,
                                       runtime::DiskCache* cache, runtime::PackagedCode packaged, NodeUpdateSource updates)
    : target_(std::move(target)),
      device_{DeviceType::Cuda, device},
      emitter_(std::move(emitter)),
      nvrtc_(nvrtc),
      pool_(pool),
      cache_(cache),
      packaged_(std::move(packaged)),
      context_(driver, device),
      graphs_(context_, target_.machine.bytes > 0 ? target_.bytes_per_second() : usual_bytes_per_second, target_.machine.graph_step, std::move(updates)) {}
CudaKernelProvider::~CudaKernelProvider() { pool_.cancel(this); }

runtime::GraphDevice* CudaKernelProvider::graphs(Device device) { return device == device_ ? &graphs_ : nullptr; }

CudaKernelProvider::Counters CudaKernelProvider::counters() const {
  return {compiled_.load(), from_cache_.load(), from_package_.load(), late_.load(), failed_.load()};
}

bool CudaKernelProvider::find_packaged(Unit& unit) {
  if (!packaged_) return false;
  unit.source = emitter_(plan_kernels_[unit.id], unit.variant, origins_);
  auto cubin = packaged_(packaged_hash(unit.source.text, target_.arch));
  if (!cubin) return false;
  unit.cubin = std::move(*cubin);
  unit.from_package = true;
  return true;
}

void CudaKernelProvider::compile_unit(Unit& unit, bool rebuild, const InterruptCheck& interrupted, std::chrono::milliseconds patience) {
  const plan::Kernel& kernel = plan_kernels_[unit.id];
  unit.source = emitter_(kernel, unit.variant, origins_);
  CompiledCubin compiled = compile_kernel(nvrtc_, unit.source.text, target_.arch, kernel, cache_, rebuild, interrupted, patience);
  unit.cubin = std::move(compiled.cubin);
  unit.from_cache = compiled.from_cache;
  unit.from_package = false;
}

std::unique_ptr<CudaKernelProvider::Kernel> CudaKernelProvider::make_kernel(Unit& unit, const InterruptCheck& interrupted) {
  const plan::Kernel& kernel = plan_kernels_[unit.id];
  const std::string& name = kernel.name;
  CudaFunction function = nullptr;
  try {
    function = context_.load(unit.cubin, name, unit.source.shape);
  } catch (const InternalError&) {
    if (!unit.from_cache && !unit.from_package) throw;
    // The driver refuses what the cache or the package held.
    compile_unit(unit, unit.from_cache, interrupted);
    function = context_.load(unit.cubin, name, unit.source.shape);
  }
  ++(unit.from_package ? from_package_ : unit.from_cache ? from_cache_ : compiled_);
  void* record = records_.device ? static_cast<int*>(records_.device) + unit.id.index() * runtime::check_record_ints : nullptr;
  return std::make_unique<Kernel>(*this, kernel, function, unit.source, record);
}

void CudaKernelProvider::prepare(const plan::Plan& plan, const InterruptCheck& interrupted) {
  CXXI_CHECK(!loaded_, "a provider is prepared once");
  plan_kernels_ = plan.kernels;
  origins_ = plan.origins;
  loaded_.reset(new std::atomic<const Kernel*>[plan.kernels.size() * runtime::kVariants]());
  asked_.reset(new std::atomic<bool>[plan.kernels.size() * runtime::kVariants]());
  const std::vector<bool> own = plan::base_kernels(plan);
  std::vector<Unit> units;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(i)];
    if (kernel.device != device_) continue;
    if (own[i]) units.push_back({plan::KernelId(i), {.vectorized = true, .index64 = plan::needs_index64(kernel)}, {}, {}});
    if (codegen::cuda_has_checks(kernel)) checking_.push_back(static_cast<uint32_t>(i));
  }
  std::vector<Unit*> missing;
  for (Unit& unit : units)
    if (!find_packaged(unit)) missing.push_back(&unit);
  // What other processes compile by now is waited for once nothing else is left to do.
  for (const std::chrono::milliseconds patience : {std::chrono::milliseconds(0), runtime::DiskCache::kPatience}) {
    std::vector<runtime::CompileTask> tasks;
    for (Unit* unit : missing) {
      const plan::Kernel& kernel = plan_kernels_[unit->id];
      tasks.push_back(
          {kernel.name, compile_cost(kernel), [this, unit, patience](const InterruptCheck& stopped) { compile_unit(*unit, false, stopped, patience); }});
    }
    const std::vector<runtime::CompileFailure> failures = pool_.run_all(std::move(tasks), interrupted);
    if (!failures.empty()) std::rethrow_exception(failures.front().error);
    std::erase_if(missing, [](const Unit* unit) { return !unit->cubin.empty(); });
  }
  if (!checking_.empty()) records_ = context_.allocate_mapped(plan.kernels.size() * runtime::check_record_ints, "records of failed checks");
  for (Unit& unit : units) {
    kernels_.push_back(make_kernel(unit, interrupted));
    loaded_[unit.id.index() * runtime::kVariants + runtime::variant_number(unit.variant)].store(kernels_.back().get(), std::memory_order_release);
  }
}

const runtime::LoadedKernel& CudaKernelProvider::get(plan::KernelId kernel, plan::Variant variant) { return load_late(kernel, variant, {}); }

const CudaKernelProvider::Kernel& CudaKernelProvider::load_late(plan::KernelId kernel, plan::Variant variant, const InterruptCheck& interrupted) {
  CXXI_CHECK(loaded_ && kernel.index() < plan_kernels_.size(), "kernel {} was not prepared", kernel.index());
  std::atomic<const Kernel*>& entry = loaded_[kernel.index() * runtime::kVariants + runtime::variant_number(variant)];
  if (const Kernel* found = entry.load(std::memory_order_acquire)) return *found;
  Unit unit{kernel, variant, {}, {}};
  if (!find_packaged(unit)) compile_unit(unit, false, interrupted);
  // Ahead of the lock, since it compiles where the driver refuses what was found. If another thread is quicker, its kernel is taken.
  std::unique_ptr<Kernel> made = make_kernel(unit, interrupted);
  const ForkGuard guard(ForkLock::Kernels);
  if (const Kernel* found = entry.load(std::memory_order_acquire)) return *found;
  kernels_.push_back(std::move(made));
  entry.store(kernels_.back().get(), std::memory_order_release);
  return *kernels_.back();
}

const runtime::LoadedKernel* CudaKernelProvider::find(plan::KernelId kernel, plan::Variant variant) {
  CXXI_CHECK(loaded_ && kernel.index() < plan_kernels_.size(), "kernel {} was not prepared", kernel.index());
  const size_t number = kernel.index() * runtime::kVariants + runtime::variant_number(variant);
  if (const Kernel* found = loaded_[number].load(std::memory_order_acquire)) return found;
  if (asked_[number].exchange(true)) return nullptr;
  const auto load = [this, kernel, variant](const InterruptCheck& stopped) {
    // The launch goes on with its other kernel.
    try {
      load_late(kernel, variant, stopped);
      ++late_;
    } catch (const std::exception&) {
      ++failed_;
    }
  };
  pool_.run_in_background(this, {plan_kernels_[kernel].name, compile_cost(plan_kernels_[kernel]), load});
  return nullptr;
}

void CudaKernelProvider::raise_failed_checks() const {
  for (uint32_t i : checking_) {
    volatile int* record = records_.host + i * runtime::check_record_ints;
    const auto failed = runtime::read_check_record(record);
    if (!failed) [[likely]]
      continue;
    const plan::Kernel& kernel = plan_kernels_[plan::KernelId(i)];
    for (size_t k = 0; k < runtime::check_record_ints; ++k) record[k] = 0;
    throw runtime::DeviceIndexOutOfRange(runtime::describe_failed_check(runtime::check_texts(kernel, origins_), *failed) + "; found by an earlier launch");
  }
}

}  // namespace cxxinductor::targets

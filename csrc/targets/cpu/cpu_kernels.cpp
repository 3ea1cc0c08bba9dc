#include "targets/cpu/cpu_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <numeric>

#include "codegen/registered_sources.h"
#include "runtime/failed_check.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "targets/compile_cost.h"

namespace cxxinductor::targets {
namespace {

// Below this many statements a unit of its own costs more (the prelude is compiled again) than a second thread saves.
constexpr double kUnitCost = 60;
constexpr size_t kMostUnits = 4;

using KernelFunction = void (*)(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end);

class LoadedCpuKernel : public runtime::LoadedKernel {
 public:
  LoadedCpuKernel(const plan::Kernel& kernel, const OriginTable& origins, KernelFunction function)
      : function_(function),
        grain_(plan::is_sequential(kernel.mapping) ? std::numeric_limits<int64_t>::max() : plan::grain(kernel.mapping)),
        checks_(runtime::check_texts(kernel, origins)) {}

  void launch(runtime::Host& host, const runtime::LaunchArgs& args, void*) const override {
    const std::span<void* const> buffers = args.buffers;
    const std::span<const int64_t> symbols = args.symbols;
    const int64_t units = args.grid.x * args.grid.y;
    if (checks_.empty()) {
      run(host, buffers.data(), symbols.data(), units);
      return;
    }
    alignas(64) int64_t record[4] = {0, 0, 0, 0};
    std::array<void*, 64> few;
    std::vector<void*> many;
    void** extended = few.data();
    if (buffers.size() + 1 > few.size()) {
      many.resize(buffers.size() + 1);
      extended = many.data();
    }
    std::copy(buffers.begin(), buffers.end(), extended);
    extended[buffers.size()] = record;
    run(host, extended, symbols.data(), units);
    if (record[0] != 0) [[unlikely]]
      throw runtime::IndexOutOfRange(runtime::describe_failed_check(checks_, {record[1], record[2], record[3]}));
  }

 private:
  struct Arguments {
    KernelFunction function;
    void* const* buffers;
    const int64_t* symbols;
  };

  void run(runtime::Host& host, void* const* buffers, const int64_t* symbols, int64_t units) const {
    if (units <= grain_) {
      function_(buffers, symbols, 0, units);
      return;
    }
    const Arguments arguments{function_, buffers, symbols};
    // One pointer: std::function keeps it without allocating.
    host.parallel_for(units, grain_, [a = &arguments](int64_t begin, int64_t end) { a->function(a->buffers, a->symbols, begin, end); });
  }

  KernelFunction function_;
  int64_t grain_;
  runtime::CheckTexts checks_;
};

std::string_view text_of(const runtime::DiskCache::Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

std::string cache_key(const std::string& compiler_identity, const std::string& content) { return "cpu object\n" + compiler_identity + content; }
std::string packaged_hash(const std::string& content) { return runtime::content_hash("cpu object" + content); }

// Heaviest first onto the lightest unit.
std::vector<std::vector<plan::KernelId>> divide(const plan::Plan& plan, size_t threads) {
  std::vector<plan::KernelId> kernels;
  double total = 0;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const plan::KernelId id(i);
    if (plan.kernels[id].device.type != DeviceType::Cpu) continue;
    kernels.push_back(id);
    total += compile_cost(plan.kernels[id]);
  }
  const auto useful = static_cast<size_t>(total / kUnitCost) + 1;
  std::vector<std::vector<plan::KernelId>> units(std::min({useful, threads, kMostUnits, kernels.size()}));
  std::vector<double> load(units.size(), 0);
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](plan::KernelId a, plan::KernelId b) { return compile_cost(plan.kernels[a]) > compile_cost(plan.kernels[b]); });
  for (plan::KernelId id : kernels) {
    const size_t lightest = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    units[lightest].push_back(id);
    load[lightest] += compile_cost(plan.kernels[id]);
  }
  return units;
}

}  // namespace

std::vector<std::string> cpu_compile_flags(const Target& target) {
  std::vector<std::string> flags = {"-std=c++20",
                                    "-O3",
                                    "-shared",
                                    "-fPIC",
                                    "-ffp-contract=off",
                                    "-fwrapv",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fno-strict-aliasing",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fvisibility=hidden",
                                    "-w",
                                    "-Wno-psabi"};
  if (!target.arch.empty()) flags.push_back("-march=" + target.arch);
  return flags;
}

struct CpuKernelProvider::Unit {
  std::vector<plan::KernelId> ids;
  std::vector<const plan::Kernel*> kernels;
  CpuUnitSource source;
  std::string content;  // all that its object depends on but the compiler
  std::unique_ptr<SharedObject> object;
  bool from_cache = false, from_package = false;

  std::string what() const {
    const std::string& first = kernels.front()->name;
    return kernels.size() > 1 ? fmt::format("{} and {} more kernels", first, kernels.size() - 1) : first;
  }
  double cost() const {
    double sum = 0;
    for (const plan::Kernel* kernel : kernels) sum += compile_cost(*kernel);
    return sum;
  }
};

CpuKernelProvider::CpuKernelProvider(Target target, CpuEmitter emitter, HostCompiler& compiler, runtime::CompilePool& pool, runtime::DiskCache* cache,
                                     runtime::Host& host, std::chrono::seconds compile_timeout, runtime::PackagedCode packaged)
    : target_(std::move(target)),
      emitter_(std::move(emitter)),
      compiler_(compiler),
      pool_(pool),
      cache_(cache),
      host_(host),
      compile_timeout_(compile_timeout),
      packaged_(std::move(packaged)) {}
CpuKernelProvider::~CpuKernelProvider() = default;

std::vector<CpuKernelProvider::Unit> CpuKernelProvider::units_of(const plan::Plan& plan, size_t most) const {
  std::vector<Unit> units;
  for (std::vector<plan::KernelId>& ids : divide(plan, most)) {
    Unit unit;
    for (plan::KernelId id : ids) unit.kernels.push_back(&plan.kernels[id]);
    unit.ids = std::move(ids);
    units.push_back(std::move(unit));
  }
  return units;
}

void CpuKernelProvider::emit(Unit& unit) const {
  if (!unit.content.empty()) return;
  unit.source = emitter_(unit.kernels);
  for (const std::string& flag : cpu_compile_flags(target_)) unit.content += "\n" + flag;
  unit.content += "\n" + unit.source.text;
}

// Temporary folders are often mounted without the right to execute.
std::vector<std::string> CpuKernelProvider::object_folders() const {
  std::vector<std::string> folders{compiler_.temporary_folder()};
  if (cache_ && cache_->usable()) folders.push_back(cache_->folder());
  return folders;
}

std::unique_ptr<SharedObject> CpuKernelProvider::load_if_possible(std::string_view bytes) const {
  try {
    return std::make_unique<SharedObject>(bytes, object_folders());
  } catch (const InternalError&) {
    return nullptr;  // made for another C library, say
  }
}

void CpuKernelProvider::load_packaged(Unit& unit) const {
  emit(unit);
  if (const auto bytes = packaged_(packaged_hash(unit.content))) unit.object = load_if_possible(*bytes);
  unit.from_package = unit.object != nullptr;
}

std::string CpuKernelProvider::compile(const Unit& unit, const ProcessLimits& limits) const {
  try {
    return compiler_.compile(unit.source.text, cpu_compile_flags(target_), unit.what(), limits);
  } catch (const InternalError& error) {
    codegen::throw_if_registered(unit.kernels, error);
    throw;
  }
}

void CpuKernelProvider::load_unit(Unit& unit, const std::string& compiler_identity, const ProcessLimits& limits, std::chrono::milliseconds patience) const {
  emit(unit);
  const std::string key = cache_key(compiler_identity, unit.content);
  runtime::DiskCache::Claim claim;
  if (cache_) {
    claim = cache_->claim(key, patience, limits.interrupted);
    if (claim.bytes) unit.object = load_if_possible(text_of(*claim.bytes));
    unit.from_cache = unit.object != nullptr;
    if (claim.busy && patience.count() == 0) return;
  }
  if (unit.object) return;
  const std::string bytes = compile(unit, limits);
  unit.object = std::make_unique<SharedObject>(bytes, object_folders());
  if (cache_) cache_->put(key, bytes);
}

// work(unit, compiler's identity, limits) for each of them, several at once.
template <class Work>
void CpuKernelProvider::run_on_pool(const std::vector<Unit*>& units, const InterruptCheck& interrupted, const Work& work) const {
  if (units.empty()) return;
  const std::string identity = compiler_.identity({compile_timeout_, interrupted}, cache_);
  std::vector<runtime::CompileTask> tasks;
  for (Unit* unit : units)
    tasks.push_back({unit->kernels.front()->name, unit->cost(), [&, unit](const InterruptCheck& stopped) {
                       work(*unit, identity, ProcessLimits{compile_timeout_, stopped});
                     }});
  const std::vector<runtime::CompileFailure> failures = pool_.run_all(std::move(tasks), interrupted);
  if (!failures.empty()) std::rethrow_exception(failures.front().error);
}

void CpuKernelProvider::take(Unit& unit, const plan::Plan& plan) {
  auto** math = static_cast<void**>(unit.object->find("cxxi_math"));
  const std::vector<std::string>& symbols = unit.source.math_symbols;
  CXXI_CHECK(math != nullptr || symbols.empty(), "{} has no table of math functions", unit.what());
  for (size_t i = 0; i < symbols.size(); ++i) math[i] = host_.find_symbol(symbols[i].c_str());
  ++counters_.units;
  ++(unit.from_package ? counters_.from_package : unit.from_cache ? counters_.from_cache : counters_.compiled);
  for (plan::KernelId id : unit.ids) {
    const plan::Kernel& kernel = plan.kernels[id];
    void* function = unit.object->find(kernel.name);
    CXXI_CHECK(function != nullptr, "the compiled unit has no kernel {}", kernel.name);
    kernels_[id.index()] = std::make_unique<LoadedCpuKernel>(kernel, plan.origins, reinterpret_cast<KernelFunction>(function));
  }
  objects_.push_back(std::move(unit.object));
}

void CpuKernelProvider::prepare(const plan::Plan& plan, const InterruptCheck& interrupted) {
  CXXI_CHECK(kernels_.empty(), "a provider is prepared once");
  std::vector<Unit> units = units_of(plan, packaged_ ? kMostUnits : static_cast<size_t>(pool_.thread_count()));
  std::vector<Unit*> missing;
  for (Unit& unit : units) {
    if (packaged_) load_packaged(unit);
    if (!unit.object) missing.push_back(&unit);
  }
  // What other processes compile by now is waited for once nothing else is left to do.
  for (const std::chrono::milliseconds patience : {std::chrono::milliseconds(0), runtime::DiskCache::kPatience}) {
    run_on_pool(missing, interrupted,
                [&](Unit& unit, const std::string& identity, const ProcessLimits& limits) { load_unit(unit, identity, limits, patience); });
    std::erase_if(missing, [](const Unit* unit) { return unit->object != nullptr; });
  }
  kernels_.resize(plan.kernels.size());
  for (Unit& unit : units) take(unit, plan);
}

runtime::CodeByHash CpuKernelProvider::compile_for_package(const plan::Plan& plan, const InterruptCheck& interrupted) const {
  std::vector<Unit> units = units_of(plan, kMostUnits);
  std::vector<Unit*> all;
  for (Unit& unit : units) all.push_back(&unit);
  runtime::CodeByHash code;
  run_on_pool(all, interrupted, [&](Unit& unit, const std::string& identity, const ProcessLimits& limits) {
    emit(unit);
    const std::string key = cache_key(identity, unit.content);
    const auto cached = cache_ ? cache_->get(key) : std::nullopt;
    std::string bytes = cached ? std::string(text_of(*cached)) : compile(unit, limits);
    if (cache_ && !cached) cache_->put(key, bytes);
    const ForkGuard guard(ForkLock::Leaf);
    code.insert_or_assign(packaged_hash(unit.content), std::move(bytes));
  });
  return code;
}

const runtime::LoadedKernel& CpuKernelProvider::get(plan::KernelId kernel, plan::Variant) {
  CXXI_CHECK(kernel.index() < kernels_.size() && kernels_[kernel.index()], "kernel {} was not prepared for the CPU", kernel.index());
  return *kernels_[kernel.index()];
}

}  // namespace cxxinductor::targets

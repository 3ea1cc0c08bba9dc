#include "runtime/cpu/cpu_kernels.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <numeric>

#include "runtime/failed_check.h"
#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

// Below this many statements a unit of its own costs more (the prelude is compiled again) than a second thread saves.
constexpr double kUnitCost = 60;
constexpr size_t kMostUnits = 4;

using KernelFunction = void (*)(void* const* buffers, const int64_t* symbols, int64_t begin, int64_t end);

double cost_of(const plan::Kernel& kernel) {
  double cost = 5;
  for (const plan::Segment& segment : kernel.segments) cost += static_cast<double>(segment.stmts.size());
  return cost;
}

class LoadedCpuKernel : public LoadedKernel {
 public:
  LoadedCpuKernel(const plan::Kernel& kernel, const OriginTable& origins, KernelFunction function)
      : function_(function),
        grain_(kernel.mapping.sequential ? std::numeric_limits<int64_t>::max()
                                         : std::max<int64_t>(kernel.mapping.grain, 1)),
        checks_(check_texts(kernel, origins)) {}

  void launch(Host& host, std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid_x,
              int64_t grid_y, void*) const override {
    const int64_t units = grid_x * grid_y;
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
      throw IndexOutOfRange(describe_failed_check(checks_, record[1], record[2], record[3]));
  }

 private:
  struct Arguments {
    KernelFunction function;
    void* const* buffers;
    const int64_t* symbols;
  };

  void run(Host& host, void* const* buffers, const int64_t* symbols, int64_t units) const {
    if (units <= grain_) {
      function_(buffers, symbols, 0, units);
      return;
    }
    const Arguments arguments{function_, buffers, symbols};
    // One pointer: std::function keeps it without allocating.
    host.parallel_for(units, grain_, [a = &arguments](int64_t begin, int64_t end) {
      a->function(a->buffers, a->symbols, begin, end);
    });
  }

  KernelFunction function_;
  int64_t grain_;
  CheckTexts checks_;
};

std::string_view text_of(const DiskCache::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Heaviest first onto the lightest unit.
std::vector<std::vector<plan::KernelId>> divide(const plan::Plan& plan, size_t threads) {
  std::vector<plan::KernelId> kernels;
  double total = 0;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const plan::KernelId id(i);
    if (plan.kernels[id].device.type != DeviceType::Cpu) continue;
    kernels.push_back(id);
    total += cost_of(plan.kernels[id]);
  }
  const auto useful = static_cast<size_t>(total / kUnitCost) + 1;
  std::vector<std::vector<plan::KernelId>> units(std::min({useful, threads, kMostUnits, kernels.size()}));
  std::vector<double> load(units.size(), 0);
  std::stable_sort(kernels.begin(), kernels.end(), [&](plan::KernelId a, plan::KernelId b) {
    return cost_of(plan.kernels[a]) > cost_of(plan.kernels[b]);
  });
  for (plan::KernelId id : kernels) {
    const size_t lightest = static_cast<size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    units[lightest].push_back(id);
    load[lightest] += cost_of(plan.kernels[id]);
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
  std::unique_ptr<SharedObject> object;
  bool from_cache = false;
};

CpuKernelProvider::CpuKernelProvider(Target target, CpuEmitter emitter, HostCompiler& compiler, CompilePool& pool,
                                     DiskCache* cache, Host& host, std::chrono::seconds compile_timeout)
    : target_(std::move(target)),
      emitter_(std::move(emitter)),
      compiler_(compiler),
      pool_(pool),
      cache_(cache),
      host_(host),
      compile_timeout_(compile_timeout) {}
CpuKernelProvider::~CpuKernelProvider() = default;

void CpuKernelProvider::load_unit(Unit& unit, const std::string& compiler_identity,
                                  const ProcessLimits& limits) const {
  const CpuUnitSource source = emitter_(unit.kernels);
  const std::vector<std::string> flags = cpu_compile_flags(target_);
  std::string key = "cpu object\n" + compiler_identity;
  for (const std::string& flag : flags) key += "\n" + flag;
  key += "\n" + source.text;
  std::string what = unit.kernels.front()->name;
  if (unit.kernels.size() > 1) what += fmt::format(" and {} more kernels", unit.kernels.size() - 1);
  // Where objects are loaded from: temporary folders are often mounted without the right to execute.
  std::vector<std::string> folders{compiler_.temporary_folder()};
  if (cache_ && cache_->usable()) folders.push_back(cache_->folder());
  if (cache_) {
    if (const auto bytes = cache_->get(key)) {
      try {
        unit.object = std::make_unique<SharedObject>(text_of(*bytes), folders);
        unit.from_cache = true;
      } catch (const InternalError&) {
        // Made for another C library, say: compiled again below.
      }
    }
  }
  if (!unit.object) {
    const std::string bytes = compiler_.compile(source.text, flags, what, limits);
    unit.object = std::make_unique<SharedObject>(bytes, folders);
    if (cache_) cache_->put(key, bytes);
  }
  auto** math = static_cast<void**>(unit.object->find("cxxi_math"));
  CXXI_CHECK(math != nullptr || source.math_symbols.empty(), "{} has no table of math functions", what);
  for (size_t i = 0; i < source.math_symbols.size(); ++i) math[i] = host_.find_symbol(source.math_symbols[i].c_str());
}

void CpuKernelProvider::prepare(const plan::Plan& plan, const InterruptCheck& interrupted) {
  CXXI_CHECK(kernels_.empty(), "a provider is prepared once");
  std::vector<Unit> units;
  for (std::vector<plan::KernelId>& ids : divide(plan, static_cast<size_t>(pool_.thread_count()))) {
    Unit unit;
    for (plan::KernelId id : ids) unit.kernels.push_back(&plan.kernels[id]);
    unit.ids = std::move(ids);
    units.push_back(std::move(unit));
  }
  if (units.empty()) {
    kernels_.resize(plan.kernels.size());
    return;
  }
  const std::string identity = compiler_.identity({compile_timeout_, interrupted});
  std::vector<CompileTask> tasks;
  for (Unit& unit : units) {
    double cost = 0;
    for (const plan::Kernel* kernel : unit.kernels) cost += cost_of(*kernel);
    tasks.push_back({unit.kernels.front()->name, cost, [this, &unit, &identity](const InterruptCheck& stopped) {
                       load_unit(unit, identity, {compile_timeout_, stopped});
                     }});
  }
  const std::vector<CompileFailure> failures = pool_.run_all(std::move(tasks), interrupted);
  if (!failures.empty()) std::rethrow_exception(failures.front().error);
  kernels_.resize(plan.kernels.size());
  for (Unit& unit : units) {
    ++counters_.units;
    ++(unit.from_cache ? counters_.from_cache : counters_.compiled);
    for (plan::KernelId id : unit.ids) {
      const plan::Kernel& kernel = plan.kernels[id];
      void* function = unit.object->find(kernel.name);
      CXXI_CHECK(function != nullptr, "the compiled unit has no kernel {}", kernel.name);
      kernels_[id.index()] =
          std::make_unique<LoadedCpuKernel>(kernel, plan.origins, reinterpret_cast<KernelFunction>(function));
    }
    objects_.push_back(std::move(unit.object));
  }
}

const LoadedKernel& CpuKernelProvider::get(plan::KernelId kernel, plan::Variant) {
  CXXI_CHECK(kernel.index() < kernels_.size() && kernels_[kernel.index()], "kernel {} was not prepared for the CPU",
             kernel.index());
  return *kernels_[kernel.index()];
}

}  // namespace cxxinductor::runtime

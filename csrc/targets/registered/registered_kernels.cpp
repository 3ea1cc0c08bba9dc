#include "targets/registered/registered_kernels.h"

#include "codegen/cuda/emit.h"
#include "codegen/registered_sources.h"
#include "codegen/templates.h"
#include "ir/plan/index_width.h"
#include "ir/plan/launch_shape.h"
#include "runtime/failed_check.h"
#include "runtime/kernel_table.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "support/utf8.h"
#include "targets/compile_cost.h"
#include "targets/grouped_launch_table.h"

namespace cxxinductor::targets {
namespace {

// What the user's function throws, as an error that says whose it is.
template <class Work>
auto with_errors(const RegisteredTarget& target, std::string_view does, const std::string& kernel, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    throw_user_error("target {}, {} kernel {}: {}", target.name, does, kernel, as_utf8(error.what()));
  } catch (...) {
    throw_user_error("target {}, {} kernel {}: what it threw is not a std::exception", target.name, does, kernel);
  }
}

std::string_view text_of(const runtime::DiskCache::Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

// Everything that a launch needs, so that it does not read the plan.
class RegisteredKernelProvider::Kernel final : public runtime::LoadedKernel {
 public:
  Kernel(const RegisteredTarget& target, const plan::Kernel& kernel, const OriginTable& origins, void* module)
      : target_(target),
        name_(kernel.name),
        shape_(plan::launch_shape(kernel)),
        layout_(kernel),
        has_checks_(codegen::cuda_has_checks(kernel)),
        checks_(runtime::check_texts(kernel, origins)),
        module_(module) {}
  ~Kernel() override {
    try {
      target_.unload(module_);
    } catch (...) {  // nobody is left to tell
    }
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  void launch(runtime::Host&, const runtime::LaunchArgs& args, void*) const override {
    std::vector<void*> arguments;
    arguments.reserve(args.buffers.size() + args.symbols.size() + 1);
    for (size_t i = 0; i < args.buffers.size(); ++i) arguments.push_back(layout_.value_bytes[i] > 0 ? args.buffers[i] : const_cast<void**>(&args.buffers[i]));
    for (const int64_t& symbol : args.symbols) arguments.push_back(const_cast<int64_t*>(&symbol));
    run(arguments, args.grid);
  }

  void launch_grouped(runtime::Host&, std::span<const runtime::LaunchArgs> all, void*) const override {
    alignas(8) std::array<std::byte, plan::max_grouped_bytes + 8> table;
    CXXI_CHECK(layout_.bytes() <= table.size(), "kernel {} takes a table of {} bytes", name_, layout_.bytes());
    while (!all.empty()) {
      const FilledTable filled = fill_grouped_table(layout_, all, table.data());
      std::vector<void*> arguments{table.data()};
      run(arguments, {filled.blocks});
      all = all.subspan(filled.taken);
    }
  }

 private:
  // Adds the record of failed checks where the kernel has any.
  void run(std::vector<void*>& arguments, runtime::Grid grid) const {
    if (grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535) throw_unsupported("kernel {} would need {} x {} x {} blocks", name_, grid.x, grid.y, grid.z);
    int record[runtime::check_record_ints] = {};
    void* address = record;
    if (has_checks_) arguments.push_back(&address);
    const auto size = [](auto value) { return static_cast<uint32_t>(value); };
    const KernelLaunch launch{.entry = name_.c_str(),
                              .grid = {size(grid.x), size(grid.y), size(grid.z)},
                              .block = {size(shape_.block_x), size(shape_.block_y), 1},
                              .shared_bytes = shape_.dynamic_shared_bytes,
                              .arguments = arguments.data()};
    with_errors(target_, "launching", name_, [&] { target_.launch(module_, launch); });
    if (const auto failed = runtime::read_check_record(record)) throw runtime::IndexOutOfRange(runtime::describe_failed_check(checks_, *failed));
  }

  const RegisteredTarget& target_;
  const std::string name_;
  const plan::LaunchShape shape_;
  const plan::GroupedLaunchLayout layout_;
  const bool has_checks_;
  const runtime::CheckTexts checks_;
  void* const module_;
};

RegisteredKernelProvider::RegisteredKernelProvider(const RegisteredTarget& target, TargetOptions options, Device device, Emitter emitter,
                                                   runtime::CompilePool& pool, runtime::DiskCache* cache)
    : target_(target), options_(std::move(options)), device_(device), emitter_(std::move(emitter)), pool_(pool), cache_(cache) {}
RegisteredKernelProvider::~RegisteredKernelProvider() = default;

// Empty where another process is compiling it and there is no patience to wait.
std::string RegisteredKernelProvider::code_of(const plan::Kernel& kernel, plan::Variant variant, const InterruptCheck& interrupted,
                                              std::chrono::milliseconds patience) const {
  const std::string text = emitter_(kernel, variant);
  const KernelSource source{text, codegen::included_templates(text), {kernel.name}};
  std::string key = fmt::format("code of a registered target\n{}\n{}\n", target_.name, target_.version);
  for (const auto& [name, value] : options_) key += fmt::format("{}={}\n", name, value);
  for (const auto& [name, file] : source.files) key += file;
  key += text;
  runtime::DiskCache::Claim claim;
  if (cache_) {
    claim = cache_->claim(key, patience, interrupted);
    if (claim.bytes) return std::string(text_of(*claim.bytes));
    if (claim.busy && patience.count() == 0) return {};
  }
  try {
    std::string code = with_errors(target_, "compiling", kernel.name, [&] { return target_.compile(source, options_); });
    if (code.empty()) throw_user_error("target {}, compiling kernel {}: expected code, found none", target_.name, kernel.name);
    if (cache_) cache_->put(key, code);
    return code;
  } catch (const Error& error) {
    codegen::throw_if_registered({&kernel}, error);
    throw;
  }
}

std::unique_ptr<RegisteredKernelProvider::Kernel> RegisteredKernelProvider::load(const plan::Kernel& kernel, const std::string& code) const {
  void* const module = with_errors(target_, "loading", kernel.name, [&] { return target_.load(code, options_); });
  if (!module) throw_user_error("target {}, loading kernel {}: expected a module, found null", target_.name, kernel.name);
  return std::make_unique<Kernel>(target_, kernel, origins_, module);
}

void RegisteredKernelProvider::prepare(const plan::Plan& plan, const InterruptCheck& interrupted) {
  CXXI_CHECK(kernels_.empty(), "a provider is prepared once");
  kernels_ = plan.kernels;
  origins_ = plan.origins;
  struct Unit {
    plan::KernelId id;
    plan::Variant variant;
    std::string code;
  };
  std::vector<Unit> units;
  const std::vector<bool> own = plan::base_kernels(plan);
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const plan::KernelId id(i);
    if (kernels_[id].device == device_ && own[i]) units.push_back({id, {.vectorized = true, .index64 = plan::needs_index64(kernels_[id])}, {}});
  }
  std::vector<Unit*> missing;
  for (Unit& unit : units) missing.push_back(&unit);
  // What other processes compile by now is waited for once nothing else is left to do.
  for (const std::chrono::milliseconds patience : {std::chrono::milliseconds(0), runtime::DiskCache::kPatience}) {
    std::vector<runtime::CompileTask> tasks;
    for (Unit* unit : missing) {
      const plan::Kernel& kernel = kernels_[unit->id];
      tasks.push_back({kernel.name, compile_cost(kernel),
                       [this, unit, patience](const InterruptCheck& stopped) { unit->code = code_of(kernels_[unit->id], unit->variant, stopped, patience); }});
    }
    const std::vector<runtime::CompileFailure> failures = pool_.run_all(std::move(tasks), interrupted);
    if (!failures.empty()) std::rethrow_exception(failures.front().error);
    std::erase_if(missing, [](const Unit* unit) { return !unit->code.empty(); });
  }
  for (const Unit& unit : units) {
    std::unique_ptr<Kernel> kernel = load(kernels_[unit.id], unit.code);
    const ForkGuard guard(ForkLock::Kernels);
    loaded_[{unit.id, runtime::variant_number(unit.variant)}] = std::move(kernel);
  }
}

const runtime::LoadedKernel& RegisteredKernelProvider::get(plan::KernelId kernel, plan::Variant variant) {
  CXXI_CHECK(kernel.index() < kernels_.size(), "kernel {} was not prepared", kernel.index());
  const Number number{kernel, runtime::variant_number(variant)};
  {
    const ForkGuard guard(ForkLock::Kernels);
    if (const auto found = loaded_.find(number); found != loaded_.end()) return *found->second;
  }
  const plan::Kernel& wanted = kernels_[kernel];
  std::unique_ptr<Kernel> made = load(wanted, code_of(wanted, variant, {}, runtime::DiskCache::kPatience));
  // If another thread is quicker, its kernel is taken; the lock is left before what was made is unloaded.
  const ForkGuard guard(ForkLock::Kernels);
  auto& entry = loaded_[number];
  if (!entry) entry.swap(made);
  return *entry;
}

}  // namespace cxxinductor::targets

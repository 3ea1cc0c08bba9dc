#include "torch_bridge/jit/region_module.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <cxxinductor/cxxinductor.h>
#include <fmt/format.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/custom_class.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/fork_mutex.h"
#include "torch_bridge/jit/code_module.h"
#include "torch_bridge/jit/region.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/shaping_options.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Graph;
using torch::jit::Module;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

constexpr const char* run_op = "cxxinductor::run_region";
constexpr const char* forms_attribute = "forms";
constexpr const char* wait_option = "wait";
constexpr int64_t format_version = 2;  // of what PyTorch saves of a region

constinit thread_local const Options* options_of_loads = nullptr;

using OptionDict = c10::Dict<std::string, std::string>;

// A file's options are those that shape kernels, and whether calls wait; the others are the loading program's.
Options options_of(const OptionDict& texts) {
  Options options = options_of_loads ? *options_of_loads : options_from_environment();
  OptionTexts shaping;
  for (const auto& entry : texts) {
    if (entry.key() == wait_option)
      set_option(options, entry.key(), entry.value());
    else
      shaping.emplace_back(entry.key(), entry.value());
  }
  set_shaping_options(options, shaping);
  return options;
}

OptionDict texts_of(const Options& options) {
  OptionDict texts;
  for (const auto& [name, value] : shaping_options(options)) texts.insert(name, value);
  texts.insert(wait_option, get_option(options, wait_option));
  return texts;
}

// The compiled forms of a region, as an attribute of its module.
class RegionForms final : public torch::CustomClassHolder {
 public:
  // packed: of the file that it comes from, empty where it has none.
  RegionForms(std::string name, Options options, at::Tensor packed) : name_(std::move(name)), options_(std::move(options)), packed_(std::move(packed)) {
    if (!packed_.defined()) throw_user_error("{}: expected a tensor of compiled forms", name_);
    if (packed_.numel() > 0) saved_ = std::make_shared<const SavedForms>(packed_, options_);
  }

  Region& get(const Module& module) {
    if (Region* made = made_.load(std::memory_order_acquire)) return *made;
    const std::lock_guard making(making_);
    if (Region* made = made_.load(std::memory_order_relaxed)) return *made;
    auto region = c10::make_intrusive<Region>(name_, read_code(module), options_, saved_);
    const std::lock_guard lock(mutex_);
    const ForkGuard guard(ForkLock::Leaf);
    region_ = std::move(region);
    made_.store(region_.get(), std::memory_order_release);
    return *region_;
  }

  std::string describe() const {
    const auto region = made_region();
    std::string text = region ? region->describe() : fmt::format("{}: has not been called\n", name_);
    if (saved_ && !saved_->note().empty()) text += fmt::format("{}: the file's machine code is not used: {}\n", name_, saved_->note());
    return text;
  }

  std::string list_saved() const { return saved_ ? saved_->list() : std::string(); }

  size_t pack(const std::vector<std::string>& archs, const package_file::SigningKey* key) {
    PackedForms packed(archs, key);
    if (const auto region = made_region()) region->pack(packed);
    at::Tensor bytes = packed.bytes();
    const std::lock_guard lock(mutex_);
    const ForkGuard guard(ForkLock::Leaf);
    std::swap(packed_, bytes);
    return packed.size();
  }

  using State = std::tuple<int64_t, std::string, OptionDict, at::Tensor>;
  // What was packed, or is in the file that the region comes from; else what is compiled so far, for this machine, not signed.
  State save() const {
    at::Tensor packed;
    {
      const std::lock_guard lock(mutex_);
      packed = packed_;
    }
    return {format_version, name_, texts_of(options_), packed.numel() > 0 ? packed : pack_if_possible()};
  }
  static c10::intrusive_ptr<RegionForms> load(const State& state) {
    check_process();
    const auto& [version, name, options, packed] = state;
    if (version != format_version)
      throw_user_error("the module was saved by another version of cxxinductor (format {}, this one reads {}): optimize it again", version, format_version);
    return c10::make_intrusive<RegionForms>(readers::printable(name), options_of(options), packed);
  }

 private:
  c10::intrusive_ptr<Region> made_region() const {
    const std::lock_guard lock(mutex_);
    return region_;
  }

  at::Tensor pack_if_possible() const {
    PackedForms packed({}, nullptr);
    try {
      if (const auto region = made_region()) region->pack(packed);
    } catch (const Error& error) {
      TORCH_WARN("cxxinductor: ", name_, " is saved without its compiled forms, which are compiled again where it is loaded: ", error.what());
      return at::empty({0}, at::kByte);
    }
    return packed.bytes();
  }

  const std::string name_;
  const Options options_;
  std::shared_ptr<const SavedForms> saved_;
  ForkMutex making_;
  std::atomic<Region*> made_ = nullptr;  // region_, once that is there
  mutable ForkMutex mutex_;              // guards what follows
  at::Tensor packed_;
  c10::intrusive_ptr<Region> region_;
};

bool is_region(const c10::IValue& value) { return value.isObject() && value.toObjectRef().type()->is_module() && is_region_module(Module(value.toObject())); }

// run_region(Any region, Any arguments) -> Any: a tuple. What calls it may come from a file.
void run_region(Stack& stack) {
  const c10::IValue arguments = torch::jit::pop(stack), region = torch::jit::pop(stack);
  if (!is_region(region) || !arguments.isTuple())
    throw_user_error("{}: expected a region's module and a tuple of its arguments, found {} and {}", run_op, region.tagKind(), arguments.tagKind());
  const Module module(region.toObject());
  Region& runs = module.attr(forms_attribute).toCustomClass<RegionForms>()->get(module);
  torch::jit::push(stack, c10::ivalue::Tuple::create(runs.run(arguments.toTupleRef().elements().vec())));
}

// A static: the class and the op are there while the library is loaded. See RegisteredOps for second copies of it.
struct RegisteredRegions {
  RegisteredRegions() {
    if (!other_copies().empty()) return;
    torch::class_<RegionForms>("cxxinductor", "RegionForms")
        .def_pickle([](const c10::intrusive_ptr<RegionForms>& forms) { return forms->save(); },
                    [](RegionForms::State state) { return RegionForms::load(state); });
    operators.emplace(std::vector<std::optional<torch::jit::Operator>>{
        torch::jit::Operator(fmt::format("{}(Any region, Any arguments) -> Any", run_op), run_region, c10::AliasAnalysisKind::CONSERVATIVE)});
  }
  std::optional<torch::jit::RegisterOperators> operators;
};
const RegisteredRegions registered;

}  // namespace

Module make_region_module(const std::string& name, const JitRegion& region, const Options& options, const std::shared_ptr<torch::jit::CompilationUnit>& unit) {
  Module module(c10::QualifiedName("__torch__.cxxinductor." + name), unit, /*shouldMangle=*/true);
  module.register_attribute(forms_attribute, c10::getCustomClassType<c10::intrusive_ptr<RegionForms>>(),
                            c10::make_intrusive<RegionForms>(name, options, at::empty({0}, at::kByte)));
  add_code(module, *region.body);
  return module;
}

std::vector<Value*> insert_region_call(Graph& graph, Value* module, const JitRegion& region) {
  Value* arguments = graph.insertNode(graph.createTuple(region.inputs))->output();
  Node* call = graph.insertNode(graph.create(c10::Symbol::fromQualString(run_op), {module, arguments}, 1));
  call->output()->setType(c10::AnyType::get());
  Value* results = graph.insertUncheckedCast(call->output(), region.body->outputs().at(0)->type());
  return graph.insertNode(graph.createTupleUnpack(results))->outputs().vec();
}

size_t pack_region(const Module& module, const std::vector<std::string>& archs, const package_file::SigningKey* key) {
  return module.attr(forms_attribute).toCustomClass<RegionForms>()->pack(archs, key);
}

std::string list_saved_forms(const Module& module) { return module.attr(forms_attribute).toCustomClass<RegionForms>()->list_saved(); }

RegionOptions::RegionOptions(const Options& options) : outer_(std::exchange(options_of_loads, &options)) {}
RegionOptions::~RegionOptions() { options_of_loads = outer_; }

bool is_region_module(const Module& module) {
  return module.hasattr(forms_attribute) && has_code(module) &&
         module.attr(forms_attribute).type() == c10::getCustomClassType<c10::intrusive_ptr<RegionForms>>();
}
std::string describe_region(const Module& module) { return module.attr(forms_attribute).toCustomClass<RegionForms>()->describe(); }

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/jit/region_module.h"

#include <fmt/format.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/custom_class.h>

#include <mutex>
#include <optional>
#include <utility>

#include "support/error.h"
#include "torch_bridge/jit/region.h"
#include "torch_bridge/process_check.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Graph;
using torch::jit::Module;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

constexpr const char* run_op = "cxxinductor::run_region";
constexpr const char* forms_attribute = "forms";
constexpr const char* code_method = "code";
constexpr int64_t format_version = 1;  // of what PyTorch saves of a region

Options options_of(const c10::Dict<std::string, std::string>& texts) {
  Options options;
  for (const auto& entry : texts) set_option(options, entry.key(), entry.value());
  return options;
}

// Those that differ from the defaults.
c10::Dict<std::string, std::string> texts_of(const Options& options) {
  c10::Dict<std::string, std::string> texts;
  const Options defaults;
  for (const OptionInfo& option : option_table())
    if (const std::string value = get_option(options, option.name); value != get_option(defaults, option.name))
      texts.insert(std::string(option.name), value);
  return texts;
}

// The compiled forms of a region, as an attribute of its module.
class RegionForms final : public torch::CustomClassHolder {
 public:
  RegionForms(std::string name, Options options) : name_(std::move(name)), options_(std::move(options)) {}

  Region& get(const Module& module) {
    std::call_once(made_, [&] {
      const auto code = torch::jit::toGraphFunction(module.get_method(code_method).function()).graph()->copy();
      if (!code->inputs().at(0)->uses().empty() || code->outputs().at(0)->type()->kind() != c10::TypeKind::TupleType)
        throw_user_error("{}: expected the code of a region, which reads no attribute and gives a tuple", name_);
      torch::jit::Inline(*code);
      code->eraseInput(0);
      region_ = c10::make_intrusive<Region>(name_, code, options_);
    });
    return *region_;
  }
  std::string describe() const { return region_ ? region_->describe() : fmt::format("{}: has not been called\n", name_); }

  using State = std::tuple<int64_t, std::string, c10::Dict<std::string, std::string>>;
  State save() const { return {format_version, name_, texts_of(options_)}; }
  static c10::intrusive_ptr<RegionForms> load(const State& state) {
    const auto& [version, name, options] = state;
    if (version != format_version)
      throw_user_error(
          "the module was saved by another version of cxxinductor (format {}, this one reads {}): optimize it again",
          version, format_version);
    return c10::make_intrusive<RegionForms>(name, options_of(options));
  }

 private:
  const std::string name_;
  const Options options_;
  std::once_flag made_;
  c10::intrusive_ptr<Region> region_;
};

bool is_region(const c10::IValue& value) {
  return value.isObject() && value.toObjectRef().type()->is_module() && is_region_module(Module(value.toObject()));
}

// run_region(Any region, Any arguments) -> Any: a tuple. What calls it may come from a file.
void run_region(Stack& stack) {
  const c10::IValue arguments = torch::jit::pop(stack), region = torch::jit::pop(stack);
  if (!is_region(region) || !arguments.isTuple())
    throw_user_error("{}: expected a region's module and a tuple of its arguments, found {} and {}", run_op,
                     region.tagKind(), arguments.tagKind());
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
        torch::jit::Operator(fmt::format("{}(Any region, Any arguments) -> Any", run_op),
                             run_region, c10::AliasAnalysisKind::CONSERVATIVE)});
  }
  std::optional<torch::jit::RegisterOperators> operators;
};
const RegisteredRegions registered;

}  // namespace

Module make_region_module(const std::string& name, const JitRegion& region, const Options& options,
                          const std::shared_ptr<torch::jit::CompilationUnit>& unit) {
  Module module(c10::QualifiedName("__torch__.cxxinductor." + name), unit, /*shouldMangle=*/true);
  module.register_attribute(forms_attribute, c10::getCustomClassType<c10::intrusive_ptr<RegionForms>>(),
                            c10::make_intrusive<RegionForms>(name, options));
  const std::shared_ptr<Graph> code = region.body->copy();
  code->insertInput(0, "self")->setType(module._ivalue()->type());
  torch::jit::Function* method =
      unit->create_function(c10::QualifiedName(*module._ivalue()->type()->name(), code_method), code);
  module._ivalue()->type()->addMethod(method);
  return module;
}

std::vector<Value*> insert_region_call(Graph& graph, Value* module, const JitRegion& region) {
  Value* arguments = graph.insertNode(graph.createTuple(region.inputs))->output();
  Node* call = graph.insertNode(graph.create(c10::Symbol::fromQualString(run_op), {module, arguments}, 1));
  call->output()->setType(c10::AnyType::get());
  Value* results = graph.insertUncheckedCast(call->output(), region.body->outputs().at(0)->type());
  return graph.insertNode(graph.createTupleUnpack(results))->outputs().vec();
}

bool is_region_module(const Module& module) {
  return module.hasattr(forms_attribute) && module.find_method(code_method) &&
         module.attr(forms_attribute).type() == c10::getCustomClassType<c10::intrusive_ptr<RegionForms>>();
}
std::string describe_region(const Module& module) {
  return module.attr(forms_attribute).toCustomClass<RegionForms>()->describe();
}

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/jit/region_module.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/custom_class.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "support/error.h"
#include "torch_bridge/jit/interpret.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/record/specializations.h"

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

  Specializations& get(const std::shared_ptr<Graph>& code) {
    std::call_once(made_, [&] {
      const auto run = [code](std::vector<c10::IValue> arguments) {
        arguments.insert(arguments.begin(), c10::IValue());  // self, which the code does not read
        return interpret(*code, std::move(arguments));
      };
      forms_ = std::make_unique<Specializations>(name_, inference_tracer(name_, run, options_), options_);
    });
    return *forms_;
  }
  std::string describe() const { return forms_ ? forms_->describe() : fmt::format("{}: has not been called\n", name_); }

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
  std::unique_ptr<Specializations> forms_;
};

std::shared_ptr<Graph> code_of(const Module& module) {
  return torch::jit::toGraphFunction(module.get_method(code_method).function()).graph();
}

bool is_plain_inference(const std::vector<c10::IValue>& arguments) {
  if (at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA)) return false;
  return !at::GradMode::is_enabled() ||
         std::none_of(arguments.begin(), arguments.end(), [](const c10::IValue& argument) {
           return argument.isTensor() && argument.toTensor().requires_grad();
         });
}

// run_region(Any region, Any arguments) -> (Tensor[] tensors, int[] numbers)
void run_region(Stack& stack) {
  const std::vector<c10::IValue> arguments = torch::jit::pop(stack).toTuple()->elements().vec();
  const Module module(torch::jit::pop(stack).toObject());
  std::optional<std::vector<c10::IValue>> results;
  if (is_plain_inference(arguments))
    results = module.attr(forms_attribute).toCustomClass<RegionForms>()->get(code_of(module)).run(arguments);
  if (!results) {
    std::vector<c10::IValue> inputs{module._ivalue()};
    inputs.insert(inputs.end(), arguments.begin(), arguments.end());
    results = module.get_method(code_method).function()(std::move(inputs)).toTuple()->elements().vec();
  }
  c10::List<at::Tensor> tensors;
  c10::List<int64_t> numbers;
  for (const c10::IValue& result : *results) {
    if (result.isInt())
      numbers.push_back(result.toInt());
    else
      tensors.push_back(result.toTensor());
  }
  torch::jit::push(stack, std::move(tensors), std::move(numbers));
}

// A static: the class and the op are there while the library is loaded. See RegisteredOps for second copies of it.
struct RegisteredRegions {
  RegisteredRegions() {
    if (!other_copies().empty()) return;
    torch::class_<RegionForms>("cxxinductor", "RegionForms")
        .def_pickle([](const c10::intrusive_ptr<RegionForms>& forms) { return forms->save(); },
                    [](RegionForms::State state) { return RegionForms::load(state); });
    operators.emplace(std::vector<std::optional<torch::jit::Operator>>{
        torch::jit::Operator(fmt::format("{}(Any region, Any arguments) -> (Tensor[] tensors, int[] numbers)", run_op),
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
  Node* call = graph.insertNode(graph.create(c10::Symbol::fromQualString(run_op), {module, arguments}, 2));
  call->output(0)->setType(c10::ListType::ofTensors());
  call->output(1)->setType(c10::ListType::ofInts());
  std::vector<Value*> results;
  for (const auto& [list, count] :
       {std::pair(call->output(0), region.tensors), std::pair(call->output(1), region.numbers)}) {
    Node* items = graph.insertNode(graph.createListUnpack(list, count));
    results.insert(results.end(), items->outputs().begin(), items->outputs().end());
  }
  return results;
}

bool is_region_module(const Module& module) {
  return module.hasattr(forms_attribute) && module.find_method(code_method);
}
std::string describe_region(const Module& module) {
  return module.attr(forms_attribute).toCustomClass<RegionForms>()->describe();
}

}  // namespace cxxinductor::torch_bridge

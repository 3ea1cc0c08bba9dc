#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <cxxinductor/package.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "api/mapped_file.h"
#include "api/model_source.h"
#include "api/signature.h"
#include "api/weights.h"
#include "api/write_package.h"
#include "ir/strides.h"
#include "readers/pt2/read_pt2.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "support/options.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/file_model.h"
#include "torch_bridge/providers.h"

namespace cxxinductor {

using readers::InputSpec;
using readers::OutputSpec;

namespace {

bool is_same_literal(const c10::IValue& given, const c10::IValue& expected) {
  if (expected.isNone()) return given.isNone();
  if (expected.isBool()) return given.isBool() && given.toBool() == expected.toBool();
  if (expected.isInt()) return given.isInt() && given.toInt() == expected.toInt();
  if (expected.isDouble()) return given.isDouble() && given.toDouble() == expected.toDouble();
  return given.isString() && given.toStringRef() == expected.toStringRef();
}

std::optional<std::vector<int64_t>> numbers(const std::vector<sym::Expr>& expressions) {
  std::vector<int64_t> found;
  for (sym::Expr e : expressions) {
    if (!e.is_constant()) return std::nullopt;
    found.push_back(e.constant());
  }
  return found;
}

std::string print_structure(const std::optional<readers::TreeSpec>& tree) { return tree ? readers::print_tree(*tree) : std::string(); }

// Tensors whose elements lie in memory as sizes and strides say.
void require_plain(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.defined()) throw_user_error("input '{}': expected a tensor, found an undefined one", name);
  if (tensor.layout() != at::kStrided || tensor.is_quantized())
    throw_user_error("input '{}': expected a dense tensor, found one of layout {}", name, c10::str(tensor.layout()));
}

}  // namespace

class Model::Impl {
 public:
  explicit Impl(api::ModelSource source) : program_(std::move(source.program)), options_(source.options), weights_(api::make_weights(program_, source.bytes)) {
    const readers::Program& program = program_;
    for (size_t w = 0; w < program.weights.size(); ++w) names_.emplace(program.weights[w].name, weights_[w]);
    inputs_.resize(program.calls.inputs.size());
    for (const InputSpec& spec : program.signature.inputs) add_input(spec, program);
    for (const OutputSpec& spec : program.signature.outputs) add_output(spec, program);
    note_ = source.note;
    first_ = make_graph(source.plans);
    graph_ = first_.get();
    for (Leaf& leaf : leaves_)
      if (leaf.input && first_->writes_input(*leaf.input)) leaf.keep_strides();
    if (compiles_in_background_)
      begin_compile();
    else
      warn_of_fallback(*first_);
  }
  ~Impl() {
    if (compiles_in_background_) torch_bridge::graph_compiles(options_).cancel(this);
  }

  std::vector<c10::IValue> run(std::vector<c10::IValue> given) const {
    if (given.size() != leaves_.size()) throw_user_error("expected {} inputs ({}), found {}", leaves_.size(), fmt::join(input_types(), "; "), given.size());
    // Results carry no gradients, and the dtypes of calls are those of the export.
    const at::NoGradGuard no_gradients;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    std::vector<c10::IValue> inputs = inputs_;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Leaf& leaf = leaves_[i];
      if (!leaf.input) {
        if (!is_same_literal(given[i], leaf.literal))
          throw_user_error("input '{}': expected {}, which the model was exported for, found {}", leaf.name, c10::str(leaf.literal), c10::str(given[i]));
        continue;
      }
      if (given[i].isTensor()) given[i] = laid_out(leaf, given[i].toTensor());
      if (given[i].isTensor() != leaf.is_tensor || !(given[i].isTensor() || given[i].isInt()))
        throw_user_error("input '{}': expected {}, found {}", leaf.name, leaf.is_tensor ? "a tensor" : "an integer", given[i].tagKind());
      inputs[*leaf.input] = std::move(given[i]);
    }
    begin_compile();
    std::vector<c10::IValue> found = graph_.load(std::memory_order_acquire)->run(std::move(inputs)), results;
    results.reserve(outputs_.size());
    for (const Result& result : outputs_) {
      if (!result.output)
        results.push_back(result.literal);
      else if (result.is_truth)
        results.emplace_back(found[*result.output].toInt() != 0);
      else
        results.push_back(std::move(found[*result.output]));
    }
    return results;
  }

  std::vector<std::string> input_types() const {
    std::vector<std::string> types;
    for (const Leaf& leaf : leaves_) types.push_back(leaf.type);
    return types;
  }

  std::vector<std::string> output_types() const {
    std::vector<std::string> types;
    for (const Result& result : outputs_) types.push_back(result.type);
    return types;
  }

  std::string explain() const {
    const torch_bridge::FileModel* graph = graph_.load(std::memory_order_acquire);
    if (compiles_in_background_ && graph == first_.get())
      return fmt::format("model '{}': {}; calls run op by op through ATen", program_.name,
                         has_begun_ ? "is being compiled" : "the next call begins to compile it");
    const std::string text = graph->describe(fmt::format("model '{}'", program_.name));
    return note_.empty() ? text : fmt::format("{}\nthe package's machine code is not used: {}\n", text, note_);
  }

  void package(const std::string& path, const PackageOptions& package_options) const {
    const std::string reason = graph_.load(std::memory_order_acquire)->fallback_reason();
    if (!reason.empty()) throw_unsupported("the model is not compiled: {}", reason);
    std::vector<at::Tensor> on_cpu;  // until the package is written
    const auto storage_of = [&](const readers::WeightRef& weight) {
      on_cpu.push_back(api::storage_bytes(names_.at(weight.name)));
      return std::span(static_cast<const std::byte*>(on_cpu.back().data_ptr()), static_cast<size_t>(on_cpu.back().numel()));
    };
    api::write_package(program_, storage_of, path, package_options, options_);
  }

  const readers::Signature& signature() const { return program_.signature; }
  const std::map<std::string, at::Tensor>& weights() const { return names_; }

 private:
  // An input of run.
  struct Leaf {
    std::string name, type;
    std::optional<uint32_t> input;  // position among the graph's; none: the literal
    bool is_tensor = false;
    // How the model was compiled to read it: rows, or (sizes, strides). Neither where the model writes to it, or sizes are not known.
    bool row_major = false;
    std::optional<std::pair<std::vector<int64_t>, std::vector<int64_t>>> layout;
    c10::IValue literal;
    // A write to a copy would be lost.
    void keep_strides() {
      row_major = false;
      layout.reset();
    }
  };
  struct Result {
    std::optional<uint32_t> output;  // position among the graph's
    bool is_truth = false;           // a boolean as 0 or 1
    c10::IValue literal;
    std::string type;
  };

  // The tensor, or a copy with the strides that the model was compiled for.
  static at::Tensor laid_out(const Leaf& leaf, const at::Tensor& tensor) {
    require_plain(leaf.name, tensor);
    if (leaf.row_major) return tensor.contiguous();
    if (!leaf.layout || tensor.sizes() != leaf.layout->first || tensor.strides() == leaf.layout->second) return tensor;
    return at::empty_strided(leaf.layout->first, leaf.layout->second, tensor.options()).copy_(tensor);
  }

  static void add_layout(Leaf& leaf, const model::CallGraph& calls) {
    const model::CallValueInfo& info = calls.values[calls.inputs[*leaf.input]];
    leaf.row_major = info.strides == row_major_strides(info.sizes);
    const auto sizes = numbers(info.sizes), strides = numbers(info.strides);
    if (sizes && strides) leaf.layout.emplace(*sizes, *strides);
  }

  void add_input(const InputSpec& spec, const readers::Program& program) {
    if (spec.kind == InputSpec::Kind::Weight) {
      inputs_[program.weights[spec.index].input] = weights_[spec.index];
      return;
    }
    Leaf leaf;
    leaf.name = spec.name;
    leaf.type = api::input_type(program, spec);
    if (spec.kind == InputSpec::Kind::Literal) {
      leaf.literal = api::literal_value(spec.name, spec.literal);
    } else {
      const model::CallGraph& calls = program.calls;
      leaf.input = spec.index;
      leaf.is_tensor = calls.values[calls.inputs[spec.index]].kind == model::CallValueInfo::Kind::Tensor;
      if (leaf.is_tensor) add_layout(leaf, calls);
    }
    leaves_.push_back(std::move(leaf));
  }

  void add_output(const OutputSpec& spec, const readers::Program& program) {
    switch (spec.kind) {
      case OutputSpec::Kind::User:
      case OutputSpec::Kind::Loss:
        outputs_.push_back({spec.index, spec.is_truth, {}, api::output_type(program, spec)});
        break;
      case OutputSpec::Kind::Literal:
        outputs_.push_back({std::nullopt, false, api::literal_value("the result", spec.literal), api::output_type(program, spec)});
        break;
      case OutputSpec::Kind::Mutation:
        break;
      case OutputSpec::Kind::ParameterGradient:
      case OutputSpec::Kind::InputGradient:
        throw_unsupported("the model was exported with its gradient ('{}'): export the forward pass alone", spec.target);
    }
  }

  // The package's code, or what is compiled from the calls where there is none, or it does not load; calls as they stand where what is
  // compiled comes later.
  std::shared_ptr<const torch_bridge::FileModel> make_graph(const std::optional<torch_bridge::PackagedPlans>& plans) {
    if (plans) {
      try {
        return torch_bridge::FileModel::from_package(program_.calls, *plans, options_);
      } catch (const Error& error) {
        note_ = error.what();
      }
    }
    compiles_in_background_ = !options_.wait;
    return options_.wait ? torch_bridge::FileModel::compile(program_.calls, options_) : torch_bridge::FileModel::uncompiled(program_.calls, options_);
  }

  // In the background, where calls do not wait for it.
  void begin_compile() const {
    if (!compiles_in_background_ || has_begun_.load(std::memory_order_relaxed) || has_begun_.exchange(true)) return;
    torch_bridge::graph_compiles(options_).run_in_background(
        this, {program_.name, 1, [this](const InterruptCheck& interrupted) { compile_in_background(interrupted); }});
  }

  void compile_in_background(const InterruptCheck& interrupted) const {
    std::shared_ptr<const torch_bridge::FileModel> compiled;
    try {
      compiled = torch_bridge::FileModel::compile(program_.calls, options_, interrupted);
    } catch (const Interrupted&) {  // the model is gone
      return;
    }
    {
      const ForkGuard guard(ForkLock::Leaf);  // a child finds all of this or nothing
      compiled_ = std::move(compiled);
      graph_.store(compiled_.get(), std::memory_order_release);
    }
    warn_of_fallback(*compiled_);
  }

  void warn_of_fallback(const torch_bridge::FileModel& graph) const {
    if (const std::string reason = graph.fallback_reason(); !reason.empty())
      TORCH_WARN("cxxinductor: model '", program_.name, "' runs op by op through ATen: ", reason);
  }

  const readers::Program program_;
  const Options options_;
  std::string note_;  // why the code of a package is not used
  std::vector<at::Tensor> weights_;
  std::map<std::string, at::Tensor> names_;
  std::vector<c10::IValue> inputs_;  // of the graph: weights where they belong, none elsewhere
  std::vector<Leaf> leaves_;
  std::vector<Result> outputs_;
  bool compiles_in_background_ = false;
  std::shared_ptr<const torch_bridge::FileModel> first_;
  mutable std::shared_ptr<const torch_bridge::FileModel> compiled_;      // by the background's thread
  mutable std::atomic<const torch_bridge::FileModel*> graph_ = nullptr;  // the one that calls run
  mutable std::atomic<bool> has_begun_ = false;                          // the background's thread, or it is to
  const ForkChildHook in_child_{[this] {
    if (!compiled_) has_begun_ = false;  // that thread is not there
  }};
};

Model::Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

std::vector<c10::IValue> Model::run(std::vector<c10::IValue> inputs) const { return impl_->run(std::move(inputs)); }
std::vector<std::string> Model::input_types() const { return impl_->input_types(); }
std::vector<std::string> Model::output_types() const { return impl_->output_types(); }
std::string Model::input_structure() const { return print_structure(impl_->signature().in_spec); }
std::string Model::output_structure() const { return print_structure(impl_->signature().out_spec); }

std::string Model::explain() const { return impl_->explain(); }

std::vector<std::string> Model::weight_names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : impl_->weights()) names.push_back(name);
  return names;
}

at::Tensor Model::weight(const std::string& name) const {
  const auto found = impl_->weights().find(name);
  if (found == impl_->weights().end()) throw_user_error("the model has no weight '{}'; it has: {}", name, fmt::join(weight_names(), ", "));
  return found->second;
}

struct ModelMaker {
  static Model make(api::ModelSource source) { return Model(std::make_shared<const Model::Impl>(std::move(source))); }
  static const Model::Impl& impl(const Model& model) { return *model.impl_; }
};

Options options_from_environment() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (const char* value = std::strchr(*entry, '=')) variables.emplace_back(std::string(*entry, static_cast<size_t>(value - *entry)), value + 1);
  return options_from_environment(variables);
}

Model load(const std::string& path, const Options& options) { return ModelMaker::make(api::read_model(path, options)); }
Model load(const void* bytes, size_t size, const Options& options) { return ModelMaker::make(api::read_model(api::copy_bytes(bytes, size), "", options)); }

void package(const Model& model, const std::string& path, const PackageOptions& package_options) { ModelMaker::impl(model).package(path, package_options); }

}  // namespace cxxinductor

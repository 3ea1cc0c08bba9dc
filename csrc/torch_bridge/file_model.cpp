#include "torch_bridge/file_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>

#include "model/size_guards.h"
#include "support/error.h"
#include "support/fork_mutex.h"
#include "torch_bridge/control_flow.h"
#include "torch_bridge/input_symbols.h"
#include "torch_bridge/package_builds.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/shared_memory.h"

namespace cxxinductor::torch_bridge {

using SharedGraph = std::shared_ptr<const CompiledGraph>;

namespace {

// Beyond this many forms calls run op by op: something that differs in each of them decides.
constexpr size_t most_forms = 16;

bool hold(std::span<const model::SizeGuard> guards, const InputSymbols::Values& symbols) {
  return std::all_of(guards.begin(), guards.end(),
                     [&](const model::SizeGuard& guard) { return model::holds(guard, [&](std::string_view symbol) { return symbols.find(symbol)->second; }); });
}

std::vector<uint32_t> written_inputs(const CompiledGraph& graph, const model::CallGraph& calls) {
  std::vector<uint32_t> written;
  for (uint32_t input = 0; input < calls.inputs.size(); ++input)
    if (graph.writes_input(input)) written.push_back(input);
  return written;
}

}  // namespace

// Compiled forms, one for each outcome of the guards, and for each of PyTorch's settings.
class FileModel::Forms {
 public:
  // first: made under the settings of now.
  Forms(model::CallGraph calls, SharedGraph first, const Options& options)
      : calls_(std::move(calls)), symbols_(calls_), options_(options), first_{std::move(first), CompileSettings::current()}, forms_{first_} {}
  ~Forms() {
    if (!options_.wait) graph_compiles(options_).cancel(this);
  }

  // Null where inputs are not what the graph takes.
  SharedGraph find_or_make(const std::vector<c10::IValue>& inputs) {
    const auto settings = CompileSettings::current();
    if (first_.graph->guards().empty() && first_.settings == settings) return first_.graph;
    const auto symbols = symbols_.values(inputs);
    if (!symbols) return nullptr;
    if (SharedGraph found = find(*symbols, settings)) return found;
    const std::lock_guard making(making_);
    if (SharedGraph found = find(*symbols, settings)) return found;
    if (count() >= most_forms) return uncompiled();
    if (options_.wait) return add(*symbols, settings, {});
    if (!is_compiling_) {
      is_compiling_ = true;
      graph_compiles(options_).run_in_background(
          this, {calls_.name, 1, [this, symbols, settings](const InterruptCheck& interrupted) { add_in_background(*symbols, settings, interrupted); }});
    }
    return uncompiled();
  }

  // The calls op by op.
  SharedGraph uncompiled_form() {
    const std::lock_guard making(making_);
    return uncompiled();
  }

  std::string describe(std::string_view title) const {
    const std::shared_lock lock(mutex_);
    std::vector<std::string> texts;
    for (const Form& form : forms_) {
      std::vector<std::string> conditions;
      for (const model::SizeGuard& guard : form.graph->guards()) conditions.push_back(model::to_string(guard));
      if (form.settings.deterministic) conditions.emplace_back("algorithms are deterministic");
      if (form.settings.default_dtype != c10::ScalarType::Float)
        conditions.push_back(fmt::format("the default dtype is {}", c10::toString(form.settings.default_dtype)));
      texts.push_back(form.graph->describe(conditions.empty() ? std::string(title) : fmt::format("{} where {}", title, fmt::join(conditions, ", "))));
    }
    return fmt::format("{}", fmt::join(texts, "\n"));
  }

 private:
  struct Form {
    SharedGraph graph;
    CompileSettings settings;
  };

  static std::string text_of(const InputSymbols::Values& symbols) {
    std::vector<std::string> values;
    for (const auto& [symbol, value] : symbols) values.push_back(fmt::format("{} is {}", symbol, value));
    return fmt::format("{}", fmt::join(values, ", "));
  }

  size_t count() const {
    const std::shared_lock lock(mutex_);
    return forms_.size();
  }

  SharedGraph find(const InputSymbols::Values& symbols, const CompileSettings& settings) const {
    const std::shared_lock lock(mutex_);
    const auto found =
        std::find_if(forms_.begin(), forms_.end(), [&](const Form& form) { return form.settings == settings && hold(form.graph->guards(), symbols); });
    return found == forms_.end() ? nullptr : found->graph;
  }

  SharedGraph add(const InputSymbols::Values& symbols, const CompileSettings& settings, const InterruptCheck& interrupted) {
    SharedGraph made = CompiledGraph::from_file(calls_, settings, options_, interrupted, symbols);
    if (!made->fallback_reason().empty())
      TORCH_WARN("cxxinductor: ", calls_.name, " runs op by op through ATen where ", text_of(symbols), ": ", made->fallback_reason());
    const std::unique_lock lock(mutex_);
    const ForkGuard guard(ForkLock::Leaf);
    forms_.push_back({made, settings});
    return made;
  }

  void add_in_background(const InputSymbols::Values& symbols, const CompileSettings& settings, const InterruptCheck& interrupted) {
    try {
      add(symbols, settings, interrupted);
    } catch (const Interrupted&) {  // the model is gone
      return;
    } catch (const std::exception&) {  // the next call of such sizes tries again
    }
    const std::lock_guard making(making_);
    is_compiling_ = false;
  }

  SharedGraph uncompiled() {
    if (!uncompiled_) {
      SharedGraph made = CompiledGraph::uncompiled(calls_, options_);
      const ForkGuard guard(ForkLock::Leaf);
      uncompiled_ = std::move(made);
    }
    return uncompiled_;
  }

  const model::CallGraph calls_;
  const InputSymbols symbols_;
  const Options options_;
  const Form first_;
  mutable ForkSharedMutex mutex_;  // guards forms_
  std::vector<Form> forms_;
  ForkMutex making_;  // guards what follows
  bool is_compiling_ = false;
  SharedGraph uncompiled_;
  const ForkChildHook in_child_{[this] { is_compiling_ = false; }};  // the thread that did is not there
};

FileModel::FileModel(SharedGraph graph, const model::CallGraph& calls, std::vector<std::shared_ptr<const FileModel>> subgraphs, const Options& options)
    : name_(calls.name),
      symbols_(calls),
      first_(std::move(graph)),
      written_(written_inputs(*first_, calls)),
      forms_(std::make_unique<Forms>(with_derived_symbols(calls), first_, options)),
      subgraphs_(std::move(subgraphs)) {}

FileModel::FileModel(model::CallGraph calls, std::vector<std::shared_ptr<const FileModel>> subgraphs, const Options& options, bool compiled,
                     const InterruptCheck& interrupted)
    : name_(calls.name), symbols_(calls), subgraphs_(std::move(subgraphs)) {
  calls = with_derived_symbols(std::move(calls));
  if (compiled) {
    first_ = CompiledGraph::from_file(calls, CompileSettings::current(), options, interrupted);
    written_ = written_inputs(*first_, calls);
    forms_ = std::make_unique<Forms>(std::move(calls), first_, options);
  } else {
    first_ = CompiledGraph::uncompiled(calls, options);
  }
}

FileModel::~FileModel() = default;

std::shared_ptr<const FileModel> FileModel::make(const model::CallGraph& calls, const Options& options, bool compiled, const InterruptCheck& interrupted) {
  std::vector<std::shared_ptr<const FileModel>> subgraphs;
  const auto make_subgraph = [&](model::CallGraph subgraph) {
    std::vector<std::shared_ptr<const FileModel>> none;
    subgraphs.push_back(std::shared_ptr<const FileModel>(new FileModel(std::move(subgraph), std::move(none), options, compiled, interrupted)));
    return subgraphs.back();
  };
  model::CallGraph lowered = with_functions(calls, make_subgraph);
  return std::shared_ptr<const FileModel>(new FileModel(std::move(lowered), std::move(subgraphs), options, compiled, interrupted));
}

std::shared_ptr<const FileModel> FileModel::compile(const model::CallGraph& calls, const Options& options, const InterruptCheck& interrupted) {
  return make(calls, options, true, interrupted);
}

std::shared_ptr<const FileModel> FileModel::from_package(const model::CallGraph& calls, const PackagedPlans& plans, const Options& options) {
  std::vector<std::shared_ptr<const FileModel>> subgraphs;
  const auto load = [&](const model::CallGraph& lowered, const PackagedPlan& plan, std::vector<std::shared_ptr<const FileModel>> parts) {
    return std::shared_ptr<const FileModel>(new FileModel(CompiledGraph::from_package(lowered, plan, options), lowered, std::move(parts), options));
  };
  const model::CallGraph lowered = with_functions(calls, [&](const model::CallGraph& subgraph) {
    if (subgraphs.size() == plans.subgraphs.size()) throw_user_error("package: expected plans of all subgraphs, found {}", plans.subgraphs.size());
    subgraphs.push_back(load(subgraph, plans.subgraphs[subgraphs.size()], {}));
    return subgraphs.back();
  });
  if (subgraphs.size() != plans.subgraphs.size())
    throw_user_error("package: expected plans of {} subgraphs, found {}", subgraphs.size(), plans.subgraphs.size());
  return load(lowered, plans.main, std::move(subgraphs));
}

std::vector<PlanForPackage> package_model(const model::CallGraph& calls, const Targets& targets, const Options& options) {
  std::vector<PlanForPackage> plans(1);
  const model::CallGraph lowered = with_functions(calls, [&](const model::CallGraph& subgraph) {
    plans.push_back(package_calls(subgraph, targets, options));
    return nullptr;
  });
  plans.front() = package_calls(lowered, targets, options);
  return plans;
}

std::shared_ptr<const FileModel> FileModel::uncompiled(const model::CallGraph& calls, const Options& options) { return make(calls, options, false, {}); }

std::vector<c10::IValue> FileModel::run(std::vector<c10::IValue> inputs) const {
  const std::vector<std::string> derived = symbols_.derived();
  if (!derived.empty()) {
    const auto values = symbols_.values(inputs);
    // Inputs of other kinds or ranks are refused.
    for (const std::string& symbol : derived) inputs.emplace_back(values ? values->find(symbol)->second : 0);
  }
  // A write to one is then seen through the other, as the calls one by one show it.
  const bool is_apart = !any_share_memory(inputs, written_);
  const SharedGraph form = !forms_ ? nullptr : is_apart ? forms_->find_or_make(inputs) : forms_->uncompiled_form();
  return (form ? form : first_)->run(std::move(inputs));
}

bool FileModel::writes_input(uint32_t position) const { return first_->writes_input(position); }

std::string FileModel::fallback_reason() const {
  if (!first_->fallback_reason().empty()) return first_->fallback_reason();
  for (const auto& subgraph : subgraphs_)
    if (const std::string reason = subgraph->fallback_reason(); !reason.empty()) return fmt::format("@{}: {}", subgraph->name_, reason);
  return {};
}

std::string FileModel::describe(std::string_view title) const {
  std::string text = forms_ ? forms_->describe(title) : first_->describe(title);
  for (const auto& subgraph : subgraphs_) text += "\n" + subgraph->describe(fmt::format("{}, subgraph @{}", title, subgraph->name_));
  return text;
}

}  // namespace cxxinductor::torch_bridge

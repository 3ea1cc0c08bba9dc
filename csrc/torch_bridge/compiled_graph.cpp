#include "torch_bridge/compiled_graph.h"

#include <ATen/Context.h>
#include <ATen/ops/conj_physical.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <set>

#include "driver/dump.h"
#include "driver/interp_check.h"
#include "frontend/check_calls.h"
#include "frontend/complex/lower_complex.h"
#include "frontend/import.h"
#include "ir/device_types.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "model/eager_memory.h"
#include "model/effects.h"
#include "model/text.h"
#include "support/error.h"
#include "support/fork_locks.h"
#include "torch_bridge/aten_executor.h"
#include "torch_bridge/call_label.h"
#include "torch_bridge/captured_objects.h"
#include "torch_bridge/compile_report.h"
#include "torch_bridge/device/context_settings.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/eager_check.h"
#include "torch_bridge/folded_constants.h"
#include "torch_bridge/import_targets.h"
#include "torch_bridge/input_symbols.h"
#include "torch_bridge/memory_snapshot.h"
#include "torch_bridge/packaged_functions.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/replay/replay.h"
#include "torch_bridge/replay/views_of_inputs.h"
#include "torch_bridge/reproducer.h"
#include "torch_bridge/step_ranges.h"
#include "torch_bridge/text_passes.h"
#include "torch_bridge/torch_host.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

void count_kernels(const plan::Plan& plan, const driver::Report& report) {
  const std::vector<bool> own = plan::base_kernels(plan);
  counters().kernels += std::count(own.begin(), own.end(), true);
  counters().externs += static_cast<int64_t>(report.externs.size());
}

// What a recorded function calls by itself, its plan may call.
std::vector<std::string> callees_of(const model::CallGraph& calls) {
  std::set<std::string> names;
  for (const model::Call& call : calls.calls) names.insert(call.callee);
  return {names.begin(), names.end()};
}

std::string dump(const driver::Report& report, const std::string& name, const Options& options, const std::string& what) {
  return driver::write_dump(report, name, options.dump_dir.empty() ? "cxxinductor_dump" : options.dump_dir, what);
}

// Of a graph that was not compiled there are its calls. Their place, or what keeps them from being written, is added to the reason.
void dump_fallback(const model::CallGraph& calls, const Options& options, std::string& reason) {
  if (options.dump.empty()) return;
  try {
    driver::Report report;
    report.calls_text = model::print(calls);
    reason += fmt::format("; its calls are in {}/calls.txt", dump(report, calls.name + ".aten", options, "calls"));
  } catch (const Error& error) {
    if (reason.find(error.what()) == std::string::npos) reason += fmt::format("; {}", error.what());
  }
}

// What was compiled runs even where nobody may write a dump of it.
void dump_compiled(const driver::Compilation& compilation, const std::string& name, const Options& options) {
  try {
    dump(compilation.report, name, options, options.dump);
    if (const auto& const_graph = compilation.const_graph) dump(const_graph->report, name + "_const", options, options.dump);
  } catch (const Error& error) {
    TORCH_WARN("cxxinductor: there is no dump of ", name, ": ", error.what());
  }
}

// calls: for dumps; null where there are none. eager: the calls that eager would run, which write in place where those do not.
driver::Compilation compile_graph(graph::Graph graph, const model::CallGraph* calls, const model::CallGraph* eager, const Options& options,
                                  frontend::CallReasons reasons = {}, const InterruptCheck& interrupted = {}, std::vector<uint32_t> late_inputs = {}) {
  driver::Request request;
  request.late_inputs = std::move(late_inputs);
  request.call_reasons = std::move(reasons);
  request.interrupted = interrupted;
  request.targets = targets_for(driver::devices_of(graph), options);
  request.graph = std::move(graph);
  if (eager) request.graph.eager_peaks = model::eager_peaks(*eager);
  set_options_and_passes(request, options);
  request.host = &torch_host();
  request.plan_cache = disk_cache(options);
  request.make_provider = [&](const plan::Plan& plan, const Targets& targets) { return make_provider(plan, targets, options, torch_host()); };
  request.before_planning = [&](const Targets& targets) { start_compilers(targets, options); };
  request.keep_texts = !options.dump.empty();
  const std::string name = request.graph.name;
  driver::Compilation compilation = driver::compile(std::move(request));
  if (!options.dump.empty()) {
    if (calls) compilation.report.calls_text = model::print(*calls);
    dump_compiled(compilation, name, options);
  }
  return compilation;
}

std::string with_reproducer(const model::CallGraph& calls, const frontend::ImportEnvironment& environment, const Options& options, const std::string& error) {
  try {
    return fmt::format("{}\nThis is a bug of cxxinductor; {} shows it to its developers", error, write_reproducer(calls, environment, options, error));
  } catch (const std::exception& second) {
    return fmt::format("{}\nThis is a bug of cxxinductor (no folder was written that shows it: {})", error, second.what());
  }
}

// The same numbers, with the bit or without it.
at::Tensor with_conjugate_bit(const at::Tensor& tensor, bool conjugate) {
  if (tensor.is_conj() == conjugate) return tensor;
  return conjugate ? at::conj_physical(tensor).conj() : tensor.resolve_conj();
}

}  // namespace

struct CompiledGraph::Impl {
  std::unique_ptr<AtenExecutor> fallback;
  std::shared_ptr<runtime::Executable> input_check;  // of a fallback whose inputs nobody else checks
  driver::Compilation compilation;
  std::string fallback_reason;
  std::vector<std::shared_ptr<const void>> objects;  // what the graph's handles stand for
  bool check_inputs = true;
  std::set<uint32_t> written;  // positions of inputs
  std::vector<uint32_t> late_inputs;
  ViewsOfInputs views_of_inputs;
  std::optional<Replayed> replayed;  // of a model's own calls, which hold composites of ATen's and writes to tensors
  Options options;
  std::unique_ptr<EagerReference> eager;    // check=eager
  std::unique_ptr<FoldedConstants> folded;  // option freezing
  std::vector<at::Tensor> constants;        // that the graph held itself
  std::vector<Device> gpus;                 // that the plan works on, or the calls that run through ATen
  bool has_library_calls = false;           // of the plan: its recordings depend on PyTorch's settings, which take half a microsecond to read
  // Positions of complex inputs, and whether they were recorded with a conjugate bit: gradients come as autograd makes them.
  std::vector<std::pair<uint32_t, bool>> complex_inputs;
  std::atomic<bool> captured = false;                // by a CUDA graph
  mutable std::set<std::string> notes, notes_given;  // guarded by ForkLock::Leaf

  void compile_or_fall_back(model::CallGraph calls, const CompileSettings& settings, const InterruptCheck& interrupted);
  void compile(const model::CallGraph& given, frontend::ImportEnvironment& environment, const InterruptCheck& interrupted);
  std::shared_ptr<runtime::Executable> compile_input_check(model::CallGraph calls);
  void run_through_aten(model::CallGraph calls);
  void read_plan(const PackagedPlan& packaged, const std::vector<std::string>& allowed, const std::vector<Handle>& functions = {});
  static std::shared_ptr<CompiledGraph> made(std::unique_ptr<Impl> impl);
  static std::shared_ptr<CompiledGraph> reported(const std::string& name, std::unique_ptr<Impl> impl);
  static std::unique_ptr<Impl> of_file(const model::CallGraph& calls, const Options& options, model::SizeHints hints = {});
  std::vector<runtime::Value> values_of(std::vector<c10::IValue> inputs) const;

  bool is_being_captured() const {
    return std::ranges::any_of(gpus, [](Device gpu) { return is_recording(gpu, torch_host().current_stream(gpu)); });
  }

  // So that autograd finds out where it saved one of them, as in eager.
  void bump_versions(const std::vector<c10::IValue>& inputs) const {
    for (uint32_t input : written)
      if (const at::Tensor& tensor = inputs[input].toTensor(); !tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }

  void find_complex_inputs(const model::CallGraph& calls) {
    for (uint32_t i = 0; i < calls.inputs.size(); ++i)
      if (const auto& info = calls.values[calls.inputs[i]]; frontend::is_complex_value(info)) complex_inputs.emplace_back(i, info.conjugate);
  }

  void keep_const_graph() {
    if (!compilation.const_graph) return;
    folded = std::make_unique<FoldedConstants>(*std::exchange(compilation.const_graph, std::nullopt));
  }

  // views: those of inputs, which calls do not make.
  std::vector<c10::IValue> outputs_of(std::vector<runtime::Value> results, const std::vector<at::Tensor>& views) const {
    std::vector<c10::IValue> outputs;
    outputs.reserve(results.size());
    for (runtime::Value& result : results) outputs.push_back(to_ivalue(std::move(result)));
    for (size_t i = 0; i < views.size(); ++i) outputs[views_of_inputs.views()[i].output] = views[i];
    return outputs;
  }

  // What the check option asks for at each call; null: nothing.
  std::unique_ptr<driver::KernelCheck> make_check(const std::vector<c10::IValue>& inputs) const {
    if (eager) return eager->check(inputs);
    if (options.check != "interp") return nullptr;
    return std::make_unique<driver::InterpCheck>(options, [this](std::string note) {
      const ForkGuard guard(ForkLock::Leaf);
      if (notes_given.insert(note).second) notes.insert(std::move(note));
    });
  }
};

driver::Report plan_calls(model::CallGraph calls, const Targets& targets, const Options& options) {
  frontend::ImportEnvironment environment = import_environment(options, at::globalContext().deterministicAlgorithms());
  add_targets(environment, devices_of(calls), targets);
  environment.gpus.clear();  // the plan may run on others of the architecture, with other numbers of multiprocessors
  driver::Request request;
  std::map<Device, int64_t> eager_peaks = model::eager_peaks(calls);
  frontend::ImportNotes notes;
  request.graph = frontend::import_graph(frontend::lower_complex(std::move(calls), DispatcherSchemas()), DispatcherSchemas(), environment, &notes);
  request.graph.eager_peaks = std::move(eager_peaks);
  request.call_reasons = std::move(notes.reasons);
  for (Device device : driver::devices_of(request.graph)) request.targets.add(device, targets.of(device));
  set_options_and_passes(request, options);
  request.host = &torch_host();
  request.keep_texts = true;
  return driver::compile(std::move(request)).report;
}

CompiledGraph::CompiledGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  const auto add = [this](Device device) {
    if (has_streams(device)) impl_->gpus.push_back(device);
  };
  if (impl_->fallback)
    std::ranges::for_each(devices_of(impl_->fallback->calls()), add);
  else
    std::ranges::for_each(plan()->devices, add);
  const auto is_library_call = [](const plan::Step& step) { return std::holds_alternative<plan::CallExtern>(step); };
  impl_->has_library_calls = impl_->fallback || std::ranges::any_of(plan()->steps, is_library_call);
}
CompiledGraph::~CompiledGraph() { LiveGraphs::remove(*this); }

// Fills all but what is done instead where compiling fails.
void CompiledGraph::Impl::compile(const model::CallGraph& given, frontend::ImportEnvironment& environment, const InterruptCheck& interrupted) {
  // Copies of large graphs take as long as reading a plan.
  std::optional<model::CallGraph> functional, lowered;
  if (replayed) {
    functional = functional_calls(*replayed);
    views_of_inputs = ViewsOfInputs(replayed->calls);
    for (const ViewsOfInputs::View& view : views_of_inputs.views()) functional->outputs[view.output] = None();
  }
  const model::CallGraph& calls = functional ? *functional : given;
  objects = calls.objects;
  find_complex_inputs(calls);
  frontend::ImportNotes found;
  const std::set<Device> devices = devices_of(calls);
  add_targets(environment, devices, options);
  if (!environment.gpus.empty() && devices.contains({})) environment.cpu_kernels = has_compiler({}, options);
  if (frontend::has_complex(calls)) lowered = frontend::lower_complex(calls, DispatcherSchemas());
  const model::CallGraph& real = lowered ? *lowered : calls;
  graph::Graph graph = frontend::import_graph(real, DispatcherSchemas(), environment, &found);
  compilation =
      compile_graph(std::move(graph), &calls, replayed ? &replayed->calls : &calls, options, std::move(found.reasons), interrupted, std::move(late_inputs));
  compilation.report.collectives = calls.collective_notes;
  if (options.check == "eager") eager = std::make_unique<EagerReference>(real, found.names, compilation.executable->plan(), options);
  keep_const_graph();
}

// compile, or what is done instead where that fails.
void CompiledGraph::Impl::compile_or_fall_back(model::CallGraph calls, const CompileSettings& settings, const InterruptCheck& interrupted) {
  check_target(options);
  frontend::ImportEnvironment environment = import_environment(options, settings.deterministic);
  try {
    if (options.tier == "aten") throw_unsupported("the option tier=aten asks for it");
    if (settings.default_dtype != c10::ScalarType::Float)
      throw_unsupported("PyTorch's default dtype is {}; what is compiled knows Float", c10::toString(settings.default_dtype));
    if (replayed) require_guards_on_inputs(*replayed);
    compile(calls, environment, interrupted);
  } catch (const Interrupted&) {
    throw;
  } catch (const InternalError& error) {
    fallback_reason = with_reproducer(calls, environment, options, error.what());
  } catch (const Error& error) {
    fallback_reason = error.what();
  } catch (const c10::Error& error) {
    fallback_reason = error.what();
  } catch (const std::bad_alloc& error) {
    fallback_reason = error.what();
  } catch (const std::exception& error) {  // of the language and its library: an invariant of ours that nothing checked
    fallback_reason = with_reproducer(calls, environment, options, fmt::format("unexpected error: {}", error.what()));
  }
  if (fallback_reason.empty()) return;
  dump_fallback(calls, options, fallback_reason);
  run_through_aten(std::move(calls));
}

void CompiledGraph::Impl::run_through_aten(model::CallGraph calls) {
  compilation.report.collectives = calls.collective_notes;
  if (check_inputs) input_check = compile_input_check(calls);
  fallback = std::make_unique<AtenExecutor>(std::move(calls));
}

void CompiledGraph::Impl::read_plan(const PackagedPlan& packaged, const std::vector<std::string>& allowed, const std::vector<Handle>& functions) {
  driver::Request request;
  request.targets = packaged.targets;
  request.options = options;
  request.host = &torch_host();
  request.make_provider = [&](const plan::Plan& plan, const Targets& targets) {
    frontend::check_calls(plan, DispatcherSchemas(), allowed, functions);
    return make_provider(plan, targets, options, torch_host(), std::nullopt, packaged.code);
  };
  compilation = driver::compile_plan(unpack_functions(packaged.plan, functions), std::move(request));
}

std::shared_ptr<CompiledGraph> CompiledGraph::Impl::made(std::unique_ptr<Impl> impl) {
  std::shared_ptr<CompiledGraph> graph(new CompiledGraph(std::move(impl)));
  LiveGraphs::add(*graph);  // whoever lists them shares ownership
  return graph;
}

std::shared_ptr<CompiledGraph> CompiledGraph::Impl::reported(const std::string& name, std::unique_ptr<Impl> impl) {
  std::shared_ptr<CompiledGraph> graph = made(std::move(impl));
  graph->count();
  print_compile(*graph, name, graph->impl_->options);
  return graph;
}

std::unique_ptr<CompiledGraph::Impl> CompiledGraph::Impl::of_file(const model::CallGraph& calls, const Options& options, model::SizeHints hints) {
  check_pass_names(options);
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->replayed = replay(calls, std::move(hints));
  frontend::check_calls(impl->replayed->calls, DispatcherSchemas(), list_items(options.allow_ops));
  impl->written = model::written_inputs(impl->replayed->calls, DispatcherSchemas());
  return impl;
}

// The graph without its calls: a run of it checks the inputs and does nothing else.
std::shared_ptr<runtime::Executable> CompiledGraph::Impl::compile_input_check(model::CallGraph calls) {
  calls.calls.clear();
  calls.outputs.clear();
  calls.mutations.clear();
  calls.flexible_outputs.clear();
  frontend::ImportEnvironment environment;
  add_targets(environment, devices_of(calls), options);
  frontend::ImportNotes none;
  graph::Graph graph = frontend::import_graph(frontend::lower_complex(std::move(calls), DispatcherSchemas()), DispatcherSchemas(), environment, &none);
  return compile_graph(std::move(graph), nullptr, nullptr, options).executable;
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_calls(model::CallGraph calls, const CompileSettings& settings, const Options& options,
                                                         const InterruptCheck& interrupted) {
  auto impl = std::make_unique<Impl>();
  impl->check_inputs = false;
  impl->options = options;
  impl->compile_or_fall_back(std::move(calls), settings, interrupted);
  return Impl::made(std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_file(model::CallGraph calls, const CompileSettings& settings, const Options& options,
                                                        const InterruptCheck& interrupted, model::SizeHints hints) {
  auto impl = Impl::of_file(calls, options, std::move(hints));
  const std::string name = calls.name;
  impl->compile_or_fall_back(std::move(calls), settings, interrupted);
  warn_of_cache(options);
  return Impl::reported(name, std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::uncompiled(model::CallGraph calls, const Options& options) {
  auto impl = Impl::of_file(calls, options);
  impl->run_through_aten(std::move(calls));
  return Impl::made(std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::through_aten(model::CallGraph calls, const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->check_inputs = false;
  impl->options = options;
  impl->run_through_aten(std::move(calls));
  return Impl::made(std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_package(const model::CallGraph& calls, const PackagedPlan& packaged, const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  if (packaged.needs_calls) {
    impl->replayed = replay(with_derived_symbols(calls));
    impl->written = model::written_inputs(impl->replayed->calls, DispatcherSchemas());
    impl->views_of_inputs = ViewsOfInputs(impl->replayed->calls);
  }
  impl->objects = calls.objects;
  impl->find_complex_inputs(calls);
  impl->read_plan(packaged, list_items(options.allow_ops), functions_of(calls));
  return Impl::reported(calls.name, std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_packaged_trace(const model::CallGraph& calls, const PackagedPlan& packaged, const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->check_inputs = false;
  impl->options = options;
  impl->written = model::written_inputs(calls, DispatcherSchemas());
  impl->views_of_inputs = ViewsOfInputs(calls);
  impl->find_complex_inputs(calls);
  impl->read_plan(packaged, callees_of(calls));
  return Impl::reported(calls.name, std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_trace(model::CallGraph calls, const CompileSettings& settings, const Options& options,
                                                         const InterruptCheck& interrupted, std::vector<uint32_t> late_inputs) {
  auto impl = std::make_unique<Impl>();
  impl->check_inputs = false;
  impl->options = options;
  impl->late_inputs = std::move(late_inputs);
  impl->replayed = Replayed{calls, {}, {}};
  impl->written = model::written_inputs(calls, DispatcherSchemas());
  const std::string name = calls.name;
  impl->compile_or_fall_back(std::move(calls), settings, interrupted);
  warn_of_cache(options);
  return Impl::reported(name, std::move(impl));
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_text(std::string_view text, const Options& options) {
  if (options.check == "eager") throw_user_error("check=eager needs the calls of a model; a graph from text has check=interp");
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->options.freezing = false;  // what runs before a call would see inputs that nobody has checked
  graph::Graph graph = graph::parse(text);
  frontend::check_calls(graph, DispatcherSchemas(), list_items(options.allow_ops));
  for (graph::Node& node : graph.nodes) {  // that indices are in range is nothing that text may claim
    if (auto* gather = std::get_if<graph::Gather>(&node.kind)) gather->check = true;
    if (auto* scatter = std::get_if<graph::Scatter>(&node.kind)) scatter->check = true;
  }
  impl->compilation = compile_graph(std::move(graph), nullptr, nullptr, impl->options);
  auto compiled = Impl::made(std::move(impl));
  compiled->count();
  return compiled;
}

std::shared_ptr<CompiledGraph> CompiledGraph::from_plan(std::string_view text, const std::optional<std::string>& source, const Options& options) {
  if (options.check == "eager") throw_user_error("check=eager needs the calls of a model; a plan has check=interp");
  plan::Plan plan = plan::parse(text);
  frontend::check_calls(plan, DispatcherSchemas(), list_items(options.allow_ops));
  auto kernels = make_provider(plan, targets_for(plan.devices, options), options, torch_host(), source);
  kernels->prepare(plan);
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->options.cuda_graphs = "off";  // the text says what runs, step by step
  impl->compilation.executable = std::make_shared<runtime::Executable>(std::move(plan), std::move(kernels), torch_host());
  return Impl::made(std::move(impl));
}

void CompiledGraph::set_constants(std::vector<at::Tensor> constants) {
  const ForkGuard guard(ForkLock::Leaf);  // others may list what graphs hold
  impl_->constants = std::move(constants);
}

// What a CUDA graph replays later must be there as long as that graph, of whose end we hear nothing: all of it stays.
bool CompiledGraph::stay_if_captured() const {
  if (!impl_->is_being_captured()) return false;
  if (!impl_->captured.exchange(true)) keep_for_captured_graphs(shared_from_this());
  return true;
}

std::vector<runtime::Value> CompiledGraph::Impl::values_of(std::vector<c10::IValue> inputs) const {
  std::vector<runtime::Value> values;
  values.reserve(inputs.size());
  for (const auto& [input, conjugate] : complex_inputs)
    if (inputs[input].isTensor()) inputs[input] = with_conjugate_bit(inputs[input].toTensor(), conjugate);
  for (c10::IValue& input : inputs) values.push_back(to_value(std::move(input)));
  return values;
}

std::vector<c10::IValue> CompiledGraph::run(std::vector<c10::IValue> inputs, std::string* written) const {
  const CallLabel label(*this, {.nvtx = impl_->options.nvtx, .memory_history = !impl_->gpus.empty()});
  inputs.insert(inputs.end(), impl_->constants.begin(), impl_->constants.end());
  impl_->bump_versions(inputs);
  const bool captured = stay_if_captured();
  if (impl_->fallback) {
    if (impl_->input_check) impl_->input_check->run(torch_host(), impl_->values_of(inputs));
    return impl_->fallback->run(std::move(inputs));
  }
  const std::vector<at::Tensor> views = impl_->views_of_inputs.make(inputs);
  const std::unique_ptr<driver::KernelCheck> check = impl_->make_check(inputs);
  if (impl_->folded) impl_->folded->append(inputs, captured);
  // Replays run no single steps; profilers show their kernels by name. A mode of Python's sees all calls, and may make some of its own.
  const bool has_modes = c10::impl::TorchDispatchModeTLS::any_modes_set();
  const bool uses_graphs = !captured && !impl_->gpus.empty() && impl_->options.cuda_graphs != "off" && !has_modes;
  const bool by_steps = !check && !uses_graphs;
  const std::unique_ptr<runtime::StepObserver> ranges = by_steps ? ranges_of_steps(impl_->options.nvtx) : nullptr;
  runtime::StepObserver* const observer = check ? check.get() : ranges.get();
  const int64_t settings = uses_graphs && impl_->has_library_calls ? ContextSettings::current().hash() : 0;
  std::vector<runtime::Value> results = impl_->compilation.executable->run(
      torch_host(), impl_->values_of(std::move(inputs)),
      {.check_inputs = impl_->check_inputs, .observer = observer, .graphs = uses_graphs, .library_settings = settings, .written = written});
  if (check) counters().checked_launches += check->checked();
  return impl_->outputs_of(std::move(results), views);
}

class CompiledGraph::RunInParts final : public PartialRun {
 public:
  RunInParts(std::shared_ptr<const CompiledGraph> graph, std::vector<c10::IValue> inputs, std::vector<bool> known)
      : graph_(std::move(graph)), known_(std::move(known)), call_(impl().compilation.executable->begin(torch_host(), impl().values_of(std::move(inputs)))) {}

  void supply(size_t input, c10::IValue value) override {
    known_[input] = true;
    call_->supply(input, to_value(std::move(value)).tensor);
  }
  void advance(size_t end) override { call_->advance(end); }
  std::vector<c10::IValue> finish(std::vector<c10::IValue> inputs) override {
    impl().bump_versions(inputs);
    const std::vector<at::Tensor> views = impl().views_of_inputs.make(inputs);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!known_[i]) supply(i, std::move(inputs[i]));
    inputs.clear();
    return impl().outputs_of(call_->finish(), views);
  }

 private:
  const Impl& impl() const { return *graph_->impl_; }

  const std::shared_ptr<const CompiledGraph> graph_;
  std::vector<bool> known_;  // by input
  const std::unique_ptr<runtime::PartialCall> call_;
};

std::unique_ptr<PartialRun> CompiledGraph::begin(std::vector<c10::IValue> inputs, std::vector<bool> known) const {
  if (plan() == nullptr || !impl_->constants.empty() || !impl_->complex_inputs.empty() || impl_->folded || impl_->eager || impl_->options.check == "interp" ||
      impl_->is_being_captured())
    return nullptr;
  return std::make_unique<RunInParts>(shared_from_this(), std::move(inputs), std::move(known));
}

const std::string& CompiledGraph::name() const { return plan() ? plan()->name : impl_->fallback->calls().name; }
std::vector<at::Tensor> CompiledGraph::held_tensors() const {
  const ForkGuard guard(ForkLock::Leaf);
  return impl_->constants;
}
const std::string& CompiledGraph::fallback_reason() const { return impl_->fallback_reason; }
// Calls as they were read hold for all sizes.
std::span<const model::SizeGuard> CompiledGraph::guards() const {
  if (!impl_->replayed || impl_->fallback) return {};
  return impl_->replayed->guards;
}
std::vector<std::string> CompiledGraph::take_check_notes() const {
  const ForkGuard guard(ForkLock::Leaf);
  std::vector<std::string> taken(impl_->notes.begin(), impl_->notes.end());
  impl_->notes.clear();
  return taken;
}

bool CompiledGraph::writes_input(uint32_t position) const { return impl_->written.contains(position); }
const driver::Report& CompiledGraph::report() const { return impl_->compilation.report; }
const FoldedConstants* CompiledGraph::constants() const { return impl_->folded.get(); }

driver::GraphSummary CompiledGraph::summary() const { return plan() ? driver::summarize(*plan(), report()) : driver::GraphSummary(); }

std::optional<driver::ConstSummary> CompiledGraph::const_summary() const {
  const FoldedConstants* once = constants();
  if (!once) return std::nullopt;
  driver::ConstSummary summary = driver::summarize_once(once->plan(), once->report(), once->kept_bytes());
  summary.by_each_call = once->is_folded_by_each_call();
  return summary;
}

std::string CompiledGraph::describe(std::string_view title, std::span<const driver::StageTime> before) const {
  if (impl_->fallback) return fmt::format("{}: runs op by op through ATen: {}", title, impl_->fallback_reason);
  std::string text = driver::describe(summary(), const_summary(), title, before);
  if (impl_->options.cuda_graphs != "off" && impl_->compilation.executable && !impl_->gpus.empty()) {
    text += fmt::format("\n  CUDA graphs ({}):", impl_->options.cuda_graphs);
    const auto reasons = impl_->compilation.executable->not_recorded();
    if (reasons.empty()) text += " no step is excluded";
    for (const auto& [reason, steps] : reasons) text += fmt::format("\n    {} step{} not recorded: {}", steps, steps == 1 ? "" : "s", reason);
  }
  return text;
}
const plan::Plan* CompiledGraph::plan() const { return impl_->compilation.executable ? &impl_->compilation.executable->plan() : nullptr; }

void CompiledGraph::count() const {
  if (impl_->fallback) {
    counters().aten_fallbacks += 1;
    return;
  }
  counters().graphs += 1;
  count_kernels(*plan(), report());
  if (const FoldedConstants* once = constants()) count_kernels(once->plan(), once->report());
}

}  // namespace cxxinductor::torch_bridge

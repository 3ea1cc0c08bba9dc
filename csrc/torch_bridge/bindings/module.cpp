// The Python module cxxinductor._C.
#include <ATen/Context.h>
#include <cxxinductor/device.h>
#include <cxxinductor/jit.h>
#include <torch/csrc/Generator.h>

#include <optional>

#include "driver/dump.h"
#include "frontend/import.h"
#include "model/infer/infer.h"
#include "model/passes/split_gradients.h"
#include "model/text.h"
#include "passes/pass_manager.h"
#include "readers/pt2/read_pt2.h"
#include "runtime/compile_pool.h"
#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/bindings/bisection.h"
#include "torch_bridge/bindings/cache.h"
#include "torch_bridge/bindings/call_graph_builder.h"
#include "torch_bridge/bindings/compiled_callable.h"
#include "torch_bridge/bindings/extensions.h"
#include "torch_bridge/bindings/fragments.h"
#include "torch_bridge/bindings/kernel_timing.h"
#include "torch_bridge/bindings/models.h"
#include "torch_bridge/bindings/signal_check.h"
#include "torch_bridge/bindings/without_gil.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/device/context_settings.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/memory_snapshot.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/python_error.h"
#include "torch_bridge/replay/replay.h"
#include "torch_bridge/text_passes.h"

namespace cxxinductor::bindings {
namespace {

void translate_errors() {
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    const auto raise = [](const char* name, const std::exception& error) {
      PyErr_SetString(py::module_::import("cxxinductor.errors").attr(name).ptr(), error.what());
    };
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Interrupted&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);  // the process ends, or a signal handler forked
    } catch (const UserError& error) {
      raise("UserError", error);
    } catch (const Unsupported& error) {
      raise("Unsupported", error);
    } catch (const KernelMismatch& error) {
      raise("KernelMismatch", error);
    } catch (const InternalError& error) {
      raise("InternalError", error);
    }
  });
  torch_bridge::set_forget_python_error([] {
    const py::gil_scoped_acquire gil;
    PyErr_Clear();
  });
}

const char* python_type(const OptionInfo& option) {
  return option.type == "bool" ? "bool" : option.type == "int64_t" ? "int" : option.type == "double" ? "float" : "str";
}

// values: the words that the option accepts; empty: every value of its type.
py::list option_rows() {
  py::list rows;
  for (const OptionInfo& option : option_table()) {
    py::list values;
    for (std::string_view word : option_values(option.name)) values.append(word);
    if (option.name == "skip_passes")
      for (const passes::PassInfo& pass : passes::pass_table()) values.append(pass.name);
    rows.append(py::dict(py::arg("name") = option.name, py::arg("type") = python_type(option), py::arg("default") = get_option(Options(), option.name),
                         py::arg("values") = values, py::arg("environment") = environment_variable(option.name),
                         py::arg("decides_what_is_compiled") = decides_what_is_compiled(option), py::arg("doc") = option.doc));
  }
  return rows;
}

void set_checked_option(Options& options, const std::string& name, const std::string& value) {
  set_option(options, name, value);
  torch_bridge::check_pass_names(options);
}

Options checked_options_from_environment(const std::vector<std::pair<std::string, std::string>>& environment) {
  Options options = options_from_environment(environment);
  torch_bridge::check_pass_names(options);
  return options;
}

py::dict counter_dict() {
  const torch_bridge::Counters c = torch_bridge::read_counters();
  return py::dict(py::arg("graphs") = c.graphs, py::arg("kernels") = c.kernels, py::arg("extern") = c.externs, py::arg("aten_fallback") = c.aten_fallbacks,
                  py::arg("eager_fallback") = c.eager_fallbacks, py::arg("checked_launches") = c.checked_launches,
                  py::arg("background_compiles") = c.background_compiles, py::arg("background_calls") = c.background_calls,
                  py::arg("copied_results") = c.copied_results, py::arg("cache_hits") = c.cache_hits, py::arg("cache_writes") = c.cache_writes,
                  py::arg("graph_recordings") = c.graph_recordings, py::arg("graph_replays") = c.graph_replays,
                  py::arg("graph_patched_nodes") = c.graph_patched_nodes, py::arg("graph_refusals") = c.graph_refusals);
}

py::object compile(const CallGraphBuilder& builder, const Options& options, std::vector<at::Tensor> constants) {
  std::shared_ptr<torch_bridge::CompiledGraph> graph;
  SignalCheck check;
  try {
    const WithoutGil scope;
    graph = torch_bridge::CompiledGraph::from_calls(builder.graph(), torch_bridge::CompileSettings::current(), options, check.check());
  } catch (const Interrupted&) {
    check.rethrow();
    throw;
  }
  graph->count();
  graph->set_constants(std::move(constants));
  return make_compiled_callable(std::move(graph));
}

py::object compile_in_background(const CallGraphBuilder& builder, const Options& options, const std::vector<at::Tensor>& constants, bool waits,
                                 const py::object& ended) {
  auto pending = std::make_shared<torch_bridge::PendingGraph>(builder.graph(), constants, torch_bridge::CompileSettings::current(), options);
  return make_pending_callable(std::move(pending), waits, ended);
}

py::list memory_snapshot() {
  std::vector<torch_bridge::HeldMemory> all;
  {
    // Whoever holds a lock that it needs may wait for the GIL: PyTorch's allocator, for the stack of an allocation.
    const py::gil_scoped_release release;
    all = torch_bridge::memory_snapshot();
  }
  py::list rows;
  for (const torch_bridge::HeldMemory& held : all)
    rows.append(py::dict(py::arg("kind") = std::string(to_string(held.kind)), py::arg("name") = held.name, py::arg("graph") = held.graph,
                         py::arg("origin") = held.origin, py::arg("device") = to_string(held.device), py::arg("address") = held.address,
                         py::arg("bytes") = held.bytes));
  return rows;
}

// What is done with the calls of a file, for tests: (what composites become, what is compiled).
py::dict replayed(const CallGraphBuilder& written) {
  const torch_bridge::Replayed replayed = torch_bridge::replay(written.graph());
  py::list guards;
  for (const model::SizeGuard& guard : replayed.guards) guards.append(model::to_string(guard));
  py::dict found(py::arg("calls") = model::print(replayed.calls), py::arg("guards") = guards, py::arg("kept") = replayed.kept, py::arg("builder") = py::none());
  if (replayed.guards.empty()) found["builder"] = CallGraphBuilder(torch_bridge::functional_calls(replayed));
  return found;
}

py::object compile_as_written(const CallGraphBuilder& written, const Options& options, std::vector<at::Tensor> constants) {
  std::shared_ptr<torch_bridge::CompiledGraph> graph;
  {
    const WithoutGil scope;
    graph = torch_bridge::CompiledGraph::from_file(written.graph(), torch_bridge::CompileSettings::current(), options);
    if (!graph->guards().empty()) throw_unsupported("calls that hold where {}", model::to_string(graph->guards().front()));
  }
  graph->set_constants(std::move(constants));
  return make_compiled_callable(std::move(graph));
}

// Answers for the sizes that symbols have in one call.
class HintedSizes final : public model::SizeQuestions {
 public:
  explicit HintedSizes(const std::map<std::string, int64_t>& hints) : hints_(hints) {}
  int64_t value(sym::Expr e) const {
    return sym::evaluate(e, [this](std::string_view name) { return hints_.at(std::string(name)); });
  }
  bool are_equal(sym::Expr a, sym::Expr b) override { return value(a) == value(b); }
  bool is_less(sym::Expr a, sym::Expr b) override { return value(a) < value(b); }

 private:
  const std::map<std::string, int64_t>& hints_;
};

// Of the only call of a graph: None without a rule, else (dtype, sizes, strides, storage offset, storage, device) for each
// result, the number of a size, and None for a result that is not there.
py::object infer_call(const std::string& text, const std::map<std::string, int64_t>& hints) {
  const model::CallGraph graph = model::parse(text);
  if (graph.calls.size() != 1) throw_user_error("expected a graph of 1 call, found {}", graph.calls.size());
  HintedSizes sizes(hints);
  const auto results = model::infer(graph, graph.calls.front(), torch_bridge::DispatcherSchemas(), sizes);
  if (!results) return py::none();
  const auto numbers = [&](const std::vector<sym::Expr>& list) {
    py::list values;
    for (sym::Expr e : list) values.append(sizes.value(e));
    return values;
  };
  py::list found;
  for (const model::CallValueInfo& result : *results) {
    if (result.kind == model::CallValueInfo::Kind::SymInt) {
      found.append(sizes.value(result.symbol));
      continue;
    }
    if (result.kind != model::CallValueInfo::Kind::Tensor) {
      found.append(py::none());
      continue;
    }
    found.append(py::make_tuple(std::string(to_string(result.dtype)), numbers(result.sizes), numbers(result.strides), sizes.value(result.storage_offset),
                                result.storage, to_string(result.device)));
  }
  return found;
}

// The calls of models in their forms before the import.
void bind_call_forms(py::module_& module) {
  module.def(
      "read_pt2_text",
      [](const std::string& bytes) {
        const py::gil_scoped_release release;
        const auto program = readers::read_pt2(std::as_bytes(std::span(bytes)), torch_bridge::DispatcherSchemas());
        return model::print(program.calls);
      },
      py::arg("bytes"), "The call graph of a .pt2 archive, which may be anybody's, as text (docs/ir.md).");
  module.def("compile_as_written", compile_as_written, py::arg("builder"), py::arg("options"), py::arg("constants") = std::vector<at::Tensor>(),
             "Compiles calls as a file holds them: with ATen's composites and writes to tensors.");
  module.def("replayed", replayed, py::arg("builder"),
             "What composites become (docs/design/replay.md): the text of the calls, guards on sizes, composites that are kept "
             "and why, and a builder of the calls without writes where no guards are left.");
  module.def("infer_call", infer_call, py::arg("text"), py::arg("hints") = std::map<std::string, int64_t>(),
             "What rules state of the results of a call graph's only call (docs/design/infer.md), with symbols' sizes.");
  module.def(
      "split_gradients",
      [](const CallGraphBuilder& joint, size_t results, const std::vector<uint32_t>& output_gradients) {
        const model::SplitGraphs split = model::split_gradients(joint.graph(), results, output_gradients, torch_bridge::DispatcherSchemas());
        return py::make_tuple(model::print(split.forward), model::print(split.backward), model::kept_bytes(split));
      },
      py::arg("joint"), py::arg("results"), py::arg("output_gradients"),
      "A function and its gradients as the texts of two graphs, and the bytes that the second gets from the first (csrc/model/passes/split_gradients.h).");
  module.def("inferred_ops", &model::inferred_ops);
  module.def(
      "has_infer_rule",
      [](std::string_view callee, std::string_view overload) { return model::OpRule::find(callee, overload, torch_bridge::DispatcherSchemas()).has_value(); },
      py::arg("callee"), py::arg("overload"));
}

void give_up_gil_in_waits() {
  runtime::set_around_wait([](const std::function<void()>& wait) {
    std::optional<WithoutGil> scope;
    if (Py_IsInitialized() && !interpreter_ends() && PyGILState_Check()) scope.emplace();
    wait();
  });
}

void bind_device(py::module_& module) {
  module.def(
      "register_device",
      [](const std::string& name, const std::string& backing, const Options& options) {
        const auto type = backing.empty() ? std::nullopt : std::optional(c10::Device(backing).type());
        cxxinductor::register_device(name, type, options);
      },
      py::arg("name"), py::arg("backing"), py::arg("options"), "cxxinductor.register_device; no backing: \"\".");
  module.def("mark_step", &cxxinductor::mark_step, py::call_guard<py::gil_scoped_release>());
  module.def(
      "device_generators",
      [] {
        const auto& hooks = at::globalContext().getAcceleratorHooksInterface(c10::DeviceType::PrivateUse1);
        py::list generators;
        for (c10::DeviceIndex index = 0; index < hooks.deviceCount(); ++index)
          generators.append(py::reinterpret_steal<py::object>(THPGenerator_Wrap(hooks.getDefaultGenerator(index))));
        return py::tuple(generators);
      },
      "The default generators of the recorded device, by index.");
  // Without the GIL: another thread may compile for the device, and wait for threads of Python.
  module.def("explain_device", &cxxinductor::explain_device, py::call_guard<py::gil_scoped_release>());
  module.def("device_counters", [] {
    DeviceCounters c;
    {
      const WithoutGil scope;
      c = cxxinductor::device_counters();
    }
    return py::dict(py::arg("calls") = c.calls, py::arg("runs") = c.runs, py::arg("uncompiled_runs") = c.uncompiled_runs, py::arg("compiled") = c.compiled,
                    py::arg("through_aten") = c.through_aten, py::arg("early_starts") = c.early_starts, py::arg("early_drops") = c.early_drops);
  });
}

void bind_torchscript(py::module_& module) {
  module.def("optimize_torchscript", &cxxinductor::optimize, py::arg("module"), py::arg("options"), py::call_guard<py::gil_scoped_release>(),
             "A frozen copy of a TorchScript module with compiled parts; cxxinductor.torchscript.optimize.");
  module.def(
      "package_torchscript",
      [](const torch::jit::Module& optimized, const std::string& path, const std::vector<std::string>& archs, const std::string& signing_key) {
        cxxinductor::package(optimized, path, {archs, false, signing_key});
      },
      py::arg("optimized"), py::arg("path"), py::arg("archs"), py::arg("signing_key"), py::call_guard<py::gil_scoped_release>(),
      "Saves an optimized TorchScript module with its compiled forms; cxxinductor.package.");
  module.def(
      "describe_torchscript", [](const torch::jit::Module& optimized) { return cxxinductor::explain(optimized); }, py::arg("optimized"),
      "What became of the compiled parts, for people.");
}

}  // namespace

PYBIND11_MODULE(_C, module) {
  module.doc() = "cxxinductor's compiler; use the cxxinductor package.";
  torch_bridge::check_process();
  translate_errors();
  give_up_gil_in_waits();
  bind_call_graph_builder(module);
  bind_compiled_callable(module);
  bind_kernel_timing(module);
  bind_bisection(module);
  bind_call_forms(module);
  bind_fragments(module);
  bind_extensions(module);
  bind_device(module);
  py::class_<Options>(module, "Options", "Options of a compile; see option_table().")
      .def(py::init<>())
      .def_static("from_environment", &checked_options_from_environment, py::arg("environment"))
      .def("set", set_checked_option)
      .def("check_target", &torch_bridge::check_target)
      .def("get", [](const Options& options, const std::string& name) { return get_option(options, name); })
      .def("__repr__", [](const Options& options) { return to_string(options); });
  bind_models(module);
  module.def("option_table", option_rows);
  module.def("memory_snapshot", memory_snapshot);
  module.def(
      "library_settings", [] { return torch_bridge::ContextSettings::current().values(); },
      "Numbers for PyTorch's settings that decide what operators compute, and how.");
  module.def("overloads_imported_whole", &frontend::overloads_imported_whole);
  module.def("arrives_whole", &frontend::arrives_whole, py::arg("callee"));
  module.def("compile", compile, py::arg("builder"), py::arg("options"), py::arg("constants") = std::vector<at::Tensor>(),
             "A boxed callable. constants: tensors that the graph held itself, passed after the caller's inputs.");
  module.def("compile_in_background", compile_in_background, py::arg("builder"), py::arg("options"), py::arg("constants"), py::arg("waits"), py::arg("ended"),
             "The same at once, while a thread compiles. Until then calls run through ATen, or wait (waits). The first call after that, or "
             "that waits, calls ended with the callable, whose finish() it calls.");
  module.def(
      "plan",
      [](const CallGraphBuilder& builder, const std::string& gpu_arch, int multiprocessors, int gpus, const Options& options) {
        Targets targets = torch_bridge::target_for({}, options);
        for (int index = 0; index < gpus; ++index) {
          const Target gpu = torch_bridge::target_of_arch(gpu_arch, multiprocessors);
          targets.add({gpu.device, index}, gpu);
        }
        driver::Report report;
        {
          const py::gil_scoped_release release;
          report = torch_bridge::plan_calls(builder.graph(), targets, options);
        }
        py::list kernels;
        for (const driver::Report::KernelSource& source : report.kernel_sources) kernels.append(source.name);
        return py::dict(py::arg("text") = report.texts.at("fit-memory"), py::arg("kernels") = kernels, py::arg("externs") = report.externs,
                        py::arg("extern_reasons") = report.extern_reasons);
      },
      py::arg("builder"), py::arg("gpu_arch"), py::arg("multiprocessors"), py::arg("gpus"), py::arg("options"));
  module.def(
      "compile_text",
      [](const std::string& text, const Options& options) {
        std::shared_ptr<torch_bridge::CompiledGraph> graph;
        {
          const WithoutGil scope;
          graph = torch_bridge::CompiledGraph::from_text(text, options);
        }
        return make_compiled_callable(std::move(graph));
      },
      py::arg("text"), py::arg("options"), "Compiles the text of a graph (docs/ir.md), which may be anybody's.");
  bind_torchscript(module);
  module.def("compile_progress", [] {
    const runtime::CompilePool::Progress progress = torch_bridge::compile_progress();
    return py::make_tuple(progress.given, progress.done);
  });
  module.def("wait_for_compiles", &torch_bridge::wait_for_compiles, py::call_guard<py::gil_scoped_release>());
  bind_cache(module);
  module.def("counters", counter_dict);
  module.def("reset_counters", torch_bridge::reset_counters);
  module.def("count_eager", torch_bridge::count_eager);
}

}  // namespace cxxinductor::bindings

#include "torch_bridge/bindings/compiled_callable.h"

#include <structmember.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <optional>

#include "passes/pass_manager.h"
#include "runtime/failed_check.h"
#include "support/error.h"
#include "torch_bridge/bindings/signal_check.h"
#include "torch_bridge/bindings/without_gil.h"

namespace cxxinductor::bindings {
namespace {

struct CompiledCallable {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::shared_ptr<torch_bridge::CompiledGraph> graph;   // null while pending
  std::shared_ptr<torch_bridge::PendingGraph> pending;  // null once it has ended and a call has found that
  bool waits;                                           // calls wait for it
  PyObject* ended;                                      // called by the first call after it has ended, with this object; it calls finish()
  PyObject* wide_integers;                              // takes the calls with integers that 64 bits do not hold; null: there are no integers
  PyObject* attributes;                                 // what AOTAutograd and its cache read; Dynamo copies them to what it wraps this in
};

c10::IValue input_of(PyObject* object) {
  if (THPVariable_Check(object)) return THPVariable_Unpack(object);
  if (PyLong_Check(object)) {
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred() != nullptr) throw python_error();
    return static_cast<int64_t>(value);
  }
  if (object == Py_None) return {};
  if (THPGenerator_Check(object)) return THPGenerator_Unwrap(object);
  throw_unsupported("inputs of Python type {}", Py_TYPE(object)->tp_name);
}

PyObject* output_of(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() ? THPVariable_Wrap(value.toTensor()) : Py_NewRef(Py_None);
  if (value.isInt()) return PyLong_FromLongLong(value.toInt());
  return Py_NewRef(Py_None);
}

// Errors of ours as the classes of cxxinductor.errors.
void set_python_error(const char* class_name, const char* message) {
  py::object errors = py::module_::import("cxxinductor.errors");
  PyErr_SetString(errors.attr(class_name).ptr(), message);
}

// Says beside an error of the host's, whose type and text stay eager's, what the call had changed by then.
void note_written_inputs(const std::string& names) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const std::string note = "cxxinductor: these inputs may already have been written: " + names;
  // Python 3.10 has no notes.
  if (value != nullptr && PyObject_HasAttrString(value, "add_note")) Py_XDECREF(PyObject_CallMethod(value, "add_note", "s", note.c_str()));
  PyErr_Restore(type, value, trace);
}

// An integer input that 64 bits do not hold.
bool is_wide(PyObject* object) {
  if (!PyLong_Check(object)) return false;
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow != 0;
}

// Takes over what was pending, and whether this call did it: another thread may have.
bool finish(CompiledCallable* callable) {
  const auto pending = callable->pending;
  if (!pending) return false;
  SignalCheck check;
  std::shared_ptr<torch_bridge::CompiledGraph> graph;
  try {
    const WithoutGil scope;
    graph = pending->get(check.check());
  } catch (const Interrupted&) {
    check.rethrow();
    throw;
  }
  if (!callable->pending) return false;
  callable->graph = std::move(graph);
  callable->pending.reset();
  callable->graph->count();
  return true;
}

// For questions about the graph.
torch_bridge::CompiledGraph& graph_of(PyObject* self) {
  auto* callable = reinterpret_cast<CompiledCallable*>(self);
  finish(callable);
  return *callable->graph;
}

PyObject* run(CompiledCallable* callable, PyObject* const* args, size_t nargsf, PyObject* keyword_names, std::string* written) {
  HANDLE_TH_ERRORS
  if (PyVectorcall_NARGS(nargsf) != 1 || keyword_names != nullptr || !PyList_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "a compiled graph takes one list of inputs");
    return nullptr;
  }
  try {
    if (callable->pending && (callable->waits || callable->pending->has_ended())) [[unlikely]] {
      const py::object ended = py::reinterpret_steal<py::object>(PyObject_CallOneArg(callable->ended, reinterpret_cast<PyObject*>(callable)));
      if (!ended) return nullptr;
    }
    std::vector<c10::IValue> inputs;
    PyObject* list = args[0];
    const Py_ssize_t count = PyList_GET_SIZE(list);
    inputs.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (callable->wide_integers != nullptr && is_wide(PyList_GET_ITEM(list, i))) [[unlikely]]
        return PyObject_CallOneArg(callable->wide_integers, list);
      inputs.push_back(input_of(PyList_GET_ITEM(list, i)));
    }
    if (PyList_SetSlice(list, 0, count, nullptr) != 0) return nullptr;
    std::vector<c10::IValue> outputs;
    const auto pending = callable->pending;  // another thread may finish it during the call
    {
      py::gil_scoped_release release;
      outputs = pending ? pending->run(std::move(inputs)) : callable->graph->run(std::move(inputs), written);
    }
    PyObject* result = PyList_New(static_cast<Py_ssize_t>(outputs.size()));
    if (result == nullptr) return nullptr;
    for (size_t i = 0; i < outputs.size(); ++i) PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), output_of(outputs[i]));
    return result;
  } catch (const runtime::DeviceIndexOutOfRange& error) {
    set_python_error("DeviceIndexOutOfRange", error.what());
  } catch (const runtime::IndexOutOfRange& error) {
    set_python_error("IndexOutOfRange", error.what());
  } catch (const UserError& error) {
    set_python_error("UserError", error.what());
  } catch (const Unsupported& error) {
    set_python_error("Unsupported", error.what());
  } catch (const KernelMismatch& error) {
    set_python_error("KernelMismatch", error.what());
  } catch (const FailedAssertion& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (const InternalError& error) {
    set_python_error("InternalError", error.what());
  }
  return nullptr;
  END_HANDLE_TH_ERRORS
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* keyword_names) {
  std::string written;
  PyObject* result = run(reinterpret_cast<CompiledCallable*>(self), args, nargsf, keyword_names, &written);
  if (result == nullptr && !written.empty()) note_written_inputs(written);
  return result;
}

void deallocate(PyObject* self) {
  auto* callable = reinterpret_cast<CompiledCallable*>(self);
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(callable->wide_integers);
  Py_XDECREF(callable->ended);
  Py_XDECREF(callable->attributes);
  // The graph waits for compiles that are under way, which no Python thread should wait for.
  std::optional<WithoutGil> scope;
  if (!interpreter_ends()) scope.emplace();
  callable->graph.~shared_ptr();
  callable->pending.~shared_ptr();
  scope.reset();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* finish_pending(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  try {
    return PyBool_FromLong(static_cast<long>(finish(reinterpret_cast<CompiledCallable*>(self))));
  } catch (py::error_already_set& raised) {  // by a signal handler
    raised.restore();
  } catch (const Interrupted&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
  return nullptr;
  END_HANDLE_TH_ERRORS
}

PyObject* set_wide_integers(PyObject* self, PyObject* callable) {
  Py_XSETREF(reinterpret_cast<CompiledCallable*>(self)->wide_integers, Py_NewRef(callable));
  return Py_NewRef(Py_None);
}

py::list kernel_rows(const std::vector<driver::KernelSummary>& kernels) {
  py::list rows;
  for (const driver::KernelSummary& kernel : kernels) {
    py::list calls;
    for (const Origin& origin : kernel.calls) calls.append(py::make_tuple(origin.call, origin.file, origin.line, origin.module));
    rows.append(py::dict(py::arg("name") = kernel.name, py::arg("device") = to_string(kernel.device), py::arg("launches") = kernel.launches,
                         py::arg("bytes_read") = kernel.bytes_read, py::arg("bytes_written") = kernel.bytes_written,
                         py::arg("accuracy") = std::string(to_string(kernel.numerics.accuracy)), py::arg("accuracy_details") = kernel.numerics.details,
                         py::arg("calls") = calls, py::arg("sizes") = kernel.sizes, py::arg("specializations") = kernel.specializations));
  }
  return rows;
}

py::object memory_of(const std::vector<driver::MemorySummary>& memory) {
  if (memory.empty()) return py::none();
  py::dict by_device;
  for (const driver::MemorySummary& device : memory)
    by_device[to_string(device.device).c_str()] =
        py::dict(py::arg("peak") = device.peak, py::arg("lower_bound") = device.lower_bound, py::arg("eager_peak") = device.eager_peak);
  py::dict main(by_device[to_string(memory.front().device).c_str()].attr("copy")());
  main["devices"] = by_device;
  return main;
}

PyObject* report(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  const auto& graph = graph_of(self);
  const driver::GraphSummary summary = graph.summary();
  const driver::Report& found = graph.report();
  py::dict out;
  out["fallback_reason"] = graph.fallback_reason();
  py::list times, missed_fusions, sources;
  for (const driver::StageTime& time : found.times) times.append(py::make_tuple(time.stage, time.seconds));
  for (const plan::MissedFusion& missed : summary.missed_fusions)
    missed_fusions.append(py::make_tuple(missed.producer, missed.consumer, missed.reason, missed.bytes));
  for (const driver::Report::KernelSource& source : found.kernel_sources) sources.append(py::make_tuple(source.name, source.text));
  out["times"] = times;
  py::dict pass_times, texts;
  for (const passes::PassInfo& pass : passes::pass_table())
    if (const auto time = found.pass_times.find(std::string(pass.name)); time != found.pass_times.end()) pass_times[time->first.c_str()] = time->second;
  for (const auto& [name, seconds] : found.pass_times)
    if (!pass_times.contains(name)) pass_times[name.c_str()] = seconds;  // of users
  for (const driver::Stage& stage : driver::stage_table())
    for (const auto& [name, text] : found.texts)
      if (name.substr(0, name.find('+')) == stage.name) texts[name.c_str()] = text;
  out["text_passes"] = found.text_passes;
  out["pass_times"] = pass_times;
  out["texts"] = texts;
  out["externs"] = summary.externs;
  out["extern_reasons"] = summary.extern_reasons;
  out["collectives"] = found.collectives;
  out["missed_fusions"] = missed_fusions;
  out["sources"] = sources;
  out["memory"] = memory_of(summary.memory);
  out["allocations"] = summary.allocations;
  out["kernels"] = kernel_rows(summary.kernels);
  out["const_graph"] = py::none();
  if (const auto once = graph.const_summary())
    out["const_graph"] = py::dict(py::arg("kernels") = kernel_rows(once->kernels), py::arg("externs") = once->externs, py::arg("tensors") = once->tensors,
                                  py::arg("bytes") = once->bytes);
  return out.release().ptr();
  END_HANDLE_TH_ERRORS
}

// (title, seconds of reading the graph).
PyObject* describe(PyObject* self, PyObject* args) {
  HANDLE_TH_ERRORS
  const auto& [title, seconds] = py::reinterpret_borrow<py::tuple>(args).cast<std::pair<std::string, double>>();
  const driver::StageTime read{"read graph", seconds};
  return py::cast(graph_of(self).describe(title, {&read, 1})).release().ptr();
  END_HANDLE_TH_ERRORS
}

PyObject* describe_times(PyObject* self, PyObject* seconds) {
  HANDLE_TH_ERRORS
  const driver::StageTime read{"read graph", py::reinterpret_borrow<py::object>(seconds).cast<double>()};
  const driver::GraphSummary summary = graph_of(self).summary();
  return py::cast(driver::describe_times(summary, {&read, 1})).release().ptr();
  END_HANDLE_TH_ERRORS
}

PyObject* take_check_notes(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  const auto& graph = reinterpret_cast<CompiledCallable*>(self)->graph;  // calls through ATen leave none
  return py::cast(graph ? graph->take_check_notes() : std::vector<std::string>()).release().ptr();
  END_HANDLE_TH_ERRORS
}

// Of each output a tuple of ints; None where it is no tensor, or where its strides depend on symbols.
PyObject* output_strides(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  const plan::Plan* plan = graph_of(self).plan();
  py::list all;
  if (plan == nullptr) return all.release().ptr();
  for (const plan::Output& output : plan->outputs) {
    const bool tensor = output.kind == plan::Output::Kind::Tensor, view = output.kind == plan::Output::Kind::View;
    py::list strides;
    bool known = tensor || view;
    if (known) {
      for (sym::Expr e : tensor ? plan->buffers[output.buffer].strides : output.view.strides) {
        known = known && e.is_constant();
        if (known) strides.append(e.constant());
      }
    }
    all.append(known ? py::object(py::tuple(strides)) : py::none());
  }
  return all.release().ptr();
  END_HANDLE_TH_ERRORS
}

PyObject* fallback_reason(PyObject* self, void*) {
  HANDLE_TH_ERRORS
  return PyUnicode_FromString(graph_of(self).fallback_reason().c_str());
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {
    {"finish", finish_pending, METH_NOARGS, "Waits for a compile in the background, whose result takes over; whether this call was the one that did it."},
    {"set_wide_integers", set_wide_integers, METH_O, "A callable like this one, for calls with integers that 64 bits do not hold."},
    {"take_check_notes", take_check_notes, METH_NOARGS, "Lines about what option check did not check, each once."},
    {"output_strides", output_strides, METH_NOARGS, "Strides of each output: tuples of ints, None where unknown; [] for a graph that runs through ATen."},
    {"report", report, METH_NOARGS, "What the compile did, as a dict; see reports.py."},
    {"describe", describe, METH_VARARGS, "The same as text: (title, seconds that reading the graph took)."},
    {"describe_times", describe_times, METH_O, "The stages of the compile as text, after so many seconds of reading the graph."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"fallback_reason", fallback_reason, nullptr, "Why the graph runs through ATen, or ''.", nullptr},
                            {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledCallable, vectorcall), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(CompiledCallable, attributes), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec{"cxxinductor._C.CompiledGraph", sizeof(CompiledCallable), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
PyTypeObject* compiled_type = nullptr;  // made once, with the module

}  // namespace

void bind_compiled_callable(py::module_& module) {
  compiled_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (compiled_type == nullptr) throw py::error_already_set();
  module.add_object("CompiledGraph", py::handle(reinterpret_cast<PyObject*>(compiled_type)));
}

namespace {

CompiledCallable* make_callable() {
  PyObject* object = compiled_type->tp_alloc(compiled_type, 0);
  if (object == nullptr) throw py::error_already_set();
  auto* callable = reinterpret_cast<CompiledCallable*>(object);
  callable->vectorcall = call;
  new (&callable->graph) std::shared_ptr<torch_bridge::CompiledGraph>();
  new (&callable->pending) std::shared_ptr<torch_bridge::PendingGraph>();
  callable->waits = false;
  callable->ended = callable->wide_integers = nullptr;
  callable->attributes = py::dict(py::arg("_boxed_call") = true).release().ptr();  // takes one list and empties it
  return callable;
}

}  // namespace

py::object make_compiled_callable(std::shared_ptr<torch_bridge::CompiledGraph> graph) {
  CompiledCallable* callable = make_callable();
  callable->graph = std::move(graph);
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(callable));
}

py::object make_pending_callable(std::shared_ptr<torch_bridge::PendingGraph> pending, bool waits, const py::object& ended) {
  CompiledCallable* callable = make_callable();
  callable->pending = std::move(pending);
  callable->waits = waits;
  callable->ended = Py_NewRef(ended.ptr());
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(callable));
}

}  // namespace cxxinductor::bindings

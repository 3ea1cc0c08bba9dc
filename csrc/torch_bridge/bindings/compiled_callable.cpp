#include "torch_bridge/bindings/compiled_callable.h"

#include <structmember.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/python_variable.h>

#include <map>
#include <optional>
#include <set>

#include "driver/numerics_guarantee.h"
#include "ir/plan/memory.h"
#include "ir/text_parts.h"
#include "runtime/failed_check.h"
#include "support/error.h"
#include "sym/integer.h"
#include "torch_bridge/bindings/without_gil.h"
#include "torch_bridge/folded_constants.h"

namespace cxxinductor::bindings {
namespace {

struct CompiledCallable {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::shared_ptr<torch_bridge::CompiledGraph> graph;
  PyObject* wide_integers;  // takes the calls with integers that 64 bits do not hold; null: there are no integers
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
  if (value != nullptr && PyObject_HasAttrString(value, "add_note"))
    Py_XDECREF(PyObject_CallMethod(value, "add_note", "s", note.c_str()));
  PyErr_Restore(type, value, trace);
}

// An integer input that 64 bits do not hold.
bool is_wide(PyObject* object) {
  if (!PyLong_Check(object)) return false;
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow != 0;
}

PyObject* run(CompiledCallable* callable, PyObject* const* args, size_t nargsf, PyObject* keyword_names,
              std::string* written) {
  HANDLE_TH_ERRORS
  if (PyVectorcall_NARGS(nargsf) != 1 || keyword_names != nullptr || !PyList_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "a compiled graph takes one list of inputs");
    return nullptr;
  }
  try {
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
    {
      py::gil_scoped_release release;
      outputs = callable->graph->run(std::move(inputs), written);
    }
    PyObject* result = PyList_New(static_cast<Py_ssize_t>(outputs.size()));
    if (result == nullptr) return nullptr;
    for (size_t i = 0; i < outputs.size(); ++i)
      PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), output_of(outputs[i]));
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
  // The graph waits for compiles that are under way, which no Python thread should wait for.
  std::optional<WithoutGil> scope;
  if (!interpreter_ends()) scope.emplace();
  callable->graph.~shared_ptr();
  scope.reset();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* set_constants(PyObject* self, PyObject* tensors) {
  HANDLE_TH_ERRORS
  std::vector<at::Tensor> constants;
  for (const py::handle tensor : py::reinterpret_borrow<py::object>(tensors))
    constants.push_back(THPVariable_Unpack(tensor.ptr()));
  reinterpret_cast<CompiledCallable*>(self)->graph->set_constants(std::move(constants));
  return Py_NewRef(Py_None);
  END_HANDLE_TH_ERRORS
}

PyObject* set_wide_integers(PyObject* self, PyObject* callable) {
  Py_XSETREF(reinterpret_cast<CompiledCallable*>(self)->wide_integers, Py_NewRef(callable));
  return Py_NewRef(Py_None);
}

// Calls of the model in the order of first sight: (call, file, line, module).
py::list calls_of(const plan::Plan& plan, const plan::Kernel& kernel) {
  py::list calls;
  std::set<OriginId> seen;
  for (const loops::Stmt& stmt : kernel.region.body) {
    if (!stmt.origin.valid() || !plan.origins.contains(stmt.origin) || !seen.insert(stmt.origin).second) continue;
    const Origin& origin = plan.origins[stmt.origin];
    calls.append(py::make_tuple(origin.call, origin.file, origin.line, origin.module));
  }
  return calls;
}

py::list missed_fusions_of(const plan::Plan& plan) {
  py::list missed_fusions;
  for (const plan::MissedFusion& missed : plan.missed_fusions)
    missed_fusions.append(py::make_tuple(missed.producer, missed.consumer, missed.reason, missed.bytes));
  return missed_fusions;
}

py::list kernel_rows(const plan::Plan& plan, bool eager_numerics) {
  std::map<uint32_t, int64_t> launches;
  std::map<uint32_t, py::list> specializations;         // a kernel's, of all its launches: (name, for which sizes)
  std::map<uint32_t, std::set<std::string>> arguments;  // that its launches give for its symbols
  std::set<std::pair<uint32_t, uint32_t>> known;
  for (const plan::Step& step : plan.steps) {
    const auto run = plan::launches_of(step);
    if (run.empty()) continue;
    const uint32_t kernel = run[0].kernel.index();
    launches[kernel] += sym::ceil_quotient(static_cast<int64_t>(run.size()), plan.kernels[run[0].kernel].max_grouped);
    for (const plan::Launch& launch : run) arguments[kernel].insert(print_expr_list(launch.symbol_args));
    for (const plan::Specialization& special : run[0].specializations)
      if (known.emplace(kernel, special.kernel.index()).second)
        specializations[kernel].append(py::make_tuple(plan.kernels[special.kernel].name, print_where(special.when)));
  }
  py::list rows;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const plan::Kernel& kernel = plan.kernels[plan::KernelId(k)];
    if (!launches.contains(static_cast<uint32_t>(k))) continue;
    py::dict row;
    row["name"] = kernel.name;
    row["device"] = to_string(kernel.device);
    row["launches"] = launches[static_cast<uint32_t>(k)];
    row["bytes_read"] = kernel.bytes_read_hint;
    row["bytes_written"] = kernel.bytes_written_hint;
    const driver::NumericsGuarantee guarantee = driver::numerics_guarantee_of(kernel, plan.origins, eager_numerics);
    row["accuracy"] = std::string(to_string(guarantee.accuracy));
    row["accuracy_details"] = guarantee.details;
    row["calls"] = calls_of(plan, kernel);
    row["sizes"] = arguments[static_cast<uint32_t>(k)].size();
    row["specializations"] = specializations[static_cast<uint32_t>(k)];
    rows.append(std::move(row));
  }
  return rows;
}

py::dict memory_of(const plan::Plan& plan) {
  py::dict by_device;
  for (Device device : plan.devices) {
    const plan::MemoryProfile profile = plan::profile_memory(plan, device);
    const auto eager = plan.eager_peaks.find(device);
    by_device[to_string(device).c_str()] =
        py::dict(py::arg("peak") = profile.peak, py::arg("lower_bound") = profile.lower_bound,
                 py::arg("eager_peak") = eager == plan.eager_peaks.end() ? py::object(py::none()) : py::int_(eager->second));
  }
  py::dict memory(by_device[to_string(plan.devices.front()).c_str()].attr("copy")());
  memory["devices"] = by_device;
  return memory;
}

// Requests to the allocator in a call, arenas included.
int64_t allocations(const plan::Plan& plan) {
  auto count = static_cast<int64_t>(plan.arenas.size());
  for (const plan::Step& step : plan.steps) count += std::holds_alternative<plan::Allocate>(step);
  return count;
}

py::dict const_graph_of(const torch_bridge::FoldedConstants& constants) {
  return py::dict(py::arg("kernels") = kernel_rows(constants.plan(), constants.report().eager_numerics),
                  py::arg("externs") = constants.report().externs, py::arg("tensors") = constants.plan().outputs.size(),
                  py::arg("bytes") = constants.kept_bytes());
}

PyObject* report(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  const auto& graph = *reinterpret_cast<CompiledCallable*>(self)->graph;
  const driver::Report& found = graph.report();
  py::dict out;
  out["fallback_reason"] = graph.fallback_reason();
  py::list times;
  for (const driver::StageTime& time : found.times) times.append(py::make_tuple(time.stage, time.seconds));
  out["times"] = times;
  out["pass_times"] = found.pass_times;
  out["externs"] = found.externs;
  out["extern_reasons"] = found.extern_reasons;
  out["missed_fusions"] = graph.plan() ? missed_fusions_of(*graph.plan()) : py::list();
  out["texts"] = py::dict(py::arg("graph") = found.graph_text, py::arg("loops") = found.loops_text,
                          py::arg("fused") = found.fused_text, py::arg("plan") = found.plan_text);
  py::list sources;
  for (const driver::Report::KernelSource& source : found.kernel_sources)
    sources.append(py::make_tuple(source.name, source.text));
  out["sources"] = sources;
  out["memory"] = graph.plan() ? py::object(memory_of(*graph.plan())) : py::object(py::none());
  out["allocations"] = graph.plan() ? allocations(*graph.plan()) : int64_t{0};
  out["kernels"] = graph.plan() ? kernel_rows(*graph.plan(), found.eager_numerics) : py::list();
  out["const_graph"] = graph.constants() ? py::object(const_graph_of(*graph.constants())) : py::object(py::none());
  return out.release().ptr();
  END_HANDLE_TH_ERRORS
}

PyObject* take_check_notes(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  return py::cast(reinterpret_cast<CompiledCallable*>(self)->graph->take_check_notes()).release().ptr();
  END_HANDLE_TH_ERRORS
}

// Of each output a tuple of ints; None where it is no tensor, or where its strides depend on symbols.
PyObject* output_strides(PyObject* self, PyObject*) {
  HANDLE_TH_ERRORS
  const plan::Plan* plan = reinterpret_cast<CompiledCallable*>(self)->graph->plan();
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
  return PyUnicode_FromString(reinterpret_cast<CompiledCallable*>(self)->graph->fallback_reason().c_str());
}

PyObject* boxed(PyObject*, void*) { return Py_NewRef(Py_True); }

PyMethodDef methods[] = {
    {"set_constants", set_constants, METH_O, "Tensors that the graph held itself, passed after the caller's inputs."},
    {"set_wide_integers", set_wide_integers, METH_O,
     "A callable like this one, for calls with integers that 64 bits do not hold."},
    {"take_check_notes", take_check_notes, METH_NOARGS, "Lines about what option check did not check, each once."},
    {"output_strides", output_strides, METH_NOARGS,
     "Strides of each output: tuples of ints, None where unknown; [] for a graph that runs through ATen."},
    {"report", report, METH_NOARGS, "What the compile did, as a dict; see reports.py."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"fallback_reason", fallback_reason, nullptr, "Why the graph runs through ATen, or ''.", nullptr},
    {"_boxed_call", boxed, nullptr, "Takes one list and empties it.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledCallable, vectorcall), READONLY, nullptr},
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

py::object make_compiled_callable(std::shared_ptr<torch_bridge::CompiledGraph> graph) {
  PyObject* object = compiled_type->tp_alloc(compiled_type, 0);
  if (object == nullptr) throw py::error_already_set();
  auto* callable = reinterpret_cast<CompiledCallable*>(object);
  callable->vectorcall = call;
  new (&callable->graph) std::shared_ptr<torch_bridge::CompiledGraph>(std::move(graph));
  callable->wide_integers = nullptr;
  return py::reinterpret_steal<py::object>(object);
}

}  // namespace cxxinductor::bindings

#include "torch_bridge/bindings/bisection.h"

#include <torch/csrc/autograd/python_variable.h>

#include <map>

#include "torch_bridge/bindings/compiled_callable.h"
#include "torch_bridge/bindings/without_gil.h"
#include "torch_bridge/bisect.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::bindings {
namespace {

const char* name_of(driver::BisectReport::Culprit::Kind kind) {
  using Kind = driver::BisectReport::Culprit::Kind;
  switch (kind) {
    case Kind::Pass:
      return "pass";
    case Kind::Fusion:
      return "fusion";
    case Kind::TextPass:
      return "registered pass";
  }
  return "";
}

py::dict to_dict(const driver::BisectReport& report) {
  using Symptom = driver::BisectReport::Symptom;
  const char* symptom = "";
  switch (report.symptom) {
    case Symptom::None:
      symptom = "none";
      break;
    case Symptom::Differs:
      symptom = "differs";
      break;
    case Symptom::Fails:
      symptom = "fails";
      break;
    case Symptom::KernelDiffers:
      symptom = "kernel differs";
      break;
    case Symptom::Judged:
      symptom = "judged";
      break;
  }
  py::object culprit = py::none();
  if (const auto& found = report.culprit)
    culprit =
        py::dict(py::arg("kind") = name_of(found->kind), py::arg("name") = found->name, py::arg("number") = found->number, py::arg("stage") = found->stage,
                 py::arg("before") = found->before, py::arg("after") = found->after, py::arg("avoided_by") = found->avoided_by);
  return py::dict(py::arg("symptom") = symptom, py::arg("stage") = report.stage, py::arg("detail") = report.detail, py::arg("culprit") = culprit,
                  py::arg("notes") = report.notes, py::arg("text") = driver::describe(report));
}

// device and architecture of each target that is not this machine's.
Targets targets_of(const std::vector<std::pair<std::string, std::string>>& rows) {
  Targets targets;
  for (const auto& [name, arch] : rows) {
    const std::optional<Device> device = find_device(name);
    if (!device) throw_user_error("expected a device such as cuda:0, found '{}'", name);
    targets.add(*device, torch_bridge::target_of_arch(*device, arch));
  }
  return targets;
}

// Tensors and integers.
std::vector<c10::IValue> given_inputs(const py::list& list) {
  std::vector<c10::IValue> inputs;
  for (const py::handle item : list) {
    if (THPVariable_Check(item.ptr()))
      inputs.emplace_back(item.cast<at::Tensor>());
    else
      inputs.emplace_back(item.cast<int64_t>());
  }
  return inputs;
}

py::list random_inputs(const std::string& text, const std::map<std::string, int64_t>& sizes, uint64_t seed) {
  py::list list;
  for (const c10::IValue& input : torch_bridge::reproducer_inputs(text, sizes, seed)) {
    if (input.isTensor())
      list.append(input.toTensor());
    else
      list.append(input.toInt());
  }
  return list;
}

py::dict bisect(const std::string& text, const Options& options, const py::list& inputs, bool against_eager, bool run_kernels,
                const std::vector<std::pair<std::string, std::string>>& targets, const py::object& judge, const py::object& progress) {
  torch_bridge::ReproducerSettings settings{.inputs = given_inputs(inputs), .against_eager = against_eager, .run_kernels = run_kernels};
  settings.targets = targets_of(targets);
  if (!judge.is_none())
    settings.judge = [&](const Options& tried) {
      const py::gil_scoped_acquire gil;
      return judge(tried.pass_limit, tried.fusion_limit, tried.skip_passes).cast<std::string>();
    };
  if (!progress.is_none())
    settings.progress = [&](std::string_view line) {
      const py::gil_scoped_acquire gil;
      progress(py::str(line.data(), line.size()));
    };
  driver::BisectReport report;
  {
    const py::gil_scoped_release release;
    report = torch_bridge::bisect_reproducer(text, options, std::move(settings));
  }
  return to_dict(report);
}

py::object compile_reproducer(const std::string& text, const Options& options) {
  std::shared_ptr<torch_bridge::CompiledGraph> graph;
  {
    const WithoutGil scope;
    graph = torch_bridge::compile_reproducer(text, options);
  }
  return make_compiled_callable(std::move(graph));
}

}  // namespace

void bind_bisection(py::module_& module) {
  module.def("bisect", bisect, py::arg("text"), py::arg("options"), py::arg("inputs"), py::arg("against_eager"), py::arg("run_kernels"), py::arg("targets"),
             py::arg("judge"), py::arg("progress"));
  module.def("reproducer_inputs", random_inputs, py::arg("text"), py::arg("sizes"), py::arg("seed"));
  module.def("compile_reproducer", compile_reproducer, py::arg("text"), py::arg("options"));
}

}  // namespace cxxinductor::bindings

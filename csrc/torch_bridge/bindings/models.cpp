#include "torch_bridge/bindings/models.h"

#include <cxxinductor/package.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <vector>

#include "support/options.h"
#include "torch_bridge/bindings/without_gil.h"

namespace cxxinductor::bindings {
namespace {

namespace py = pybind11;

// Tensors, integers and what else a model was exported for.
std::vector<c10::IValue> to_inputs(const py::sequence& values) {
  std::vector<c10::IValue> inputs;
  for (const py::handle value : values) inputs.push_back(torch::jit::toTypeInferredIValue(value));
  return inputs;
}

py::list run(const Model& model, const py::sequence& values) {
  std::vector<c10::IValue> inputs = to_inputs(values), outputs;
  {
    const py::gil_scoped_release release;
    outputs = model.run(std::move(inputs));
  }
  py::list results;
  for (c10::IValue& output : outputs) results.append(torch::jit::toPyObject(std::move(output)));
  return results;
}

void package_bytes(const py::bytes& model, const std::string& path, const std::vector<std::string>& archs, bool weights_beside,
                   const std::string& signing_key, const Options& options) {
  const std::string_view bytes = model;
  const WithoutGil scope;
  cxxinductor::package(bytes.data(), bytes.size(), path, {archs, weights_beside, signing_key}, options);
}

}  // namespace

void bind_models(py::module_& module) {
  py::class_<Model>(module, "Model", "A model of a file; cxxinductor.load.")
      .def("run", run, py::arg("inputs"))
      .def("input_types", &Model::input_types)
      .def("output_types", &Model::output_types)
      .def("explain", &Model::explain)
      .def("weight_names", &Model::weight_names)
      .def("weight", &Model::weight, py::arg("name"));
  module.def(
      "load",
      [](const std::string& path, const Options& options) {
        const WithoutGil scope;
        return cxxinductor::load(path, options);
      },
      py::arg("path"), py::arg("options"));
  module.def("package", package_bytes, py::arg("model"), py::arg("path"), py::arg("archs"), py::arg("weights_beside"),
             py::arg("signing_key"), py::arg("options"));
}

}  // namespace cxxinductor::bindings

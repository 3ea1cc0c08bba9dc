#include "torch_bridge/bindings/models.h"

#include <cxxinductor/package.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <string>
#include <vector>

#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/bindings/without_gil.h"

namespace cxxinductor::bindings {
namespace {

namespace py = pybind11;

c10::IValue to_ivalue(py::handle value) {
  if (value.is_none()) return {};
  if (THPVariable_Check(value.ptr())) return THPVariable_Unpack(value.ptr());
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  throw_user_error("expected inputs that are tensors, numbers, texts and None, found a {}", py::str(py::type::of(value).attr("__name__")).cast<std::string>());
}

py::object to_object(const c10::IValue& value) {
  if (value.isTensor()) return py::reinterpret_steal<py::object>(THPVariable_Wrap(value.toTensor()));
  if (value.isBool()) return py::bool_(value.toBool());
  if (value.isInt()) return py::int_(value.toInt());
  if (value.isDouble()) return py::float_(value.toDouble());
  if (value.isString()) return py::str(value.toStringRef());
  return py::none();
}

py::list run_model(const Model& model, const py::sequence& values) {
  std::vector<c10::IValue> inputs, outputs;
  for (const py::handle value : values) inputs.push_back(to_ivalue(value));
  {
    const py::gil_scoped_release release;
    outputs = model.run(std::move(inputs));
  }
  py::list results;
  for (const c10::IValue& output : outputs) results.append(to_object(output));
  return results;
}

void package_bytes(const py::bytes& model, const std::string& path, const std::vector<std::string>& archs, bool weights_beside, const std::string& signing_key,
                   const Options& options) {
  const std::string_view bytes = model;
  const WithoutGil scope;
  cxxinductor::package(bytes.data(), bytes.size(), path, {archs, weights_beside, signing_key}, options);
}

}  // namespace

void bind_models(py::module_& module) {
  py::class_<Model>(module, "Model", "A model of a file; cxxinductor.load.")
      .def("run", run_model, py::arg("inputs"))
      .def("input_types", &Model::input_types)
      .def("output_types", &Model::output_types)
      .def("input_structure", &Model::input_structure)
      .def("output_structure", &Model::output_structure)
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
  module.def("package", package_bytes, py::arg("model"), py::arg("path"), py::arg("archs"), py::arg("weights_beside"), py::arg("signing_key"),
             py::arg("options"));
}

}  // namespace cxxinductor::bindings

#include "torch_bridge/bindings/extensions.h"

#include <cxxinductor/extend.h>
#include <pybind11/stl.h>

#include "ir/registered_ops.h"
#include "support/error.h"

namespace cxxinductor::bindings {
namespace {

namespace py = pybind11;

OperandTypes operand_types(const std::string& name) {
  if (name == "floating") return OperandTypes::Floating;
  if (name == "integral") return OperandTypes::Integral;
  if (name == "numeric") return OperandTypes::Numeric;
  throw_user_error("types: expected 'floating', 'integral' or 'numeric', found '{}'", name);
}

void register_op(const std::string& overload, const std::vector<std::string>& arguments, const std::string& types, bool transcendental, bool standard_result,
                 const std::string& cuda, const std::string& cpu, const std::string& cuda_source, const std::string& cpu_source,
                 const std::string& definition) {
  add_scalar_op({overload, arguments, operand_types(types), transcendental, cuda, cpu, cuda_source, cpu_source, standard_result, definition});
}

void register_reduction(const std::string& overload, const std::string& state, const std::string& results, const std::string& start,
                        const std::string& lift, const std::string& merge, const std::string& finish, bool order_matters, bool standard_result) {
  add_reduction({overload, state, results, start, lift, merge, finish, order_matters, standard_result});
}

}  // namespace

void bind_extensions(py::module_& module) {
  module.def("register_op", &register_op);
  module.def("register_reduction", &register_reduction);
}

}  // namespace cxxinductor::bindings

#include "torch_bridge/bindings/extensions.h"

#include <cxxinductor/extend.h>
#include <pybind11/stl.h>

#include "ir/registered_ops.h"
#include "support/error.h"
#include "torch_bridge/bindings/remote_requests.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/text_passes.h"

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

void register_reduction(const std::string& overload, const std::string& state, const std::string& results, const std::string& start, const std::string& lift,
                        const std::string& merge, const std::string& finish, bool order_matters, bool standard_result) {
  add_reduction({overload, state, results, start, lift, merge, finish, order_matters, standard_result});
}

// Threads of Python answer with "=" and a text, or "!" and why there is none.
void register_text_pass(const std::string& name, const std::string& stage, const std::string& version, const std::string& number,
                        std::shared_ptr<RemoteRequests> requests) {
  torch_bridge::add_text_pass({name, stage, version, [number, requests = std::move(requests)](const std::string& text) {
                                 const auto answer = requests->ask(number, text);
                                 if (!answer || answer->empty())
                                   throw_user_error("Python did not answer in time: a pass may take a minute, and other passes wait for one that takes longer");
                                 if (answer->front() == '!') throw_user_error("{}", answer->substr(1));
                                 return answer->substr(1);
                               }});
}

std::shared_ptr<RemoteRequests> open_text_passes(int64_t patience) { return std::make_shared<RemoteRequests>(std::chrono::milliseconds(patience)); }

}  // namespace

void bind_extensions(py::module_& module) {
  module.def("register_op", &register_op);
  module.def("register_reduction", &register_reduction);
  module.def("load_target", &torch_bridge::load_target, py::arg("path"));
  module.def("open_text_passes", open_text_passes, py::arg("patience"),
             "Passes' texts, which threads have to answer: the number of a pass and its text. patience: milliseconds that an answer may take.");
  module.def("register_text_pass", register_text_pass, py::arg("name"), py::arg("stage"), py::arg("version"), py::arg("number"), py::arg("requests"));
  module.def("text_passes", [] {
    std::vector<std::string> names;
    for (const auto& pass : torch_bridge::registered_text_passes()) names.push_back(pass->name);
    return names;
  });
  module.def("remove_text_pass", &torch_bridge::remove_text_pass, py::arg("name"));
}

}  // namespace cxxinductor::bindings

#include "torch_bridge/jit/code_module.h"

#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include <sstream>

#include "support/error.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Graph;
using torch::jit::Module;

constexpr const char* code_method = "code";

}  // namespace

void add_code(const Module& module, Graph& code) {
  const std::shared_ptr<Graph> body = code.copy();
  const c10::ClassTypePtr type = module._ivalue()->type();
  body->insertInput(0, "self")->setType(type);
  type->addMethod(type->compilation_unit()->create_function(c10::QualifiedName(*type->name(), code_method), body));
}

bool has_code(const Module& module) { return module.find_method(code_method).has_value(); }

std::shared_ptr<Graph> read_code(const Module& module) {
  const auto code = torch::jit::toGraphFunction(module.get_method(code_method).function()).graph()->copy();
  if (!code->inputs().at(0)->uses().empty() || code->outputs().at(0)->type()->kind() != c10::TypeKind::TupleType)
    throw_user_error("expected the code of a region, which reads no attribute and gives a tuple");
  torch::jit::Inline(*code);
  code->eraseInput(0);
  return code;
}

std::shared_ptr<Graph> as_loaded(Graph& code) {
  const Module module("__torch__.cxxinductor.Code", std::make_shared<torch::jit::CompilationUnit>());
  add_code(module, code);
  std::stringstream file;
  module.save(file);
  return read_code(torch::jit::load(file));
}

}  // namespace cxxinductor::torch_bridge

#include "api/signature.h"

#include "model/text.h"
#include "support/error.h"

namespace cxxinductor::api {

using readers::InputSpec;
using readers::OutputSpec;

c10::IValue literal_value(const std::string& name, const Arg& arg) {
  if (arg.is_none()) return {};
  if (const auto* value = arg.as<int64_t>()) return *value;
  if (const auto* value = arg.as<double>()) return *value;
  if (const auto* value = arg.as<bool>()) return *value;
  if (const auto* value = arg.as<std::string>()) return *value;
  throw_unsupported("'{}' is the constant {}, which is not read yet", name, to_string(arg));
}

std::string input_type(const readers::Program& program, const InputSpec& spec) {
  const bool is_literal = spec.kind == InputSpec::Kind::Literal;
  return spec.name + ": " + (is_literal ? to_string(spec.literal) : model::print_type(program.calls, program.calls.inputs[spec.index]));
}

std::string output_type(const readers::Program& program, const OutputSpec& spec) {
  if (spec.kind == OutputSpec::Kind::Literal) return to_string(spec.literal);
  if (spec.is_truth) return "bool";
  const Arg& output = program.calls.outputs[spec.index];
  if (const auto* value = output.as<OperandRef>()) return model::print_type(program.calls, value->operand);
  if (const auto* size = output.as<sym::Expr>()) return fmt::format("symint({})", sym::to_string(*size));
  return to_string(output);
}

}  // namespace cxxinductor::api

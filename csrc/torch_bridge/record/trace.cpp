#include "torch_bridge/record/trace.h"

#include <c10/util/Exception.h>

#include <limits>
#include <utility>

#include "frontend/import.h"
#include "support/error.h"
#include "torch_bridge/record/recorder.h"
#include "torch_bridge/record/size_node.h"

namespace cxxinductor::torch_bridge {
namespace {

// Symbols of a pattern are above 1, which is what a pattern matches.
std::pair<sym::Assumptions, model::SizeHints> symbols_of(const CallPattern& pattern) {
  sym::Assumptions assumptions;
  model::SizeHints hints;
  for (size_t symbol = 0; symbol < pattern.symbol_count(); ++symbol) {
    assumptions.set_range(symbol_name(symbol), {2, std::numeric_limits<int64_t>::max()});
    hints.emplace(symbol_name(symbol), pattern.hint(symbol));
  }
  return {assumptions, hints};
}

Arg output_of(const c10::IValue& value, Recorder& recorder) {
  if (value.isNone()) return {};
  if (value.isTensor())
    return value.toTensor().defined() ? Arg(OperandRef{recorder.value_of(value.toTensor())}) : Arg();
  if (value.isInt()) return value.toInt();
  if (value.isSymInt()) {
    const sym::Expr e = to_expr(value.toSymInt());
    return e.is_constant() ? Arg(e.constant()) : Arg(e);
  }
  throw_unsupported("results of type {}", value.tagKind());
}

}  // namespace

Trace trace(std::string name, const TracedFunction& function, const CallPattern& pattern) {
  auto [assumptions, hints] = symbols_of(pattern);
  Trace result;
  result.calls.name = std::move(name);
  result.calls.assumptions = assumptions;
  const auto sizes = std::make_shared<model::HintedSizes>(std::move(assumptions), std::move(hints));
  Recorder recorder(result.calls, sizes, frontend::is_read_whole);
  recorder.capture_tensors();

  std::vector<c10::IValue> arguments;
  for (const ArgumentPattern& argument : pattern.arguments()) {
    if (argument.kind == ArgumentPattern::Kind::Constant) {
      arguments.push_back(argument.constant);
      continue;
    }
    const bool is_tensor = argument.kind == ArgumentPattern::Kind::Tensor;
    const model::CallValue value = recorder.add_value(info_of(argument), is_tensor ? "x" : "n");
    result.calls.inputs.push_back(value);
    result.calls.input_sources.emplace_back();
    if (is_tensor)
      arguments.emplace_back(recorder.tensor_of(value));
    else
      arguments.emplace_back(to_symint(result.calls.values[value].symbol, sizes));
  }
  try {
    const Recorder::Scope scope(recorder);
    for (const c10::IValue& output : function(std::move(arguments)))
      result.calls.outputs.push_back(output_of(output, recorder));
  } catch (const c10::Error& error) {  // of a kernel that reads elements, say
    throw_unsupported("{}", error.what_without_backtrace());
  }
  result.captured = recorder.captured();
  result.guards = sizes->guards();
  return result;
}

}  // namespace cxxinductor::torch_bridge

// The readable listing of a call graph.
#include "frontend/import.h"
#include "frontend/importer.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::frontend {
namespace {

std::string list_of(const Sizes& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + sym::to_string(items[i]);
  return text + "]";
}

std::string type_of(const CallValueInfo& info) {
  switch (info.kind) {
    case CallValueInfo::Kind::Tensor:
      return fmt::format("{}{} strides {} {}", to_string(info.dtype), list_of(info.sizes), list_of(info.strides),
                         to_string(info.device));
    case CallValueInfo::Kind::SymInt:
      return "int " + sym::to_string(info.symbol);
    case CallValueInfo::Kind::SymFloat:
      return "float";
    case CallValueInfo::Kind::SymBool:
      return "bool";
    case CallValueInfo::Kind::Opaque:
      return "object";
    case CallValueInfo::Kind::None:
      return "none";
  }
  throw_internal("no such kind of value");
}

// Operand references as the names of the values they stand for.
std::string text_of(const CallGraph& graph, const Arg& arg) {
  if (const OperandRef* ref = arg.as<OperandRef>()) return "%" + graph.values.at(ref->operand).name;
  const ArgList* list = arg.as<ArgList>();
  if (list == nullptr) return to_string(arg);
  std::string text = "[";
  for (size_t i = 0; i < list->size(); ++i) text += (i == 0 ? "" : ", ") + text_of(graph, (*list)[i]);
  return text + "]";
}

std::string text_of(const CallGraph& graph, const Call& call) {
  std::string results, arguments;
  for (CallValue id : call.results) {
    const CallValueInfo& info = graph.values.at(id);
    results += fmt::format("{}%{}: {}", results.empty() ? "" : ", ", info.name, type_of(info));
  }
  for (const Arg& arg : call.args) arguments += (arguments.empty() ? "" : ", ") + text_of(graph, arg);
  for (const auto& [name, arg] : call.kwargs) {
    arguments += fmt::format("{}{}={}", arguments.empty() ? "" : ", ", name, text_of(graph, arg));
  }
  std::string origin;
  if (call.origin.valid() && graph.origins.contains(call.origin)) {
    const Origin& found = graph.origins[call.origin];
    origin = fmt::format("  ; {}:{} {}", found.file, found.line, found.module);
  }
  return fmt::format("{}{}{}({}){}", results, results.empty() ? "" : " = ", full_name(call), arguments, origin);
}

}  // namespace

std::string to_string(const CallGraph& calls) {
  TextWriter writer;
  writer.line("calls @{} {{", calls.name);
  writer.indent();
  for (size_t i = 0; i < calls.inputs.size(); ++i) {
    const CallValueInfo& info = calls.values.at(calls.inputs[i]);
    const std::string source = i < calls.input_sources.size() ? calls.input_sources[i] : "";
    writer.line("input %{}: {}{}", info.name, type_of(info), source.empty() ? "" : "  ; " + source);
  }
  for (const Call& call : calls.calls) writer.line("{}", text_of(calls, call));
  for (const auto& [input, value] : calls.mutations) {
    writer.line("final %{} = %{}", calls.values.at(calls.inputs.at(input)).name, calls.values.at(value).name);
  }
  std::string outputs;
  for (const Arg& arg : calls.outputs) outputs += (outputs.empty() ? "" : ", ") + text_of(calls, arg);
  writer.line("return {}", outputs);
  writer.dedent();
  writer.line("}}");
  return std::move(writer).take();
}

}  // namespace cxxinductor::frontend

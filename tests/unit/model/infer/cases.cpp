#include "unit/model/infer/cases.h"

#include <fmt/format.h>

#include "model/infer/infer.h"
#include "model/infer/table.h"
#include "model/text.h"
#include "support/error.h"

namespace cxxinductor::model {
namespace {

std::string graph_text(const InferCase& one) {
  std::string inputs = one.inputs, where;
  if (const size_t bar = inputs.find('|'); bar != inputs.npos) {
    where = " where " + inputs.substr(0, bar);
    inputs = inputs.substr(bar + 1);
  }
  std::string text = "calls @f" + where + " {\n";
  for (size_t begin = 0; begin < inputs.size();) {
    const size_t end = std::min(inputs.find(';', begin), inputs.size());
    text += "  input " + inputs.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text + "  " + one.call + "\n  return\n}\n";
}

std::string described(const CallValueInfo& info) {
  if (info.kind == CallValueInfo::Kind::SymInt) return "size " + sym::to_string(info.symbol);
  if (info.kind != CallValueInfo::Kind::Tensor) return "absent";
  std::string text = fmt::format("{}{} strides {}", cxxinductor::to_string(info.dtype), print_expr_list(info.sizes), print_expr_list(info.strides));
  if (!info.storage_offset.is_constant(0)) text += fmt::format(" offset({})", sym::to_string(info.storage_offset));
  if (info.storage != 0) text += fmt::format(" storage {}", info.storage);
  if (info.device.type != DeviceType::Cpu) text += " on " + cxxinductor::to_string(info.device);
  return text;
}

}  // namespace

std::string inferred(const InferCase& one, const SchemaSource& schemas) {
  const CallGraph graph = parse(graph_text(one));
  ProvenSizes sizes(graph.assumptions);
  try {
    const auto results = infer(graph, graph.calls.front(), schemas, sizes);
    if (!results) return "none";
    std::string text;
    for (const CallValueInfo& result : *results) text += (text.empty() ? "" : "; ") + described(result);
    return text;
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string inferred(const InferCase& one) { return inferred(one, aten_schemas()); }

}  // namespace cxxinductor::model

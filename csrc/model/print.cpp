#include <fmt/ranges.h>

#include "ir/strides.h"
#include "ir/text_parts.h"
#include "model/text.h"
#include "support/text_writer.h"

namespace cxxinductor::model {
namespace {

class Printer {
 public:
  Printer(const CallGraph& calls, TextWriter& writer) : calls_(calls), writer_(writer) {
    for (const CallValueInfo& info : calls.values)
      if (info.kind == CallValueInfo::Kind::Tensor) {
        device_ = info.device;
        break;
      }
  }

  std::string type_with_ranges(const CallValueInfo& info) const {
    std::string text = type(info);
    if (info.kind == CallValueInfo::Kind::Tensor && info.device == device_) text += " on " + to_string(info.device);
    std::vector<sym::Expr> parts = info.sizes;
    parts.insert(parts.end(), info.strides.begin(), info.strides.end());
    parts.push_back(info.symbol);
    sym::Assumptions used;
    for (sym::Expr part : parts) {
      for (sym::Expr symbol : part.free_symbols()) {
        used.set_range(symbol.name(), calls_.assumptions.range(symbol.name()));
        used.set_divisor(symbol.name(), calls_.assumptions.divisor(symbol.name()));
      }
    }
    return text + print_where(used);
  }

  void print() {
    writer_.line("calls @{}{}{} {{", calls_.name, device_ == Device() ? "" : " on " + to_string(device_), print_where(calls_.assumptions));
    writer_.indent();
    for (const auto& [name, subgraph] : calls_.subgraphs) Printer(*subgraph, writer_).print();
    for (uint32_t i = 0; i < calls_.inputs.size(); ++i) print_input(i);
    for (const Call& call : calls_.calls) print_call(call);
    for (const auto& [input, value] : calls_.mutations) writer_.line("final {} = {}", name(calls_.inputs[input]), name(value));
    print_outputs();
    writer_.dedent();
    writer_.line("}}");
  }

 private:
  std::string name(CallValue id) const {
    const std::string& given = calls_.values[id].name;
    return given.empty() ? fmt::format("%{}", id) : "%" + given;
  }

  std::string type(const CallValueInfo& info) const {
    switch (info.kind) {
      case CallValueInfo::Kind::Tensor:
        break;
      case CallValueInfo::Kind::SymInt:
        return fmt::format("symint({})", sym::to_string(info.symbol));
      case CallValueInfo::Kind::SymFloat:
        return "symfloat";
      case CallValueInfo::Kind::SymBool:
        return "symbool";
      case CallValueInfo::Kind::Opaque:
        return "object";
      case CallValueInfo::Kind::None:
        return "none";
    }
    std::string text = fmt::format("{}{}", to_string(info.dtype), print_expr_list(info.sizes));
    if (info.strides != row_major_strides(info.sizes)) text += " strides " + print_expr_list(info.strides);
    if (info.device != device_) text += " on " + to_string(info.device);
    if (!info.storage_offset.is_constant(0)) text += fmt::format(" offset({})", sym::to_string(info.storage_offset));
    if (info.storage != 0) text += fmt::format(" storage {}", info.storage);
    if (info.conjugate) text += " conjugate";
    if (info.negative) text += " negative";
    return text;
  }

  std::string declaration(CallValue id) const { return fmt::format("{}: {}", name(id), type(calls_.values[id])); }

  void print_input(uint32_t position) {
    const CallValue id = calls_.inputs[position];
    std::string text = declaration(id);
    if (const auto given = calls_.input_strides.find(position); given != calls_.input_strides.end()) text += " given strides " + print_expr_list(given->second);
    if (calls_.donated.contains(position)) text += " donated";
    if (calls_.frozen.contains(position)) text += " frozen";
    const std::string source = position < calls_.input_sources.size() ? calls_.input_sources[position] : "";
    if (!source.empty()) text += " from " + quote(source);
    writer_.line("input {}", text);
  }

  void print_call(const Call& call) {
    std::vector<std::string> results;
    for (CallValue id : call.results) results.push_back(declaration(id));
    const OperandSpelling spell = [this](OperandRef ref) { return name(ref.operand); };
    writer_.line("{}{}{}{}{}{}{}{}", fmt::join(results, ", "), results.empty() ? "" : " = ", print_callee(call.callee, call.overload),
                 print_call_args(call.args, call.kwargs, spell), call.result_is_list ? " list" : "", call.ordered ? " ordered" : "",
                 print_autocast(call.autocast), print_origin(calls_.origins, call.origin));
  }

  static std::string print_autocast(const Autocast& autocast) {
    std::string text;
    for (const auto& [type, dtype] : autocast.dtypes) text += fmt::format(" autocast {} {}", to_string(type), to_string(dtype));
    return text;
  }

  void print_outputs() {
    std::vector<std::string> outputs;
    for (uint32_t i = 0; i < calls_.outputs.size(); ++i)
      outputs.push_back(to_string(calls_.outputs[i], [this](OperandRef ref) { return name(ref.operand); }) +
                        (calls_.flexible_outputs.contains(i) ? " flexible" : ""));
    writer_.line("return{}{}", outputs.empty() ? "" : " ", fmt::join(outputs, ", "));
  }

  const CallGraph& calls_;
  Device device_;  // of the first tensor: the one that types leave out
  TextWriter& writer_;
};

}  // namespace

std::string print(const CallGraph& calls) {
  TextWriter writer;
  Printer(calls, writer).print();
  return std::move(writer).take();
}

std::string print_type(const CallGraph& calls, CallValue value) {
  TextWriter writer;
  return Printer(calls, writer).type_with_ranges(calls.values[value]);
}

}  // namespace cxxinductor::model

#include "codegen/registered_sources.h"

#include <fmt/ranges.h>

#include <map>
#include <set>
#include <utility>

#include "codegen/spelling.h"
#include "codegen/statement_text.h"

namespace cxxinductor::codegen {
namespace {

// Each with the dtypes of its results.
std::map<ScalarOp, std::set<DType>> registered_ops(const std::vector<const plan::Kernel*>& kernels) {
  std::map<ScalarOp, std::set<DType>> ops;
  for (const plan::Kernel* kernel : kernels)
    visit_ops(*kernel, [&](ScalarOp op, DType dtype) {
      if (info(op).registered) ops[op].insert(dtype);
    });
  return ops;
}

void require_double(const ScalarOpInfo& op, std::string_view expression, TextWriter& out) {
  const std::vector<std::string> operands(static_cast<size_t>(op.arity), "double()");
  out.line("static_assert(!cxxi_is_float<decltype({})>, \"{} is of type float for float64: make its function a template, or overload it\");",
           applied_op(op, expression, DType::F64, "double", operands), op.name);
}

}  // namespace

void emit_registered_sources(const std::vector<const plan::Kernel*>& kernels, std::string_view ScalarOpInfo::*source, std::string_view ScalarOpInfo::*real,
                             TextWriter& out) {
  const std::map<ScalarOp, std::set<DType>> ops = registered_ops(kernels);
  std::set<std::string_view> texts{""};
  for (const auto& [op, dtypes] : ops) {
    if (!texts.insert(info(op).*source).second) continue;
    out.line("#line 1 \"{}\"", info(op).name);
    out.raw_line(info(op).*source);
  }
  bool first = true;
  for (const auto& [op, dtypes] : ops) {
    if (!dtypes.contains(DType::F64)) continue;
    if (std::exchange(first, false)) {
      out.line("template <class T> constexpr bool cxxi_is_float = false;");
      out.line("template <> constexpr bool cxxi_is_float<float> = true;");
    }
    require_double(info(op), info(op).*real, out);
  }
}

void throw_if_registered(const std::vector<const plan::Kernel*>& kernels, const Error& error) {
  std::vector<std::string_view> names;
  for (const auto& [op, dtypes] : registered_ops(kernels)) names.push_back(info(op).name);
  if (names.empty()) return;
  throw_user_error(
      "a kernel that applies {}, registered by register_op, does not compile. Correct the expression and the source of the op for this "
      "device and start the program again, or register none of them for it: calls then run as they are. {}",
      fmt::join(names, ", "), error.what());
}

}  // namespace cxxinductor::codegen

#include "codegen/registered_sources.h"

#include <fmt/ranges.h>

#include <set>

#include "codegen/statement_text.h"

namespace cxxinductor::codegen {
namespace {

std::set<ScalarOp> registered_ops(const std::vector<const plan::Kernel*>& kernels) {
  std::set<ScalarOp> ops;
  for (const plan::Kernel* kernel : kernels)
    visit_ops(*kernel, [&](ScalarOp op, DType) {
      if (info(op).registered) ops.insert(op);
    });
  return ops;
}

}  // namespace

void emit_registered_sources(const std::vector<const plan::Kernel*>& kernels, std::string_view ScalarOpInfo::*source, TextWriter& out) {
  std::set<std::string_view> texts{""};
  for (ScalarOp op : registered_ops(kernels)) {
    if (!texts.insert(info(op).*source).second) continue;
    out.line("#line 1 \"{}\"", info(op).name);
    out.raw_line(info(op).*source);
  }
}

void throw_if_registered(const std::vector<const plan::Kernel*>& kernels, const Error& error) {
  std::vector<std::string_view> names;
  for (ScalarOp op : registered_ops(kernels)) names.push_back(info(op).name);
  if (names.empty()) return;
  throw_user_error(
      "a kernel that applies {}, registered by register_op, does not compile. Correct the expression and the source of the op for this "
      "device, or register it without them: calls then run as they are. {}",
      fmt::join(names, ", "), error.what());
}

}  // namespace cxxinductor::codegen

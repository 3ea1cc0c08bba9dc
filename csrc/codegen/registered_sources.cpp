#include "codegen/registered_sources.h"

#include <fmt/ranges.h>

#include <set>

namespace cxxinductor::codegen {
namespace {

// Ops that kernels apply, and those of the statements of their reductions.
std::set<ScalarOp> registered_ops(const std::vector<const plan::Kernel*>& kernels) {
  std::set<ScalarOp> ops;
  const auto add = [&](ScalarOp op) {
    if (info(op).registered) ops.insert(op);
  };
  for (const plan::Kernel* kernel : kernels) {
    for (const loops::Stmt& stmt : kernel->region.body) {
      if (const auto* apply = stmt.as<loops::Apply>()) add(apply->op);
      const auto* reduce = stmt.as<loops::Reduce>();
      if (!reduce) continue;
      const ReductionForm& of = form(reduce->reduction);
      for (const ScalarStatements* statements : {&of.start, &of.lift, &of.merge, &of.finish})
        for (const ScalarStatements::Step& step : statements->steps()) add(step.op);
    }
  }
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
  throw_user_error("a kernel that applies {}, registered by register_op, does not compile. Correct the expression and the source of the op for this "
                   "device, or register it without them: calls then run as they are. {}",
                   fmt::join(names, ", "), error.what());
}

}  // namespace cxxinductor::codegen

#include "codegen/registered_sources.h"

#include <algorithm>
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
  std::vector<std::string_view> texts;
  for (ScalarOp op : registered_ops(kernels))
    if (const std::string_view text = info(op).*source; !text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  for (std::string_view text : texts) out.raw_line(text);
}

}  // namespace cxxinductor::codegen

#include "ir/loops/symbols.h"

#include "ir/arg_expressions.h"
#include "ir/loops/stmt_traits.h"

namespace cxxinductor::loops {
namespace {

class Collector {
 public:
  Collector(const Program& program, const Definers& definers) : program_(program), definers_(definers) {}

  void operator()(const Region& region) {
    for (const Var& var : region.vars) add(var.extent);
    for (const Stmt& stmt : region.body)
      for_each_use(
          stmt, [](StmtId) {}, [this](sym::Expr e) { add(e); });
    for (const Access& access : accesses(region)) add(access.buffer);
  }
  void operator()(const ExternCall& call) {
    for (const auto& operand : call.operands) {
      if (const auto* e = std::get_if<sym::Expr>(&operand)) {
        add(*e);
        continue;
      }
      const View& view = std::get<View>(operand);
      add(view.sizes);
      add(view.strides);
      add(view.offset);
      add(view.buffer);
    }
    for_each_expression(call, [this](sym::Expr e) { add(e); });
    for (BufferId result : call.results) add(result);
  }

  std::set<std::string> take() { return std::move(found_); }

 private:
  void add(sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (definers_.contains(symbol.name())) found_.emplace(symbol.name());
  }
  void add(const std::vector<sym::Expr>& list) {
    for (sym::Expr e : list) add(e);
  }
  void add(BufferId id) {
    add(program_.buffers[id].sizes);
    add(program_.buffers[id].strides);
  }

  const Program& program_;
  const Definers& definers_;
  std::set<std::string> found_;
};

}  // namespace

Definers find_definers(const Program& program) {
  Definers definers;
  for (size_t s = 0; s < program.steps.size(); ++s)
    if (const auto* call = std::get_if<ExternCall>(&program.steps[s]))
      for (const Definition& definition : call->defines) definers.emplace(definition.symbol, s);
  return definers;
}

std::set<std::string> used_symbols(const Program& program, const Step& step, const Definers& definers) {
  if (definers.empty()) return {};
  Collector collector(program, definers);
  std::visit(collector, step);
  return collector.take();
}

bool checks_symbols(const ExternCall& call) { return !call.defines.empty() || (call.ordered && call.results.empty() && call.mutated_operands.empty()); }

}  // namespace cxxinductor::loops

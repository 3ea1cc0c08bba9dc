#include "ir/plan/symbols.h"

#include "ir/arg_expressions.h"

namespace cxxinductor::plan {
namespace {

using Visit = std::function<void(sym::Expr)>;

void visit_all(const std::vector<sym::Expr>& list, const Visit& visit) {
  for (sym::Expr e : list) visit(e);
}
void visit_view(const View& view, const Visit& visit) {
  visit_all(view.sizes, visit);
  visit_all(view.strides, visit);
  visit(view.offset);
}
void visit_assumptions(const sym::Assumptions& assumptions, const Visit& visit) {
  for (const auto& [symbol, range] : assumptions.ranges()) visit(sym::Expr::symbol(symbol));
  for (const auto& [symbol, divisor] : assumptions.divisors()) visit(sym::Expr::symbol(symbol));
}

}  // namespace

void for_each_expression(const Step& step, const Visit& visit) {
  for (const Launch& launch : launches_of(step)) {
    visit_all(launch.symbol_args, visit);
    visit_all({launch.grid_x, launch.grid_y}, visit);
    for (const Specialization& special : launch.specializations) {
      visit(special.grid_x);
      visit_assumptions(special.when, visit);
    }
  }
  if (const auto* call = std::get_if<CallExtern>(&step)) {
    for (const auto& operand : call->operands) {
      if (const auto* view = std::get_if<View>(&operand))
        visit_view(*view, visit);
      else
        visit(std::get<sym::Expr>(operand));
    }
    cxxinductor::for_each_expression(*call, visit);
  }
  if (const auto* read = std::get_if<ReadScalar>(&step)) visit_view(read->from, visit);
  if (const auto* assertion = std::get_if<Assert>(&step)) visit(assertion->condition);
}

void for_each_buffer(const Step& step, const std::function<void(BufferId)>& visit) {
  if (const auto* allocate = std::get_if<Allocate>(&step)) visit(allocate->buffer);
  if (const auto* free = std::get_if<Free>(&step)) visit(free->buffer);
  if (const auto* reuse = std::get_if<Reuse>(&step)) {
    visit(reuse->from);
    visit(reuse->to);
  }
  for (const Launch& launch : launches_of(step))
    for (BufferId id : launch.args) visit(id);
  if (const auto* call = std::get_if<CallExtern>(&step)) {
    for (const auto& operand : call->operands)
      if (const auto* view = std::get_if<View>(&operand)) visit(view->buffer);
    for (BufferId id : call->results)
      if (id.valid()) visit(id);
  }
  if (const auto* read = std::get_if<ReadScalar>(&step)) visit(read->from.buffer);
}

void for_each_expression(const Buffer& buffer, const Visit& visit) {
  visit_all(buffer.sizes, visit);
  visit_all(buffer.strides, visit);
  visit_all({buffer.bytes, buffer.arena_offset, buffer.base_offset}, visit);
}

std::vector<std::string> symbols_defined_by(const Step& step) {
  std::vector<std::string> symbols;
  if (const auto* read = std::get_if<ReadScalar>(&step)) symbols.push_back(read->symbol);
  if (const auto* call = std::get_if<CallExtern>(&step))
    for (const Definition& definition : call->defines) symbols.push_back(definition.symbol);
  return symbols;
}

DefinitionTimes find_definition_times(const Plan& plan) {
  DefinitionTimes times;
  uint32_t time = 0;
  for (const Step& step : plan.steps) {
    const std::vector<std::string> symbols = symbols_defined_by(step);
    if (symbols.empty()) continue;
    ++time;
    for (const std::string& symbol : symbols) times.emplace(symbol, time);
  }
  return times;
}

}  // namespace cxxinductor::plan

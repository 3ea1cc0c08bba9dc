#include "kernels/instance.h"

#include <algorithm>

#include "ir/plan/early_loads.h"
#include "kernels/registry.h"

namespace cxxinductor::kernels {

Sets::Sets(std::vector<Values> sets) : sets_(std::make_shared<const std::vector<Values>>(std::move(sets))) {}
const Values* Sets::begin() const { return sets_->data(); }
const Values* Sets::end() const { return sets_->data() + sets_->size(); }

const Value* Values::find(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, &NamedValue::name);
  return found == values_.end() ? nullptr : &found->value;
}

void Values::add(std::string_view name, Value value) { values_.push_back({name, std::move(value)}); }

void Values::merge(Values others) {
  values_.insert(values_.end(), std::make_move_iterator(others.values_.begin()), std::make_move_iterator(others.values_.end()));
}

Instance instantiate(const plan::Kernel& kernel, plan::Variant variant) { return family_of(kernel.mapping).instantiate(kernel, variant); }

std::vector<Values> when(bool present) { return std::vector<Values>(present ? 1 : 0); }

sym::Expr count_groups(const plan::Kernel& kernel, const std::vector<VarId>& vars, int width) {
  return sym::simplify(plan::groups_of(kernel.region, vars, width), kernel.assumptions);
}

std::vector<Values> passes_of(const Body& body, std::string_view item) {
  std::vector<Values> passes;
  if (!body.ahead.empty()) passes.push_back({{"steps", Steps{.slot = body.slot, .steps = body.ahead, .are_ahead = true, .item = item}}});
  passes.push_back({{"steps", Steps{.slot = body.slot, .steps = body.steps, .item = item}}});
  return passes;
}

std::vector<Values> groups_ahead(const plan::Kernel& kernel, const Body& body) {
  std::vector<Values> groups;
  for (const Place& place : body.slot.ahead)
    if (place.where == Where::Ahead) groups.push_back({{"type", type_of(kernel, body.slot, place.value)}, {"g", Local{'g', place.value}}});
  return groups;
}

std::vector<Values> puts_aside(const plan::Kernel& kernel, bool in_blocks) {
  if (!in_blocks) return {};
  return {{{"turns", Unsigned{std::max(plan::updates_of_block / unrolled_groups(kernel.mapping), 1)}}}};
}

std::vector<Values> loads_made_once(const plan::Kernel& kernel) {
  std::vector<Values> loads;
  for (StmtId id : plan::uniform_loads(kernel)) loads.push_back({{"v", Local{'v', id}}, {"address", Address{id}}});
  return loads;
}

FragmentType type_of(const plan::Kernel& kernel, const Slot& slot, StmtId id) { return {id, has_lanes(kernel, slot, id) ? slot.width : 1}; }

Lanes lanes_of(const Slot& slot) { return {slot.vector_var, slot.width, slot.masked_tail}; }

}  // namespace cxxinductor::kernels

#include "schedule/fusion/substitution.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"
#include "schedule/fusion/can_fuse.h"

namespace cxxinductor::schedule {

using loops::ExprMap;
using loops::Space;
using loops::StmtId;
using loops::VarId;

namespace {

// The store of a buffer in a region, if it is the only one, unmasked and no update.
StmtId only_store(const loops::Region& region, loops::BufferId buffer) {
  StmtId found;
  for (size_t s = 0; s < region.body.size(); ++s) {
    const auto* store = region.body[StmtId(s)].as<loops::Store>();
    if (!store || store->buffer != buffer) continue;
    if (found.valid() || store->mask.valid() || store->update) return {};
    found = StmtId(s);
  }
  return found;
}

bool stores_buffer(const loops::Region& region, loops::BufferId buffer) {
  return std::any_of(region.body.begin(), region.body.end(), [&](const loops::Stmt& stmt) {
    const auto* store = stmt.as<loops::Store>();
    return store && store->buffer == buffer;
  });
}

void collect_symbols(sym::Expr e, std::vector<sym::Expr>& out) {
  for (sym::Expr symbol : e.free_symbols())
    if (std::find(out.begin(), out.end(), symbol) == out.end()) out.push_back(symbol);
}

}  // namespace

Substitution::Substitution(const loops::Program& program, const loops::Region& producer, const loops::Region& consumer)
    : program_(program), producer_(producer), consumer_(consumer) {}

bool Substitution::match_uses() {
  do {
    if (!solve_uses()) return false;
  } while (split_consumer());
  return true;
}

bool Substitution::solve_uses() {
  const Space from(producer_, program_.assumptions), to(consumer_, program_.assumptions);
  uses_.clear();
  for (size_t s = 0; s < consumer_.body.size(); ++s) {
    const auto* load = consumer_.body[StmtId(s)].as<loops::Load>();
    if (!load || !stores_buffer(producer_, load->buffer)) continue;
    Use use{StmtId(s), only_store(producer_, load->buffer), {}};
    if (!use.store.valid()) return false;
    const auto& store = *producer_.body[use.store].as<loops::Store>();
    const auto& sizes = program_.buffers[load->buffer].sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      auto digits = from.mixed_radix(store.coords[d], sizes[d]);
      if (!digits) return false;
      to.solve(*digits, load->coords[d], use.values);
    }
    uses_.push_back(std::move(use));
  }
  return true;
}

bool Substitution::split_consumer() {
  auto split = [&](const ExprMap& values) {
    // In the order of the producer's variables: maps have none.
    for (size_t v = 0; v < producer_.vars.size(); ++v)
      if (auto value = values.find(producer_.symbol(VarId(v))); value != values.end())
        if (loops::split_variable_for(consumer_, value->second, program_.assumptions)) return true;
    return false;
  };
  if (split(values_)) return true;
  return std::any_of(uses_.begin(), uses_.end(), [&](const Use& use) { return split(use.values); });
}

bool Substitution::unite_uses() {
  values_.clear();
  for (const Use& use : uses_) {
    if (consumer_.body[use.load].as<loops::Load>()->mask.valid()) return false;
    for (const auto& [var, value] : use.values)
      if (auto [known, fresh] = values_.try_emplace(var, value); !fresh && known->second != value) return false;
  }
  return true;
}

std::vector<VarId> Substitution::free_variables() const {
  std::vector<VarId> free;
  for (size_t v = 0; v < producer_.vars.size(); ++v)
    if (!values_.contains(producer_.symbol(VarId(v)))) free.push_back(VarId(v));
  return free;
}

// What the free variables must be for two loads of one buffer to read the same elements.
std::optional<ExprMap> Substitution::values_from_loads(const loops::Load& ours, const loops::Load& theirs) const {
  const Space from(producer_, program_.assumptions), to(consumer_, program_.assumptions);
  ExprMap values = values_;
  for (size_t d = 0; d < ours.coords.size(); ++d) {
    auto digits = from.mixed_radix(ours.coords[d], program_.buffers[ours.buffer].sizes[d]);
    if (!digits) {
      if (ours.coords[d] != theirs.coords[d] || !ours.coords[d].is_constant()) return std::nullopt;
      continue;
    }
    ExprMap solved;
    to.solve(*digits, theirs.coords[d], solved);
    for (const auto& [var, value] : solved)
      if (auto [known, fresh] = values.try_emplace(var, value); !fresh && known->second != value) return std::nullopt;
  }
  return values;
}

int Substitution::equal_loads(const ExprMap& values) const {
  const Space to(consumer_, program_.assumptions);
  int count = 0;
  for (const loops::Stmt& ours : producer_.body) {
    const auto* a = ours.as<loops::Load>();
    if (!a) continue;
    std::vector<sym::Expr> coords;
    for (sym::Expr e : a->coords) coords.push_back(to.simplify(loops::replace(e, values)));
    count += std::any_of(consumer_.body.begin(), consumer_.body.end(), [&](const loops::Stmt& theirs) {
      const auto* b = theirs.as<loops::Load>();
      return b && b->buffer == a->buffer && b->coords == coords;
    });
  }
  return count;
}

// allow_divisions: where nothing matches, values that ask for a split of the consumer's variables.
void Substitution::match_shared_loads(bool allow_divisions) {
  int best = 0;
  std::optional<ExprMap> chosen, undecided;
  for (const loops::Stmt& ours : producer_.body) {
    const auto* a = ours.as<loops::Load>();
    if (!a) continue;
    for (const loops::Stmt& theirs : consumer_.body) {
      const auto* b = theirs.as<loops::Load>();
      if (!b || b->buffer != a->buffer) continue;
      auto values = values_from_loads(*a, *b);
      if (!values || values->size() == values_.size()) continue;
      const bool divides = std::any_of(values->begin(), values->end(), [](const auto& entry) { return loops::has_division(entry.second); });
      if (divides) {
        if (!undecided) undecided = std::move(values);
        continue;
      }
      std::swap(values_, *values);
      const bool sound = is_bijection();
      std::swap(values_, *values);
      if (!sound) continue;
      if (int equal = equal_loads(*values); equal > best) {
        best = equal;
        chosen = std::move(values);
      }
    }
  }
  if (chosen)
    values_ = std::move(*chosen);
  else if (undecided && allow_divisions)
    values_ = std::move(*undecided);
}

// Any unused variable of equal extent will do; the innermost free one takes the innermost.
void Substitution::match_extents() {
  std::vector<sym::Expr> used;
  for (const auto& [var, value] : values_) collect_symbols(value, used);
  const Space to(consumer_, program_.assumptions);
  std::vector<VarId> free = free_variables();
  size_t end = consumer_.vars.size();
  for (size_t f = free.size(); f-- > 0;) {
    for (size_t v = end; v-- > 0;) {
      sym::Expr symbol = consumer_.symbol(VarId(v));
      if (std::find(used.begin(), used.end(), symbol) != used.end()) continue;
      if (!to.equal(consumer_.vars[VarId(v)].extent, producer_.vars[free[f]].extent)) continue;
      values_[producer_.symbol(free[f])] = symbol;
      used.push_back(symbol);
      end = v;  // keeps the order of several
      break;
    }
  }
}

void Substitution::add_variables() {
  for (VarId v : free_variables()) {
    std::string name = loops::fresh_variable_name(consumer_.vars);
    values_[producer_.symbol(v)] = sym::Expr::symbol(name);
    consumer_.vars.push_back({std::move(name), producer_.vars[v].extent});
  }
}

bool Substitution::is_bijection() const {
  const Space to(consumer_, program_.assumptions);
  std::vector<sym::Expr> coords, sizes;
  for (size_t v = 0; v < producer_.vars.size(); ++v) {
    auto value = values_.find(producer_.symbol(VarId(v)));
    if (value == values_.end()) continue;
    coords.push_back(value->second);
    sizes.push_back(producer_.vars[VarId(v)].extent);
  }
  return to.is_bijection(coords, sizes);
}

// Where the order of a row's points counts, as for the position that argmax reports, the values of its variables must keep it.
bool Substitution::keeps_positions() const {
  for (const loops::Stmt& stmt : producer_.body) {
    if (!depends_on_row_order(stmt)) continue;
    const loops::VarSet over = row_state(stmt)->over;
    const Space to(consumer_, program_.assumptions);
    std::vector<sym::Expr> order;
    for (size_t v = 0; v < producer_.vars.size(); ++v) {
      if (!over.contains(VarId(v))) continue;
      auto digits = to.mixed_radix(values_.at(producer_.symbol(VarId(v))), producer_.vars[VarId(v)].extent);
      if (!digits) return false;
      for (const loops::Digit& digit : *digits) order.push_back(digit.var);
    }
    size_t next = 0;
    for (size_t v = 0; v < consumer_.vars.size() && next < order.size(); ++v)
      if (consumer_.symbol(VarId(v)) == order[next]) ++next;
    if (next < order.size()) return false;
  }
  return true;
}

bool Substitution::align() {
  while (true) {
    if (!solve_uses() || !unite_uses()) return false;
    if (split_consumer()) continue;
    if (!is_bijection()) return false;
    if (free_variables().empty()) break;
    match_shared_loads(true);
    if (!split_consumer()) break;
  }
  if (!is_bijection()) {  // a division that no split resolves
    unite_uses();
    match_shared_loads(false);
  }
  match_extents();
  if (consumer_.vars.size() + free_variables().size() > max_variables) return false;
  add_variables();
  return is_bijection() && keeps_positions();
}

bool Substitution::align_siblings() {
  uses_.clear();
  do {
    values_.clear();
    match_shared_loads(true);
  } while (split_consumer());
  if (!free_variables().empty() || !is_bijection() || !keeps_positions()) return false;
  std::vector<sym::Expr> used;
  for (const auto& [var, value] : values_) collect_symbols(value, used);
  return std::all_of(consumer_.vars.begin(), consumer_.vars.end(),
                     [&](const loops::Var& var) { return std::find(used.begin(), used.end(), sym::Expr::symbol(var.name)) != used.end(); });
}

}  // namespace cxxinductor::schedule

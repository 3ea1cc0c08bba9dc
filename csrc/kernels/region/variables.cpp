// Order, merging and names of a region's variables.
#include <algorithm>
#include <string>

#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"
#include "ir/target.h"
#include "kernels/region/flat_region.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;
using sym::Expr;

// ---- Order ------------------------------------------------------------------------------------------------------

struct WeightedAccess {
  StmtId stmt;
  bool store = false;
  int rank = 0;  // variables that it varies over
  int bytes = 0;
};

// Stores first, then what varies over the most variables, then the widest.
std::vector<StmtId> accesses_by_weight(const FlatRegion& flat) {
  std::vector<WeightedAccess> found;
  for (const loops::Access& access : accesses(flat.region)) {
    const Stmt& stmt = flat.region.body[access.stmt];
    found.push_back({access.stmt, access.store, stmt.vars.count(), byte_size(stmt.dtype)});
  }
  std::stable_sort(found.begin(), found.end(), [](const WeightedAccess& a, const WeightedAccess& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    if (a.store != b.store) return a.store;
    return a.bytes > b.bytes;
  });
  std::vector<StmtId> order;
  for (const WeightedAccess& access : found) order.push_back(access.stmt);
  return order;
}

// Estimated stride of an access along v: 0 if it does not vary, -1 if it has none.
int64_t stride_along(const FlatRegion& flat, const Stmt& stmt, VarId v) {
  if (!stmt.vars.contains(v)) return 0;
  std::optional<Linear> linear = linear_in(flat.region, offset_of(stmt), v);
  return linear ? estimate(linear->coefficient, flat.assumptions) : -1;
}

bool belongs_inside(const FlatRegion& flat, const std::vector<StmtId>& order, VarId outer, VarId inner) {
  for (StmtId id : order) {
    const Stmt& stmt = flat.region.body[id];
    int64_t outer_stride = stride_along(flat, stmt, outer);
    int64_t inner_stride = stride_along(flat, stmt, inner);
    if (outer_stride <= 0 || inner_stride <= 0 || outer_stride == inner_stride) continue;
    return outer_stride < inner_stride;
  }
  return false;
}

void sort_by_stride(const FlatRegion& flat, const std::vector<StmtId>& order, std::vector<VarId>& vars) {
  for (size_t k = 1; k < vars.size(); ++k)
    for (size_t j = k; j > 0 && belongs_inside(flat, order, vars[j - 1], vars[j]); --j) std::swap(vars[j - 1], vars[j]);
}

// Space in the order of stores with write conflicts: of the variables of a row-major number, the outer ones have the larger
// coefficients.
void sort_by_conflict_order(FlatRegion& flat) {
  for (const Stmt& stmt : flat.region.body) {
    const auto* store = stmt.as<loops::Store>();
    if (!store || !store->conflict_order) continue;
    const auto weight = [&](VarId v) {
      std::optional<Linear> linear = linear_in(flat.region, *store->conflict_order, v);
      CXXI_CHECK(linear, "the order of a store in region {} is no row-major number", flat.region.name);
      return estimate(linear->coefficient, flat.assumptions);
    };
    std::stable_sort(flat.space.begin(), flat.space.end(), [&](VarId a, VarId b) { return weight(a) > weight(b); });
  }
}

// ---- Merging ----------------------------------------------------------------------------------------------------

// Two neighbours u, w of extent `inner_extent` for w, and the variable that stands for u * inner_extent + w.
struct Pair {
  Expr u, w, inner_extent, merged;
  const sym::Assumptions* assumptions;
  bool touches(Expr e) const { return e.depends_on(u) || e.depends_on(w); }
};

// e with every u * inner_extent + w replaced, or nothing where u or w occurs in another form.
std::optional<Expr> merge_in(Expr e, const Pair& pair) {
  if (!pair.touches(e)) return e;
  auto multiple_of = [&](Expr term, Expr variable) -> std::optional<Expr> {
    Expr coefficient, rest;
    if (!split_linear(term, variable, &coefficient, &rest) || !rest.is_constant(0) || pair.touches(coefficient)) return {};
    return coefficient;
  };
  std::vector<Expr> parts;
  switch (e.kind()) {
    case sym::Kind::Constant:
    case sym::Kind::Symbol:
      return {};
    case sym::Kind::Add: {
      Expr u_coefficient, w_coefficient, rest;
      for (Expr term : e.operands()) {
        if (std::optional<Expr> c = multiple_of(term, pair.u)) {
          u_coefficient = u_coefficient + *c;
        } else if (std::optional<Expr> d = multiple_of(term, pair.w)) {
          w_coefficient = w_coefficient + *d;
        } else if (std::optional<Expr> r = merge_in(term, pair)) {
          rest = rest + *r;
        } else {
          return {};
        }
      }
      if (!prove_equal(u_coefficient, w_coefficient * pair.inner_extent, *pair.assumptions)) return {};
      return w_coefficient * pair.merged + rest;
    }
    case sym::Kind::Mul:
    case sym::Kind::FloorDiv:
    case sym::Kind::Mod:
    case sym::Kind::Min:
    case sym::Kind::Max:
      for (Expr operand : e.operands()) {
        std::optional<Expr> part = merge_in(operand, pair);
        if (!part) return {};
        parts.push_back(*part);
      }
  }
  switch (e.kind()) {
    case sym::Kind::FloorDiv:
      return floor_div(parts[0], parts[1]);
    case sym::Kind::Mod:
      return mod(parts[0], parts[1]);
    case sym::Kind::Mul:
      return product(parts);
    case sym::Kind::Min:
    case sym::Kind::Max:
    case sym::Kind::Constant:
    case sym::Kind::Symbol:
    case sym::Kind::Add:
      break;
  }
  Expr folded = parts.front();
  for (Expr part : parts) folded = e.kind() == sym::Kind::Min ? min(folded, part) : max(folded, part);
  return folded;
}

bool try_merge(FlatRegion& flat, VarId outer, VarId inner) {
  for (const Stmt& stmt : flat.region.body)
    if (stmt.vars.contains(outer) != stmt.vars.contains(inner)) return false;
  std::string name = flat.region.vars[outer].name + "." + flat.region.vars[inner].name;
  Pair pair{flat.region.symbol(outer), flat.region.symbol(inner), flat.extent(inner), Expr::symbol(name), &flat.assumptions};
  loops::Region region = flat.region;
  for (Stmt& stmt : region.body) {
    bool possible = true;
    rewrite_expressions(stmt, [&](Expr e) {
      std::optional<Expr> merged = merge_in(e, pair);
      possible = possible && merged;
      return merged.value_or(e);
    });
    if (!possible) return false;
  }
  IdVector<VarId, loops::Var> vars;
  std::vector<VarId> space, row;
  auto keep = [&](const std::vector<VarId>& from, std::vector<VarId>& to) {
    for (VarId v : from) {
      if (v == inner) continue;
      loops::Var var = flat.region.vars[v];
      if (v == outer) var = {name, simplify(var.extent * pair.inner_extent, flat.program_assumptions)};
      to.push_back(vars.push_back(std::move(var)));
    }
  };
  keep(flat.space, space);
  VarId serial;
  if (flat.serial.valid()) serial = vars.push_back(flat.region.vars[flat.serial]);
  keep(flat.row, row);
  flat.region.body = std::move(region.body);
  replace_variables(flat, std::move(vars), std::move(space), std::move(row), serial, {});
  return true;
}

// In rows of odd length every element would be stored alone; 2 or 1 byte at a time waste most of a memory transaction.
constexpr int narrow_bytes = 2;
constexpr int most_decoded_loads = 2;

// Whether the last two variables may become one along which stores are whole vectors, while loads divide by the row's length.
bool wants_flat_stores(const FlatRegion& flat, const Target& target) {
  if (!is_simt(target) || !flat.row.empty() || flat.space.size() < 2) return false;
  const VarId outer = flat.space[flat.space.size() - 2], inner = flat.space.back();
  int loads = 0, stores = 0;
  for (const Stmt& stmt : flat.region.body) {
    const bool access = stmt.as<loops::Load>() || stmt.as<loops::Store>();
    if (!access && holds_expressions(stmt) && (stmt.vars.contains(outer) || stmt.vars.contains(inner))) return false;
    if (stmt.as<loops::Load>() && stmt.vars.contains(inner)) ++loads;
    if (!stmt.as<loops::Store>()) continue;
    if (stmt.as<loops::Store>()->update) return false;
    ++stores;
    if (byte_size(stmt.dtype) > narrow_bytes) return false;
    const int64_t width = target.vector_bytes / byte_size(stmt.dtype);
    const auto along = linear_in(flat.region, offset_of(stmt), inner);
    const auto across = linear_in(flat.region, offset_of(stmt), outer);
    if (!along || !across || !along->coefficient.is_constant(1) || !(across->coefficient == flat.extent(inner))) return false;
    if (prove_divides(width, flat.extent(inner), flat.assumptions)) return false;
  }
  return stores > 0 && loads <= most_decoded_loads;
}

bool merge_somewhere(FlatRegion& flat) {
  for (const std::vector<VarId>* list : {&flat.space, &flat.row})
    for (size_t k = list->size(); k-- > 1;)
      if (try_merge(flat, (*list)[k - 1], (*list)[k])) return true;
  return false;
}

}  // namespace

bool has_write_conflicts(const FlatRegion& flat) {
  return std::any_of(flat.region.body.begin(), flat.region.body.end(), [](const Stmt& stmt) {
    const auto* store = stmt.as<loops::Store>();
    return store && store->conflict_order;
  });
}

void order_variables(FlatRegion& flat, const Target& target) {
  std::vector<StmtId> order = accesses_by_weight(flat);
  if (!is_simt(target) && has_write_conflicts(flat))
    sort_by_conflict_order(flat);
  else
    sort_by_stride(flat, order, flat.space);
  const bool keeps_order = std::any_of(flat.region.body.begin(), flat.region.body.end(), loops::depends_on_row_order);
  if (!keeps_order) sort_by_stride(flat, order, flat.row);
}

void merge_variables(FlatRegion& flat) {
  while (merge_somewhere(flat)) {
  }
}

void flatten_stores(FlatRegion& flat, const Target& target) {
  if (!wants_flat_stores(flat, target)) return;
  const VarId outer = flat.space[flat.space.size() - 2], inner = flat.space.back();
  const Expr row = flat.extent(inner);
  const std::string name = flat.region.vars[outer].name + "." + flat.region.vars[inner].name;
  const sym::Substitution replacements{{flat.region.vars[outer].name, floor_div(Expr::symbol(name), row)},
                                       {flat.region.vars[inner].name, mod(Expr::symbol(name), row)}};
  IdVector<VarId, loops::Var> vars;
  std::vector<VarId> space;
  for (VarId v : flat.space) {
    if (v == inner) continue;
    loops::Var var = flat.region.vars[v];
    if (v == outer) var = {name, simplify(var.extent * row, flat.program_assumptions)};
    space.push_back(vars.push_back(std::move(var)));
  }
  replace_variables(flat, std::move(vars), std::move(space), {}, {}, replacements);
}

void name_variables(FlatRegion& flat) {
  auto taken = [&](const std::string& name) {
    auto uses = [&](Expr e) { return e.depends_on(Expr::symbol(name)); };
    for (const loops::Var& var : flat.region.vars)
      if (uses(var.extent)) return true;
    bool found = flat.program_assumptions.ranges().contains(name);
    for (Stmt& stmt : flat.region.body)
      rewrite_expressions(stmt, [&](Expr e) {
        bool is_variable = std::any_of(flat.region.vars.begin(), flat.region.vars.end(), [&](const loops::Var& var) { return var.name == name; });
        found = found || (!is_variable && uses(e));
        return e;
      });
    return found;
  };
  IdVector<VarId, loops::Var> vars;
  std::vector<VarId> space, row;
  sym::Substitution names;
  auto add = [&](const std::vector<VarId>& from, std::vector<VarId>& to, char letter) {
    for (VarId v : from) {
      std::string name = fmt::format("{}{}", letter, to.size());
      while (taken(name)) name += '_';
      names.emplace(flat.region.vars[v].name, Expr::symbol(name));
      to.push_back(vars.push_back({name, flat.extent(v)}));
    }
  };
  add(flat.space, space, 'i');
  std::vector<VarId> serial;
  if (flat.serial.valid()) add({flat.serial}, serial, 'w');
  add(flat.row, row, 'r');
  replace_variables(flat, std::move(vars), std::move(space), std::move(row), serial.empty() ? VarId() : serial.front(), names);
}

}  // namespace cxxinductor::kernels

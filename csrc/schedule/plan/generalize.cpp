#include "schedule/plan/generalize.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/plan/index_width.h"
#include "ir/target.h"
#include "schedule/fusion/score_fusion.h"
#include "schedule/plan/kernel_constants.h"
#include "schedule/plan/kernel_integers.h"
#include "schedule/plan/kernel_table.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using plan::Kernel;
using plan::KernelId;
using plan::Plan;
using sym::Expr;

constexpr size_t least_kernels = 16;  // of a plan; fewer compile within seconds
constexpr int64_t largest_argument = plan::always_index32_limit;
constexpr int64_t largest_constant = int64_t{1} << 53;  // as an argument; Index takes 64 bits
constexpr int64_t largest_known_divisor = 128;          // of an extent; blocks and vectors need no larger one
constexpr double noticeable = 0.03;                     // of a launch's time
constexpr double operations_of_division = 16;           // by an argument, beyond those of a division by a constant

// The integers of a kernel, and for each whether merged kernels must have the same.
struct Integers {
  std::vector<int64_t> values;
  std::vector<bool> fixed;
};

Integers integers_of(Kernel kernel) {
  Integers found;
  rewrite_integers(kernel, [&](int64_t value, bool fixed) {
    found.values.push_back(value);
    found.fixed.push_back(fixed || value <= -largest_argument || value >= largest_argument);
    return Expr(value);
  });
  return found;
}

bool may_be_merged(const Kernel& kernel) {
  return kernel.symbols.empty() && kernel.max_grouped == 1 && kernel.always_index32 && traits(kernel.mapping).any_size;
}

// Kernels that become one: those with equal patterns and fixed integers.
struct Family {
  std::vector<KernelId> members;
  std::vector<std::vector<int64_t>> values;                       // by member
  std::vector<std::vector<double>> constants;                     // by member
  std::vector<Expr> merged;                                       // by position: the constant or the symbol that stands for it
  std::vector<std::optional<ConstantArgument>> merged_constants;  // by position: none where all members have the same
  std::vector<std::vector<int64_t>> arguments;                    // by symbol, then by member
  size_t sizes = 0;                                               // arguments before those for constants

  std::string symbol(size_t number) const { return fmt::format("n{}", number); }
};

template <class T>
std::vector<T> column_of(const std::vector<std::vector<T>>& rows, size_t position) {
  std::vector<T> column;
  for (const std::vector<T>& row : rows) column.push_back(row[position]);
  return column;
}

template <class T>
bool all_equal(const std::vector<T>& column) {
  return std::all_of(column.begin(), column.end(), [&](const T& value) { return value == column.front(); });
}

// Positions with equal integers in all members share a symbol.
void name_symbols(Family& family) {
  std::map<std::vector<int64_t>, size_t> known;
  const auto symbol_of = [&](std::vector<int64_t> column) {
    const auto [found, is_new] = known.try_emplace(column, family.arguments.size());
    if (is_new) family.arguments.push_back(std::move(column));
    return Expr::symbol(family.symbol(found->second));
  };
  for (size_t p = 0; p < family.values.front().size(); ++p) {
    std::vector<int64_t> column = column_of(family.values, p);
    family.merged.push_back(all_equal(column) ? Expr(column.front()) : symbol_of(std::move(column)));
  }
  family.sizes = family.arguments.size();
  known.clear();
  for (size_t p = 0; p < family.constants.front().size(); ++p) {
    const std::vector<double> column = column_of(family.constants, p);
    family.merged_constants.emplace_back();
    if (all_equal(column)) continue;
    ScaledIntegers scaled = *scaled_integers(column);
    family.merged_constants.back() = ConstantArgument{symbol_of(std::move(scaled.integers)), scaled.exponent};
  }
}

// Those whose constants are no integers of one scale have families of their own.
std::vector<Family> split_by_constants(Family family) {
  bool one_scale = true;
  for (size_t p = 0; p < family.constants.front().size(); ++p) one_scale = one_scale && scaled_integers(column_of(family.constants, p));
  std::vector<Family> found;
  if (one_scale) {
    found.push_back(std::move(family));
    return found;
  }
  std::map<std::vector<double>, Family> parts;
  for (size_t m = 0; m < family.members.size(); ++m) {
    Family& part = parts[family.constants[m]];
    part.members.push_back(family.members[m]);
    part.values.push_back(std::move(family.values[m]));
    part.constants.push_back(std::move(family.constants[m]));
  }
  for (auto& [constants, part] : parts) found.push_back(std::move(part));
  return found;
}

std::vector<Family> find_families(const Plan& plan) {
  std::map<std::string, Family> families;
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const KernelId id(k);
    if (!may_be_merged(plan.kernels[id])) continue;
    Integers integers = integers_of(plan.kernels[id]);
    std::string key = pattern_of(without_constants(plan.kernels[id]));
    for (size_t p = 0; p < integers.values.size(); ++p)
      if (integers.fixed[p]) key += fmt::format("{} ", integers.values[p]);
    Family& family = families[std::move(key)];
    family.members.push_back(id);
    family.values.push_back(std::move(integers.values));
    family.constants.push_back(constants_of(plan.kernels[id]));
  }
  std::vector<Family> found;
  for (auto& [key, all] : families) {
    for (Family& family : split_by_constants(std::move(all))) {
      if (family.members.size() < 2) continue;
      name_symbols(family);
      if (plan.kernels[family.members.front()].params.size() + family.arguments.size() >= plan::usual_arguments) continue;
      found.push_back(std::move(family));
    }
  }
  return found;
}

// ---- The merged kernel ------------------------------------------------------------------------------------------

// Only what the text of the members depends on, so that kernels of other graphs that differ in sizes alone are equal.
sym::Assumptions summarize(const Kernel& kernel, const Family& family) {
  std::set<std::string, std::less<>> extents, lengths;
  for (const loops::Var& var : kernel.region.vars)
    for (Expr symbol : var.extent.free_symbols()) extents.emplace(symbol.name());
  for (plan::VarId id : kernel.mapping.row)
    for (Expr symbol : kernel.region.vars[id].extent.free_symbols()) lengths.emplace(symbol.name());
  sym::Assumptions assumptions;
  for (size_t a = 0; a < family.arguments.size(); ++a) {
    if (a >= family.sizes) {
      assumptions.set_range(family.symbol(a), {-largest_constant, largest_constant});
      continue;
    }
    const std::vector<int64_t>& values = family.arguments[a];
    const int64_t least = *std::min_element(values.begin(), values.end());
    // How a row is summed up depends on its longest length.
    const int64_t most = *std::max_element(values.begin(), values.end());
    const int64_t high = lengths.contains(family.symbol(a)) ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(most))) : largest_argument;
    assumptions.set_range(family.symbol(a), {least >= 1 ? 1 : least >= 0 ? 0 : -largest_argument, high});
    if (!extents.contains(family.symbol(a))) continue;
    const int64_t divisor = std::accumulate(values.begin(), values.end(), largest_known_divisor, std::gcd<int64_t, int64_t>);
    if (divisor > 1) assumptions.set_divisor(family.symbol(a), divisor);
  }
  for (const loops::Var& var : kernel.region.vars) {
    const sym::Interval extent = bounds(var.extent, assumptions);
    assumptions.set_range(var.name, {0, std::max<int64_t>(extent.high - 1, extent.low < 1 ? 1 : 0)});
  }
  return assumptions;
}

// The name depends on the kernel's content only: equal kernels of other graphs have equal sources.
std::string name_of_merged(Kernel kernel, const std::string& hint) {
  kernel.name = kernel.region.name = "k";
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : pattern_of(kernel)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  rewrite_integers(kernel, [&](int64_t value, bool) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x100000001b3u;
    return Expr(value);
  });
  return fmt::format("sizes_{:012x}_{}", hash & 0xffffffffffffu, hint);
}

Kernel merge(const Plan& plan, const Family& family, const std::vector<int64_t>& launches) {
  Kernel kernel = plan.kernels[family.members.front()];
  size_t position = 0;
  rewrite_integers(kernel, [&](int64_t, bool) { return family.merged[position++]; });
  replace_constants(kernel, family.merged_constants);
  for (size_t a = 0; a < family.arguments.size(); ++a) kernel.symbols.push_back(family.symbol(a));
  kernel.assumptions = summarize(kernel, family);
  int64_t read = 0, written = 0, count = 0;
  for (KernelId id : family.members) {
    const Kernel& member = plan.kernels[id];
    kernel.index_limit = max(kernel.index_limit, member.index_limit);
    read += member.bytes_read_hint * launches[id.index()];
    written += member.bytes_written_hint * launches[id.index()];
    count += launches[id.index()];
  }
  kernel.bytes_read_hint = read / std::max<int64_t>(count, 1);
  kernel.bytes_written_hint = written / std::max<int64_t>(count, 1);
  kernel.name = kernel.region.name = name_of_merged(kernel, KernelTable::hint_of(kernel));
  return kernel;
}

// ---- Cost -------------------------------------------------------------------------------------------------------

// Extents that a thread divides its number by to find its variables: all of space but the outermost.
int divisions_by_arguments(const Kernel& kernel) {
  int count = 0;
  for (size_t d = 1; d < kernel.mapping.space.size(); ++d) count += kernel.region.vars[kernel.mapping.space[d]].extent.is_constant() ? 0 : 1;
  return count;
}

// What the merged kernel takes beyond `member` for a launch of it, as a part of the launch's time. Loops over groups do not
// divide again; what else was a constant costs an instruction as an argument, too.
double slowdown(const Kernel& merged, const Kernel& member, Expr grid, const Target& target) {
  if (!is_simt(target) || !grid.is_constant()) return 0;
  double operations = 0;
  for (const loops::Stmt& stmt : member.region.body) {
    const auto* apply = stmt.as<loops::Apply>();
    if (!apply) continue;
    double points = 1;
    for (size_t v = 0; v < member.region.vars.size(); ++v)
      if (stmt.vars.contains(plan::VarId(v))) points *= size_hint(member.region.vars[plan::VarId(v)].extent, member.assumptions);
    operations += points * (info(apply->op).traits.transcendental ? bytes_per_transcendental : bytes_per_op);
  }
  const auto* pointwise = member.mapping.as<plan::Pointwise>();  // divides for each group
  const double threads = static_cast<double>(grid.constant()) * block_threads(member.mapping);
  const double divided = threads * (pointwise ? pointwise->unroll : 1) * divisions_by_arguments(merged);
  const double moved = static_cast<double>(member.bytes_read_hint + member.bytes_written_hint);
  const double before = launch_cost(target) + joint_cost(moved, operations, target);
  const double after = launch_cost(target) + joint_cost(moved, operations + divided * operations_of_division * bytes_per_op, target);
  return after / before - 1;
}

// ---- The plan ---------------------------------------------------------------------------------------------------

class Generalization {
  struct Place {
    size_t family, member;
  };

 public:
  Generalization(Plan& plan, const Targets& targets, const std::vector<Family>& families)
      : plan_(plan), targets_(targets), families_(families), places_(plan.kernels.size()), kept_(plan.kernels.size()) {
    for (size_t f = 0; f < families.size(); ++f)
      for (size_t m = 0; m < families[f].members.size(); ++m) places_[families[f].members[m].index()] = Place{f, m};
  }

  void run() {
    std::vector<int64_t> launches(plan_.kernels.size(), 0);
    for_each_launch([&](const plan::Launch& launch) { ++launches[launch.kernel.index()]; });
    for (const Family& family : families_) merged_.push_back(merge(plan_, family, launches));
    choose_specializations();
    number_kernels();
    for (plan::Step& step : plan_.steps) {
      if (auto* launch = std::get_if<plan::Launch>(&step)) redirect(*launch);
      if (auto* group = std::get_if<plan::GroupedLaunch>(&step))
        for (plan::Launch& launch : group->launches) redirect(launch);
    }
  }

 private:
  template <class Visit>
  void for_each_launch(Visit visit) const {
    for (const plan::Step& step : plan_.steps)
      for (const plan::Launch& launch : plan::launches_of(step)) visit(launch);
  }

  void choose_specializations() {
    for_each_launch([&](const plan::Launch& launch) {
      const auto& place = places_[launch.kernel.index()];
      if (!place) return;
      const Kernel& merged = merged_[place->family];
      if (slowdown(merged, plan_.kernels[launch.kernel], launch.grid_x, targets_.of(merged.device)) >= noticeable) kept_[launch.kernel.index()] = true;
    });
  }

  // A merged kernel takes the position of its first member.
  void number_kernels() {
    IdVector<KernelId, Kernel> kernels;
    numbers_.resize(plan_.kernels.size());
    merged_numbers_.resize(families_.size());
    for (size_t k = 0; k < plan_.kernels.size(); ++k) {
      Kernel& kernel = plan_.kernels[KernelId(k)];
      const auto& place = places_[k];
      if (place) {
        if (place->member == 0) merged_numbers_[place->family] = kernels.push_back(merged_[place->family]);
        if (!kept_[k]) continue;
        kernel.symbols = merged_[place->family].symbols;  // a specialization takes the arguments of the launch
      }
      numbers_[k] = kernels.push_back(std::move(kernel));
    }
    plan_.kernels = std::move(kernels);
  }

  void redirect(plan::Launch& launch) const {
    for (plan::Specialization& special : launch.specializations) special.kernel = numbers_[special.kernel.index()];
    const size_t old = launch.kernel.index();
    const auto& place = places_[old];
    if (!place) {
      launch.kernel = numbers_[old];
      return;
    }
    launch.kernel = merged_numbers_[place->family];
    for (const std::vector<int64_t>& values : families_[place->family].arguments) launch.symbol_args.emplace_back(values[place->member]);
    if (kept_[old]) launch.specializations.push_back({numbers_[old], launch.grid_x, {}});
  }

  Plan& plan_;
  const Targets& targets_;
  const std::vector<Family>& families_;
  std::vector<std::optional<Place>> places_;  // by kernel of the plan as it was
  std::vector<bool> kept_;                    // the same: becomes a specialization
  std::vector<Kernel> merged_;                // by family
  std::vector<KernelId> numbers_, merged_numbers_;
};

}  // namespace

bool generalize_kernels(Plan& plan, const Targets& targets) {
  if (plan.kernels.size() < least_kernels) return false;
  const std::vector<Family> families = find_families(plan);
  if (!families.empty()) Generalization(plan, targets, families).run();
  return !families.empty();
}

}  // namespace cxxinductor::schedule

#include "schedule/plan/specializations.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/target.h"

namespace cxxinductor::schedule {
namespace {

using sym::Assumptions;
using sym::Expr;

// Elements of 16 bytes, from the widest type that counts to the narrowest.
constexpr std::array<int64_t, 3> divisors{4, 8, 16};
// Upper ends of ranges of the symbol that a row's length depends on; each range has a kernel. A row that is a quarter as long
// as the kernel's longest leaves three quarters of the items idle, at no cost in memory traffic.
constexpr std::array<int64_t, 5> row_buckets{64, 256, 1024, 4096, 16384};

class Specializer {
 public:
  Specializer(const loops::Program& program, const loops::Region& region, const Target& target, MappedKernel& mapped)
      : program_(program), region_(region), target_(target), mapped_(mapped) {}

  void run() {
    const Assumptions multiples = find_multiples();
    const std::optional<SpecialKernel> wide = multiples.divisors().empty() ? std::nullopt : build(multiples);
    std::vector<SpecialKernel>& specializations = mapped_.specializations = by_row_length(multiples);
    const std::optional<std::string> row = specializations.empty() ? std::nullopt : row_symbol();
    const bool all_lengths = row && specializations.back().when.range(*row).high == program_.assumptions.range(*row).high;
    if (wide && !all_lengths) specializations.push_back(*wide);
  }

 private:
  int width() const { return mapped_.kernel.mapping.vector_width; }

  // Nothing if the arguments would differ: with more assumptions an access may disappear.
  std::optional<SpecialKernel> build(const Assumptions& when) const {
    MappedKernel built = build_kernel(program_, prepare_region(program_, region_, target_, joined(program_.assumptions, when)), target_);
    if (built.args != mapped_.args || !std::ranges::includes(mapped_.kernel.symbols, built.kernel.symbols)) return std::nullopt;
    built.kernel.symbols = mapped_.kernel.symbols;  // those of the launch, though the assumptions may make one a number
    return SpecialKernel{std::move(built.kernel), std::move(built.grid_x), when};
  }

  // The fewest symbols, and the smallest number, that make accesses wider when they are its multiples.
  Assumptions find_multiples() const {
    Assumptions best;
    int most = width();
    for (const int64_t divisor : divisors) {
      const Assumptions all = multiples_of(divisor, mapped_.kernel.symbols);
      const auto found = all.divisors().empty() ? std::nullopt : build(all);
      if (!found || found->kernel.mapping.vector_width <= most) continue;
      most = found->kernel.mapping.vector_width;
      best = all;
      std::vector<std::string> symbols = mapped_.kernel.symbols;
      for (const std::string& symbol : mapped_.kernel.symbols) {
        std::vector<std::string> fewer = symbols;
        std::erase(fewer, symbol);
        const Assumptions assumptions = multiples_of(divisor, fewer);
        const auto still = build(assumptions);
        if (!still || still->kernel.mapping.vector_width < most) continue;
        symbols = std::move(fewer);
        best = assumptions;
      }
    }
    return best;
  }

  Assumptions multiples_of(int64_t divisor, const std::vector<std::string>& symbols) const {
    Assumptions assumptions;
    for (const std::string& symbol : symbols)
      if (program_.assumptions.divisor(symbol) % divisor != 0) assumptions.set_divisor(symbol, divisor);
    return assumptions;
  }

  // The only symbol of the row's length.
  std::optional<std::string> row_symbol() const {
    const plan::Kernel& kernel = mapped_.kernel;
    Expr length = 1;
    for (plan::VarId v : kernel.mapping.row) length = length * kernel.region.vars[v].extent;
    const auto symbols = length.free_symbols();
    return symbols.size() == 1 ? std::optional(std::string(symbols.begin()->name())) : std::nullopt;
  }

  std::vector<SpecialKernel> by_row_length(const Assumptions& multiples) const {
    std::vector<SpecialKernel> found;
    const plan::Mapping& mapping = mapped_.kernel.mapping;
    const std::optional<std::string> symbol = row_symbol();
    if (!is_rows(mapping) || is_persistent(mapping) || !symbol) return found;
    const sym::Interval range = program_.assumptions.range(*symbol);
    int64_t low = std::max<int64_t>(range.low, 0);
    for (const int64_t high : row_buckets) {
      if (high < low || low > range.high) continue;
      Assumptions rows;
      rows.set_range(*symbol, {low, std::min(high, range.high)});
      low = high + 1;
      std::vector<Assumptions> kinds{rows};
      if (!multiples.divisors().empty()) kinds.insert(kinds.begin(), joined(rows, multiples));
      for (const Assumptions& assumptions : kinds)
        if (auto special = build(assumptions); special && is_persistent(special->kernel.mapping)) found.push_back(std::move(*special));
    }
    return found;
  }

  const loops::Program& program_;
  const loops::Region& region_;
  const Target& target_;
  MappedKernel& mapped_;
};

}  // namespace

void add_specializations(const loops::Program& program, const loops::Region& region, const Target& target, MappedKernel& mapped) {
  if (is_simt(target) && traits(mapped.kernel.mapping).any_size && !mapped.kernel.symbols.empty()) Specializer(program, region, target, mapped).run();
}

}  // namespace cxxinductor::schedule

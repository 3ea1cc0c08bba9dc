// Simplification that needs assumptions: ranges of symbols and divisibility.
//
// Rules read as algebra (before -> after, condition); each preserves the value for every assignment allowed by the
// assumptions, and simplify is idempotent: both are fuzzed.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "sym/expr.h"

namespace cxxinductor::sym {

// Inclusive; the int64 limits stand for "unbounded".
struct Interval {
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  friend bool operator==(Interval, Interval) = default;
};

class Assumptions {
 public:
  void set_range(std::string_view symbol, Interval range);
  void set_divisor(std::string_view symbol, int64_t divisor);  // the symbol is a multiple of divisor
  Interval range(std::string_view symbol) const;
  int64_t divisor(std::string_view symbol) const;  // 1 when nothing is known
  const std::map<std::string, Interval, std::less<>>& ranges() const { return ranges_; }
  const std::map<std::string, int64_t, std::less<>>& divisors() const { return divisors_; }

 private:
  std::map<std::string, Interval, std::less<>> ranges_;
  std::map<std::string, int64_t, std::less<>> divisors_;
};

Assumptions joined(const Assumptions& a, const Assumptions& b);  // what holds where both do; an empty range becomes its lower end

Interval bounds(Expr e, const Assumptions& assumptions);        // saturating interval arithmetic
int64_t known_divisor(Expr e, const Assumptions& assumptions);  // largest d found such that d divides e always (0 for e == 0)
Expr simplify(Expr e, const Assumptions& assumptions);
// A size hint for heuristics: every symbol is 64, or the nearest value in its range.
int64_t estimate(Expr e, const Assumptions& assumptions);
std::optional<bool> prove_less(Expr a, Expr b, const Assumptions& assumptions);  // a < b always, never, or unknown
bool prove_equal(Expr a, Expr b, const Assumptions& assumptions);
bool prove_divides(int64_t divisor, Expr e, const Assumptions& assumptions);

}  // namespace cxxinductor::sym

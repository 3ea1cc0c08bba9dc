// Answers questions on symbolic sizes: by what is known of their symbols and, where that leaves a question open, by
// size hints. What a hint decided is kept as a guard: what was derived from the answers holds wherever the guards do.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/infer/infer.h"
#include "sym/simplify.h"

namespace cxxinductor::model {

// Holds where the expression has the value. Conditions are expressions with the values 0 and 1.
struct SizeGuard {
  sym::Expr expression;
  int64_t value = 0;
  friend bool operator==(const SizeGuard&, const SizeGuard&) = default;
};
bool holds(const SizeGuard& guard, const std::function<int64_t(std::string_view)>& value_of);
std::string to_string(const SizeGuard& guard);  // "max(0, min(1, -s0 + 8)) == 1"

// Conditions as expressions.
sym::Expr less_condition(sym::Expr a, sym::Expr b);   // 1 where a < b
sym::Expr equal_condition(sym::Expr a, sym::Expr b);  // 1 where a == b

using SizeHints = std::map<std::string, int64_t, std::less<>>;

class HintedSizes final : public SizeQuestions {
 public:
  // A symbol without a hint gets one: within its range, not 0 or 1 where possible, and no other symbol's.
  explicit HintedSizes(sym::Assumptions assumptions, SizeHints hints = {});

  bool are_equal(sym::Expr a, sym::Expr b) override;
  bool is_less(sym::Expr a, sym::Expr b) override;
  // Of a condition.
  bool is_true(sym::Expr condition);
  std::optional<bool> prove(sym::Expr condition) const;  // without hints; nothing where they would be needed
  // The value at the hints, which everything is then right for alone.
  int64_t specialize(sym::Expr e);
  int64_t hint(sym::Expr e);

  const sym::Assumptions& assumptions() const { return assumptions_; }
  const std::vector<SizeGuard>& guards() const { return guards_; }

 private:
  int64_t hint_of_symbol(std::string_view name);
  void add_guard(sym::Expr e, int64_t value);

  sym::Assumptions assumptions_;
  SizeHints hints_;
  std::vector<SizeGuard> guards_;
};

}  // namespace cxxinductor::model

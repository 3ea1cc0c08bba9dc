#include "model/size_guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace cxxinductor::model {

bool holds(const SizeGuard& guard, const std::function<int64_t(std::string_view)>& value_of) {
  return sym::evaluate(guard.expression, value_of) == guard.value;
}

std::string to_string(const SizeGuard& guard) { return fmt::format("{} == {}", sym::to_string(guard.expression), guard.value); }

sym::Expr less_condition(sym::Expr a, sym::Expr b) { return sym::max(0, sym::min(1, b - a)); }
sym::Expr equal_condition(sym::Expr a, sym::Expr b) { return sym::Expr(1) - sym::max(0, sym::min(1, sym::max(a - b, b - a))); }

HintedSizes::HintedSizes(sym::Assumptions assumptions, SizeHints hints) : assumptions_(std::move(assumptions)), hints_(std::move(hints)) {}

bool HintedSizes::are_equal(sym::Expr a, sym::Expr b) {
  if (sym::prove_equal(a, b, assumptions_)) return true;
  if (sym::prove_less(a, b, assumptions_).value_or(false) || sym::prove_less(b, a, assumptions_).value_or(false)) return false;
  const bool answer = hint(a) == hint(b);
  add_guard(equal_condition(a, b), answer);
  return answer;
}

bool HintedSizes::is_less(sym::Expr a, sym::Expr b) {
  if (const auto proven = sym::prove_less(a, b, assumptions_)) return *proven;
  const bool answer = hint(a) < hint(b);
  add_guard(less_condition(a, b), answer);
  return answer;
}

std::optional<bool> HintedSizes::prove(sym::Expr condition) const {
  const sym::Interval range = sym::bounds(sym::simplify(condition, assumptions_), assumptions_);
  return range.low == range.high ? std::optional(range.low != 0) : std::nullopt;
}

bool HintedSizes::is_true(sym::Expr condition) {
  if (const auto proven = prove(condition)) return *proven;
  const int64_t answer = hint(condition);
  add_guard(condition, answer);
  return answer != 0;
}

int64_t HintedSizes::specialize(sym::Expr e) {
  const sym::Expr simple = sym::simplify(e, assumptions_);
  if (simple.is_constant()) return simple.constant();
  const int64_t value = hint(simple);
  add_guard(simple, value);
  return value;
}

int64_t HintedSizes::hint(sym::Expr e) {
  return sym::evaluate(e, [this](std::string_view name) { return hint_of_symbol(name); });
}

// Primes make it unlikely that a hint divides another, or a constant, by chance.
int64_t HintedSizes::hint_of_symbol(std::string_view name) {
  if (const auto found = hints_.find(name); found != hints_.end()) return found->second;
  static constexpr std::array<int64_t, 28> primes{67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131,
                                                  61, 59, 53, 47, 43, 41, 37, 31,  29,  23,  19,  17,  13,  11};
  const sym::Interval range = assumptions_.range(name);
  const int64_t divisor = assumptions_.divisor(name);
  std::set<int64_t> taken;
  for (const auto& [other, value] : hints_) taken.insert(value);
  const auto is_free = [&](int64_t value) { return value >= range.low && value <= range.high && !taken.contains(value); };
  std::optional<int64_t> chosen;
  for (int64_t prime : primes)
    if (!chosen && is_free(prime * divisor)) chosen = prime * divisor;
  constexpr int64_t most_tries = 256;
  const int64_t first = (std::max<int64_t>(range.low, 2) + divisor - 1) / divisor * divisor;
  for (int64_t i = 0; i < most_tries && !chosen; ++i)
    if (is_free(first + i * divisor)) chosen = first + i * divisor;
  const int64_t value = chosen.value_or(std::clamp(first, range.low, range.high));
  hints_.emplace(name, value);
  return value;
}

void HintedSizes::add_guard(sym::Expr e, int64_t value) {
  const SizeGuard guard{e, value};
  if (std::find(guards_.begin(), guards_.end(), guard) == guards_.end()) guards_.push_back(guard);
}

}  // namespace cxxinductor::model

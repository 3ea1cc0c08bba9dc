#include "sym/expr.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "support/fork_locks.h"
#include "sym/integer.h"
#include "sym/names.h"
#include "sym/normal_form.h"

namespace cxxinductor::sym {

struct Node {
  Kind kind;
  int64_t constant = 0;
  std::string name;
  std::vector<Expr> operands;
  std::vector<Expr> free_symbols;
  size_t hash = 0;
  size_t tree_size = 1;  // nodes where each occurrence counts, which is what printing and walking cost
};

namespace {

size_t combine(size_t seed, size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2)); }

// Sizes and indices have some dozens of nodes. A hundred characters of hostile text, however, can request a power with
// thousands of factors, or one node that occurs a million times.
constexpr size_t max_degree = 64;
constexpr size_t max_tree_size = size_t{1} << 16;

size_t hash_of(Kind kind, int64_t constant, std::string_view name, const std::vector<Expr>& operands) {
  size_t hash = combine(static_cast<size_t>(kind), std::hash<int64_t>()(constant));
  hash = combine(hash, std::hash<std::string_view>()(name));
  for (Expr e : operands) hash = combine(hash, e.hash());
  return hash;
}

}  // namespace

// Nodes live as long as the process: graphs share most of their expressions.
class Interner {
 public:
  static Interner& instance() {
    if (Interner* made = instance_.load(std::memory_order_acquire)) return *made;
    return make_instance();
  }

  // Most requests are for small constants; they need no lock.
  Expr make_constant(int64_t value) {
    if (value >= smallest && value < smallest + static_cast<int64_t>(small_.size())) return Expr(small_[static_cast<size_t>(value - smallest)]);
    // Strides are requested again and again: each thread knows the last ones.
    static thread_local std::array<const Node*, 256> recent{};
    const Node*& node = recent[(static_cast<uint64_t>(value) * 0x9e3779b97f4a7c15ULL) >> 56];
    if (node == nullptr || node->constant != value) node = make(Kind::Constant, value, {}, {}).node_;
    return Expr(node);
  }

  // Loop variables are requested again and again too.
  Expr make_symbol(std::string_view name) {
    static thread_local std::array<const Node*, 256> recent{};
    const Node*& node = recent[std::hash<std::string_view>()(name) >> 56];
    if (node == nullptr || node->name != name) {
      CXXI_CHECK(may_name_symbol(name), "'{}' cannot name a symbol", name);
      node = make(Kind::Symbol, 0, name, {}).node_;
    }
    return Expr(node);
  }

  Expr make(Kind kind, int64_t constant, std::string_view name, std::vector<Expr> operands) {
    const size_t hash = hash_of(kind, constant, name, operands);
    const ForkGuard guard(ForkLock::Expressions);
    return find_or_add(kind, constant, name, std::move(operands), hash);
  }

 private:
  Interner() {
    for (size_t i = 0; i < small_.size(); ++i) {
      const int64_t value = smallest + static_cast<int64_t>(i);
      small_[i] = find_or_add(Kind::Constant, value, {}, {}, hash_of(Kind::Constant, value, {}, {})).node_;
    }
  }
  static Interner& make_instance();

  // With ForkLock::Expressions held.
  Expr find_or_add(Kind kind, int64_t constant, std::string_view name, std::vector<Expr> operands, size_t hash) {
    auto [begin, end] = table_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      const Node& node = *it->second;
      if (node.kind == kind && node.constant == constant && node.name == name && node.operands == operands) return Expr(&node);
    }
    const size_t tree_size = checked_tree_size(kind, operands);
    Node& node = nodes_.emplace_back();
    node.kind = kind;
    node.constant = constant;
    node.name = name;
    node.operands = std::move(operands);
    node.hash = hash;
    node.tree_size = tree_size;
    const Expr result(&node);
    if (kind == Kind::Symbol) {
      node.free_symbols.push_back(result);
    } else {
      std::vector<Expr>& symbols = node.free_symbols;
      for (Expr e : node.operands) symbols.insert(symbols.end(), e.node_->free_symbols.begin(), e.node_->free_symbols.end());
      std::sort(symbols.begin(), symbols.end(), [](Expr a, Expr b) { return a.node_->name < b.node_->name; });
      symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
    }
    table_.emplace(hash, &node);
    return result;
  }

  // Unsupported where a node with these operands would exceed the limits.
  static size_t checked_tree_size(Kind kind, const std::vector<Expr>& operands) {
    if (kind == Kind::Mul) {
      const size_t degree = operands.size() - (operands[0].is_constant() ? 1 : 0);
      if (degree > max_degree) throw_unsupported("a size or index expression has a product of {} factors, expected at most {}", degree, max_degree);
    }
    size_t size = 1;
    for (Expr e : operands) size += e.node_->tree_size;
    if (size > max_tree_size) throw_unsupported("a size or index expression has {} terms and factors, expected at most {}", size, max_tree_size);
    return size;
  }

  static constexpr int64_t smallest = -64;
  static std::atomic<Interner*> instance_;
  std::array<const Node*, 256> small_{};
  std::deque<Node> nodes_;  // both are guarded by ForkLock::Expressions
  std::unordered_multimap<size_t, const Node*> table_;
};

constinit std::atomic<Interner*> Interner::instance_{nullptr};

Interner& Interner::make_instance() {
  const ForkGuard guard(ForkLock::Expressions);
  if (!instance_.load(std::memory_order_relaxed)) instance_.store(new Interner, std::memory_order_release);
  return *instance_.load(std::memory_order_relaxed);
}

Expr intern(Kind kind, std::vector<Expr> operands) { return Interner::instance().make(kind, 0, {}, std::move(operands)); }

void add_term(Sum& sum, Expr monomial, int64_t coefficient) {
  if (coefficient == 0) return;
  auto [it, fresh] = sum.try_emplace(monomial, coefficient);
  if (fresh) return;
  it->second = checked_add(it->second, coefficient);
  if (it->second == 0) sum.erase(it);
}

namespace {

void split_coefficient(Expr e, int64_t* coefficient, Expr* monomial) {
  if (e.is_constant()) {
    *coefficient = e.constant();
    *monomial = Expr(1);
  } else if (e.kind() == Kind::Mul && e.operands()[0].is_constant()) {
    *coefficient = e.operands()[0].constant();
    const auto rest = e.operands().subspan(1);
    *monomial = rest.size() == 1 ? rest[0] : intern(Kind::Mul, {rest.begin(), rest.end()});
  } else {
    *coefficient = 1;
    *monomial = e;
  }
}

void add_expression(Sum& sum, Expr e, int64_t factor) {
  if (e.kind() == Kind::Add) {
    for (Expr term : e.operands()) add_expression(sum, term, factor);
    return;
  }
  int64_t coefficient;
  Expr monomial;
  split_coefficient(e, &coefficient, &monomial);
  add_term(sum, monomial, checked_mul(coefficient, factor));
}

}  // namespace

Expr scaled(int64_t coefficient, Expr monomial) {
  if (coefficient == 0) return Expr(0);
  if (monomial.is_constant()) return Expr(checked_mul(coefficient, monomial.constant()));
  if (coefficient == 1) return monomial;
  std::vector<Expr> factors{Expr(coefficient)};
  if (monomial.kind() == Kind::Mul)
    factors.insert(factors.end(), monomial.operands().begin(), monomial.operands().end());
  else
    factors.push_back(monomial);
  return intern(Kind::Mul, std::move(factors));
}

Expr build(const Sum& sum) {
  std::vector<Expr> terms;
  for (const auto& [monomial, coefficient] : sum) terms.push_back(scaled(coefficient, monomial));
  if (terms.empty()) return Expr(0);
  if (terms.size() == 1) return terms[0];
  return intern(Kind::Add, std::move(terms));
}

Sum as_sum(Expr e) {
  Sum sum;
  add_expression(sum, e, 1);
  return sum;
}

std::vector<Expr> factors_of(Expr monomial) {
  if (monomial.is_constant(1)) return {};
  if (monomial.kind() == Kind::Mul) return {monomial.operands().begin(), monomial.operands().end()};
  return {monomial};
}

namespace {

Expr monomial_of(std::vector<Expr> factors) {
  if (factors.empty()) return Expr(1);
  if (factors.size() == 1) return factors[0];
  return intern(Kind::Mul, std::move(factors));
}

Expr multiply_monomials(Expr a, Expr b) {
  if (a.is_constant(1)) return b;
  if (b.is_constant(1)) return a;
  const std::vector<Expr> x = factors_of(a), y = factors_of(b);
  std::vector<Expr> factors;
  std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(factors), Less());
  return monomial_of(std::move(factors));
}

}  // namespace

std::optional<Expr> divide_monomial(Expr monomial, Expr divisor) {
  const std::vector<Expr> factors = factors_of(monomial), away = factors_of(divisor);
  if (!std::includes(factors.begin(), factors.end(), away.begin(), away.end(), Less())) return std::nullopt;
  std::vector<Expr> left;
  std::set_difference(factors.begin(), factors.end(), away.begin(), away.end(), std::back_inserter(left), Less());
  return monomial_of(std::move(left));
}

bool may_name_symbol(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

Expr::Expr() : Expr(static_cast<int64_t>(0)) {}
Expr::Expr(int64_t constant) : node_(Interner::instance().make_constant(constant).node_) {}
Expr Expr::symbol(std::string_view name) { return Interner::instance().make_symbol(name); }

Kind Expr::kind() const { return node_->kind; }
int64_t Expr::constant() const {
  CXXI_CHECK(node_->kind == Kind::Constant, "{} is no constant", to_string(*this));
  return node_->constant;
}
std::string_view Expr::name() const {
  CXXI_CHECK(node_->kind == Kind::Symbol, "{} is no symbol", to_string(*this));
  return node_->name;
}
std::span<const Expr> Expr::operands() const { return node_->operands; }
const std::vector<Expr>& Expr::free_symbols() const { return node_->free_symbols; }
bool Expr::depends_on(Expr symbol) const { return std::find(node_->free_symbols.begin(), node_->free_symbols.end(), symbol) != node_->free_symbols.end(); }

Expr sum(std::span<const Expr> terms) {
  Sum total;
  for (Expr term : terms) add_expression(total, term, 1);
  return build(total);
}
Expr product(std::span<const Expr> factors) {
  Expr total(1);
  for (Expr factor : factors) total = total * factor;
  return total;
}
Expr operator+(Expr a, Expr b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_add(a.constant(), b.constant()));
  if (a.is_constant(0)) return b;
  if (b.is_constant(0)) return a;
  Sum total = as_sum(a);
  add_expression(total, b, 1);
  return build(total);
}
Expr operator-(Expr a, Expr b) {
  if (a == b) return Expr(0);
  if (b.is_constant(0)) return a;
  if (a.is_constant() && b.is_constant()) return Expr(checked_add(a.constant(), checked_mul(b.constant(), -1)));
  Sum total = as_sum(a);
  add_expression(total, b, -1);
  return build(total);
}
Expr operator-(Expr a) { return Expr(-1) * a; }
Expr operator*(Expr a, Expr b) {
  if (a.is_constant() && b.is_constant()) return Expr(checked_mul(a.constant(), b.constant()));
  if (a.is_constant(1)) return b;
  if (b.is_constant(1)) return a;
  const Sum x = as_sum(a), y = as_sum(b);
  // Sizes and indices have a handful of terms; hostile text could request a power set.
  constexpr size_t most_terms = 4096;
  if (x.size() * y.size() > most_terms) throw_unsupported("a product of sums with {} and {} terms", x.size(), y.size());
  Sum total;
  for (const auto& [m1, c1] : x) {
    for (const auto& [m2, c2] : y) add_term(total, multiply_monomials(m1, m2), checked_mul(c1, c2));
  }
  return build(total);
}

namespace {

Expr extremum(Kind kind, Expr a, Expr b) {
  std::vector<Expr> operands;
  for (Expr e : {a, b}) {
    if (e.kind() == kind)
      operands.insert(operands.end(), e.operands().begin(), e.operands().end());
    else
      operands.push_back(e);
  }
  std::sort(operands.begin(), operands.end(), Less());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  while (operands.size() > 1 && operands[0].is_constant() && operands[1].is_constant()) {
    const int64_t x = operands[0].constant(), y = operands[1].constant();
    operands[1] = Expr(kind == Kind::Min ? std::min(x, y) : std::max(x, y));
    operands.erase(operands.begin());
  }
  // Every value fits in 64 bits, so that a slice to the largest integer is a slice to the end.
  const int64_t neutral = kind == Kind::Min ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  if (operands.size() > 1 && operands[0].is_constant(neutral)) operands.erase(operands.begin());
  if (operands.size() == 1) return operands[0];
  return intern(kind, std::move(operands));
}

}  // namespace

Expr min(Expr a, Expr b) { return extremum(Kind::Min, a, b); }
Expr max(Expr a, Expr b) { return extremum(Kind::Max, a, b); }

int compare(Expr a, Expr b) {
  if (a == b) return 0;
  if (a.kind() != b.kind()) return a.kind() < b.kind() ? -1 : 1;
  switch (a.kind()) {
    case Kind::Constant:
      return a.constant() < b.constant() ? -1 : 1;
    case Kind::Symbol:
      return a.name() < b.name() ? -1 : 1;
    case Kind::Add:
    case Kind::Mul:
    case Kind::FloorDiv:
    case Kind::Mod:
    case Kind::Min:
    case Kind::Max:
      break;
  }
  const auto x = a.operands(), y = b.operands();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (const int c = compare(x[i], y[i]); c != 0) return c;
  }
  return x.size() < y.size() ? -1 : 1;
}

Expr substitute(Expr e, const Substitution& replacements) {
  if (e.free_symbols().empty()) return e;
  if (e.is_symbol()) {
    auto found = replacements.find(std::string(e.name()));
    return found == replacements.end() ? e : found->second;
  }
  std::vector<Expr> operands;
  bool changed = false;
  for (Expr operand : e.operands()) {
    operands.push_back(substitute(operand, replacements));
    changed = changed || operands.back() != operand;
  }
  if (!changed) return e;
  return rebuild(e.kind(), operands);
}

Expr rebuild(Kind kind, const std::vector<Expr>& operands) {
  switch (kind) {
    case Kind::Add:
      return sum(operands);
    case Kind::Mul:
      return product(operands);
    case Kind::FloorDiv:
      return floor_div(operands[0], operands[1]);
    case Kind::Mod:
      return mod(operands[0], operands[1]);
    case Kind::Min:
    case Kind::Max: {
      Expr out = operands[0];
      for (Expr operand : operands) out = kind == Kind::Min ? min(out, operand) : max(out, operand);
      return out;
    }
    case Kind::Constant:
    case Kind::Symbol:
      break;
  }
  throw_internal("a constant or symbol has no operands to rebuild it from");
}

std::vector<Term> linear_terms(Expr e) {
  std::vector<Term> terms;
  for (const auto& [monomial, coefficient] : as_sum(e)) terms.push_back({coefficient, monomial});
  return terms;
}

bool split_linear(Expr e, Expr symbol, Expr* coefficient, Expr* rest) {
  *coefficient = Expr(0);
  *rest = Expr(0);
  for (const Term& term : linear_terms(e)) {
    if (!term.monomial.depends_on(symbol)) {
      *rest = *rest + scaled(term.coefficient, term.monomial);
      continue;
    }
    const auto other = divide_monomial(term.monomial, symbol);
    if (!other || other->depends_on(symbol)) return false;
    *coefficient = *coefficient + scaled(term.coefficient, *other);
  }
  return true;
}

int64_t evaluate(Expr e, const std::function<int64_t(std::string_view)>& value_of) {
  switch (e.kind()) {
    case Kind::Constant:
      return e.constant();
    case Kind::Symbol:
      return value_of(e.name());
    case Kind::Add:
    case Kind::Mul:
    case Kind::FloorDiv:
    case Kind::Mod:
    case Kind::Min:
    case Kind::Max:
      break;
  }
  int64_t value = evaluate(e.operands()[0], value_of);
  for (Expr operand : e.operands().subspan(1)) {
    const int64_t other = evaluate(operand, value_of);
    switch (e.kind()) {
      case Kind::Add:
        value = checked_add(value, other);
        break;
      case Kind::Mul:
        value = checked_mul(value, other);
        break;
      case Kind::FloorDiv:
        value = floor_quotient(value, other);
        break;
      case Kind::Mod:
        value = floor_remainder(value, other);
        break;
      case Kind::Min:
        value = std::min(value, other);
        break;
      case Kind::Max:
        value = std::max(value, other);
        break;
      case Kind::Constant:
      case Kind::Symbol:
        break;
    }
  }
  return value;
}

}  // namespace cxxinductor::sym

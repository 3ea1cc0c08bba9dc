// Symbolic integers: sizes, strides, indices, launch sizes and guards are sym::Expr.
//
// An Expr is one pointer to an immutable, interned node: equality and hash are O(1), copies are free, and it may be
// shared between threads. Construction keeps a light normal form (constants folded, sums and products flattened, like
// terms collected, operands in a structural order that is the same in every process). What needs ranges is in
// simplify.h; polynomial algebra (GiNaC, behind one lock) in algebra.h.
//
// Arithmetic is that of Python's int on int64: floor division and modulo round towards minus infinity, and overflow of
// a folded constant throws Unsupported.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cxxinductor::sym {

enum class Kind : uint8_t { Constant, Symbol, Add, Mul, FloorDiv, Mod, Min, Max };

struct Node;

class Expr {
 public:
  Expr();                  // the constant 0
  Expr(int64_t constant);  // NOLINT: integers are expressions
  Expr(int constant) : Expr(static_cast<int64_t>(constant)) {}
  // [A-Za-z_][A-Za-z0-9_.]*; equal names are the same symbol.
  static Expr symbol(std::string_view name);

  Kind kind() const;
  bool is_constant() const { return kind() == Kind::Constant; }
  bool is_constant(int64_t value) const { return is_constant() && constant() == value; }
  bool is_symbol() const { return kind() == Kind::Symbol; }
  int64_t constant() const;                       // requires Kind::Constant
  std::string_view name() const;                  // requires Kind::Symbol
  std::span<const Expr> operands() const;         // Add, Mul: two or more; FloorDiv, Mod: two; Min, Max: two or more
  const std::vector<Expr>& free_symbols() const;  // in structural order, cached in the node
  bool depends_on(Expr symbol) const;

  friend bool operator==(Expr a, Expr b) { return a.node_ == b.node_; }
  size_t hash() const { return std::hash<const void*>()(node_); }

 private:
  friend struct Node;
  friend class Interner;
  explicit Expr(const Node* node) : node_(node) {}
  const Node* node_;
};

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator*(Expr a, Expr b);
Expr floor_div(Expr a, Expr b);  // a constant zero divisor throws UserError
Expr mod(Expr a, Expr b);        // Python's: the sign of b
Expr ceil_div(Expr a, Expr b);   // -floor_div(-a, b)
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr sum(std::span<const Expr> terms);
Expr product(std::span<const Expr> factors);

// A total order that depends only on structure and names, never on addresses.
int compare(Expr a, Expr b);
struct Less {
  bool operator()(Expr a, Expr b) const { return compare(a, b) < 0; }
};

using Substitution = std::unordered_map<std::string, Expr>;  // symbol name -> replacement
Expr substitute(Expr e, const Substitution& replacements);

// e as a sum with constant coefficients: pairs of a coefficient and a monomial without constant factor. The constant term
// has monomial 1. Used to read strides and to test mixed-radix coordinates.
struct Term {
  int64_t coefficient;
  Expr monomial;
};
std::vector<Term> linear_terms(Expr e);
// e == coefficient * symbol + rest with neither depending on symbol; false when e is not linear in it.
bool split_linear(Expr e, Expr symbol, Expr* coefficient, Expr* rest);

// Infix text that parse() reads back: "128*s0 + 3", "floordiv(s0, 2)", "mod(i, 4)", "min(a, b)".
std::string to_string(Expr e);
Expr parse(std::string_view text);  // UserError on bad text
// sympy.srepr text, the integer functions of torch.utils._sympy included. Unsupported names the function it lacks.
Expr parse_srepr(std::string_view text);

// Value of e under the bindings; UserError names a missing symbol or a zero divisor.
int64_t evaluate(Expr e, const std::function<int64_t(std::string_view)>& value_of);

}  // namespace cxxinductor::sym

template <>
struct std::hash<cxxinductor::sym::Expr> {
  size_t operator()(cxxinductor::sym::Expr e) const { return e.hash(); }
};

#include "torch_bridge/record/size_node.h"

#include <c10/core/SymNodeImpl.h>

#include <utility>

#include "support/error.h"

namespace cxxinductor::torch_bridge {
namespace {

class SizeNode final : public c10::SymNodeImpl {
 public:
  enum class Type : uint8_t { Int, Bool, Float };

  SizeNode(sym::Expr e, Type type, SharedSizes sizes) : expression_(e), type_(type), sizes_(std::move(sizes)) {}
  SizeNode(double real, SharedSizes sizes) : type_(Type::Float), real_(real), sizes_(std::move(sizes)) {}

  sym::Expr expression() const { return expression_; }

  bool is_int() override { return type_ == Type::Int; }
  bool is_bool() override { return type_ == Type::Bool; }
  bool is_float() override { return type_ == Type::Float; }
  bool has_hint() override { return true; }
  bool is_symbolic() override { return type_ != Type::Float && !expression_.is_constant(); }
  bool is_constant() override { return !is_symbolic(); }
  std::optional<int64_t> constant_int() override { return maybe_as_int(); }
  std::optional<bool> constant_bool() override {
    return type_ == Type::Bool && expression_.is_constant() ? std::optional(expression_.constant() != 0) : std::nullopt;
  }
  std::optional<int64_t> maybe_as_int() override {
    return type_ == Type::Int && expression_.is_constant() ? std::optional(expression_.constant()) : std::nullopt;
  }
  std::string str() override { return type_ == Type::Float ? fmt::format("{}", real_) : sym::to_string(expression_); }

  c10::SymNode add(const c10::SymNode& other) override { return integer(expression_ + of(other)); }
  c10::SymNode sub(const c10::SymNode& other) override { return integer(expression_ - of(other)); }
  c10::SymNode mul(const c10::SymNode& other) override { return integer(expression_ * of(other)); }
  c10::SymNode floordiv(const c10::SymNode& other) override { return integer(sym::floor_div(expression_, of(other))); }
  c10::SymNode int_floordiv(const c10::SymNode& other) override { return floordiv(other); }
  c10::SymNode mod(const c10::SymNode& other) override { return integer(sym::mod(expression_, of(other))); }
  c10::SymNode neg() override { return integer(-expression_); }
  c10::SymNode sym_min(const c10::SymNode& other) override { return integer(sym::min(expression_, of(other))); }
  c10::SymNode sym_max(const c10::SymNode& other) override { return integer(sym::max(expression_, of(other))); }
  c10::SymNode ceil() override { return integer(expression_); }
  c10::SymNode floor() override { return integer(expression_); }

  c10::SymNode eq(const c10::SymNode& other) override { return condition(equality(of(other))); }
  c10::SymNode ne(const c10::SymNode& other) override { return condition(sym::Expr(1) - equality(of(other))); }
  c10::SymNode lt(const c10::SymNode& other) override { return condition(less(expression_, of(other))); }
  c10::SymNode gt(const c10::SymNode& other) override { return condition(less(of(other), expression_)); }
  c10::SymNode le(const c10::SymNode& other) override { return condition(sym::Expr(1) - less(of(other), expression_)); }
  c10::SymNode ge(const c10::SymNode& other) override { return condition(sym::Expr(1) - less(expression_, of(other))); }

  c10::SymNode sym_and(const c10::SymNode& other) override { return condition(sym::min(expression_, of(other))); }
  c10::SymNode sym_or(const c10::SymNode& other) override { return condition(sym::max(expression_, of(other))); }
  c10::SymNode sym_not() override { return condition(sym::Expr(1) - expression_); }

  // There are no symbolic floats: what is computed from one is right for this size alone.
  c10::SymNode sym_float() override { return real(static_cast<double>(sizes_->specialize(expression_))); }
  double guard_float(const char* /*file*/, int64_t /*line*/) override {
    return type_ == Type::Float ? real_ : static_cast<double>(sizes_->specialize(expression_));
  }

  int64_t guard_int(const char* /*file*/, int64_t /*line*/) override { return sizes_->specialize(expression_); }
  int64_t int_() override { return sizes_->specialize(expression_); }
  bool guard_bool(const char* /*file*/, int64_t /*line*/) override { return sizes_->is_true(expression_); }
  bool bool_() override { return sizes_->is_true(expression_); }
  bool guard_size_oblivious(const char* file, int64_t line) override { return guard_bool(file, line); }
  bool expect_true(const char* file, int64_t line) override { return guard_bool(file, line); }
  bool guard_or_false(const char* /*file*/, int64_t /*line*/) override { return sizes_->prove(expression_).value_or(false); }
  bool guard_or_true(const char* /*file*/, int64_t /*line*/) override { return sizes_->prove(expression_).value_or(true); }
  bool statically_known_true(const char* file, int64_t line) override { return guard_or_false(file, line); }

  c10::SymNode clone() override { return c10::make_intrusive<SizeNode>(*this); }
  c10::SymNode wrap_int(int64_t value) override { return integer(value); }
  c10::SymNode wrap_bool(bool value) override { return condition(value ? 1 : 0); }
  c10::SymNode wrap_float(double value) override { return real(value); }

  SizeNode(const SizeNode& other) : expression_(other.expression_), type_(other.type_), real_(other.real_), sizes_(other.sizes_) {}

 private:
  static sym::Expr of(const c10::SymNode& node) {
    if (const auto constant = node->constant_int()) return *constant;
    if (const auto constant = node->constant_bool()) return *constant ? 1 : 0;
    const auto* ours = dynamic_cast<const SizeNode*>(node.get());
    if (ours == nullptr || ours->type_ == Type::Float) throw_unsupported("the symbolic number {}", node->str());
    return ours->expression_;
  }
  c10::SymNode integer(sym::Expr e) const { return c10::make_intrusive<SizeNode>(e, Type::Int, sizes_); }
  c10::SymNode condition(sym::Expr e) const { return c10::make_intrusive<SizeNode>(e, Type::Bool, sizes_); }
  c10::SymNode real(double value) const { return c10::make_intrusive<SizeNode>(value, sizes_); }

  // Decided here where the assumptions decide: conditions are harder to prove than what they compare.
  sym::Expr equality(sym::Expr other) const {
    const sym::Assumptions& known = sizes_->assumptions();
    if (sym::prove_equal(expression_, other, known)) return 1;
    const bool differ = sym::prove_less(expression_, other, known).value_or(false) || sym::prove_less(other, expression_, known).value_or(false);
    return differ ? sym::Expr(0) : model::equal_condition(expression_, other);
  }
  sym::Expr less(sym::Expr a, sym::Expr b) const {
    if (const auto proven = sym::prove_less(a, b, sizes_->assumptions())) return *proven ? 1 : 0;
    return model::less_condition(a, b);
  }

  sym::Expr expression_;
  Type type_;
  double real_ = 0;
  SharedSizes sizes_;
};

}  // namespace

c10::SymInt to_symint(sym::Expr e, const SharedSizes& sizes) {
  if (e.is_constant()) return e.constant();
  return c10::SymInt(c10::SymNode(c10::make_intrusive<SizeNode>(e, SizeNode::Type::Int, sizes)));
}

std::vector<c10::SymInt> to_symints(const std::vector<sym::Expr>& expressions, const SharedSizes& sizes) {
  std::vector<c10::SymInt> out;
  out.reserve(expressions.size());
  for (sym::Expr e : expressions) out.push_back(to_symint(e, sizes));
  return out;
}

sym::Expr to_expr(const c10::SymInt& size) {
  if (const auto constant = size.maybe_as_int()) return *constant;
  const c10::SymNode node = size.toSymNode();
  if (const auto* ours = dynamic_cast<const SizeNode*>(node.get())) return ours->expression();
  throw_unsupported("the symbolic number {}", node->str());
}

}  // namespace cxxinductor::torch_bridge

#include "ir/loops/stmt_traits.h"

#include <functional>
#include <string>

namespace cxxinductor::loops {
namespace {

template <class Kind, class T>
constexpr auto member_of(T Kind::*member) {
  return member;
}
template <class Kind>
constexpr auto member_of(Maybe<Kind> maybe) {
  return maybe.member;
}

// Calls visit(member pointer) with each member of the kind.
template <class Kind, class Visit>
void for_each_member(const Visit& visit) {
  std::apply([&](const auto&... members) { (visit(member_of(members)), ...); }, StmtTraits<Kind>::members);
}

class Hasher {
 public:
  explicit Hasher(size_t seed) : hash_(seed) {}
  size_t hash() const { return hash_; }

  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void add(T value) {
    hash_ = hash_ * 0x9e3779b97f4a7c15ull + static_cast<size_t>(value) + (hash_ >> 29);
  }
  template <class Tag>
  void add(Id<Tag> id) {
    add(id.valid() ? id.index() : ~size_t{0});
  }
  void add(VarSet vars) { add(vars.bits()); }
  void add(sym::Expr e) { add(e.hash()); }
  void add(const std::string& text) { add(std::hash<std::string>()(text)); }
  void add(const Scalar& scalar) {
    add(std::hash<double>()(scalar.real()));
    add(scalar.integer());
  }
  template <class T>
  void add(const std::optional<T>& value) {
    if (value) add(*value);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    for (const T& item : list) add(item);
  }

 private:
  size_t hash_;
};

}  // namespace

bool same_statement(const Stmt& a, const Stmt& b) {
  if (a.dtype != b.dtype || a.kind.index() != b.kind.index()) return false;
  return std::visit(
      [&]<class Kind>(const Kind& kind) {
        const Kind& other = std::get<Kind>(b.kind);
        bool same = true;
        for_each_member<Kind>([&](const auto& member) { same = same && kind.*member == other.*member; });
        return same;
      },
      a.kind);
}

size_t hash_of(const Stmt& stmt) {
  Hasher hasher(stmt.kind.index());
  hasher.add(stmt.dtype);
  std::visit([&]<class Kind>(const Kind& kind) { for_each_member<Kind>([&](const auto& member) { hasher.add(kind.*member); }); }, stmt.kind);
  return hasher.hash();
}

}  // namespace cxxinductor::loops

// One hash of the members of a node or statement, in their order: equal members give equal hashes.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/scalar.h"
#include "support/typed_id.h"
#include "sym/expr.h"

namespace cxxinductor {

class Hasher {
 public:
  explicit Hasher(size_t seed) : hash_(seed) {}
  size_t hash() const { return hash_; }

  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void add(T value) { hash_ = hash_ * 0x9e3779b97f4a7c15ull + static_cast<size_t>(value) + (hash_ >> 31); }
  template <class Tag>
  void add(Id<Tag> id) {
    add(id.valid() ? id.index() : ~size_t{0});
  }
  // A set of variables.
  template <class Set>
  requires requires(const Set& set) { set.bits(); }
  void add(const Set& set) { add(set.bits()); }
  void add(sym::Expr e) { add(e.hash()); }
  void add(const std::string& text) { add(std::hash<std::string>()(text)); }
  void add(const Scalar& scalar) { add(std::hash<double>()(scalar.as_real())); }
  template <class T>
  void add(const std::optional<T>& value) {
    if (value) add(*value);
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& item : list) add(item);
  }

 private:
  size_t hash_;
};

}  // namespace cxxinductor

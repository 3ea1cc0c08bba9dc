// Typed 32-bit indices and vectors indexed by them: a ValueId cannot be passed where a NodeId is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace cxxinductor {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(size_t index) : index_(static_cast<uint32_t>(index)) {}
  constexpr uint32_t index() const { return index_; }
  constexpr bool valid() const { return index_ != std::numeric_limits<uint32_t>::max(); }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  uint32_t index_ = std::numeric_limits<uint32_t>::max();
};

// Items: what holds them, a std::deque where references to items have to outlive push_back.
template <class IdType, class T, class Items = std::vector<T>>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(size_t count, const T& value = T()) : items_(count, value) {}

  IdType push_back(T item) {
    items_.push_back(std::move(item));
    return IdType(items_.size() - 1);
  }
  T& operator[](IdType id) { return items_[id.index()]; }
  const T& operator[](IdType id) const { return items_[id.index()]; }
  bool contains(IdType id) const { return id.index() < items_.size(); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(size_t count, const T& value = T()) { items_.resize(count, value); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  Items items_;
};

}  // namespace cxxinductor

template <class Tag>
struct std::hash<cxxinductor::Id<Tag>> {
  size_t operator()(cxxinductor::Id<Tag> id) const { return std::hash<uint32_t>()(id.index()); }
};

// A value of TorchScript without its tensors and numbers: what lists, tuples and dictionaries they lie in.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace cxxinductor::torch_bridge {

class ValueTree {
 public:
  enum class Kind : uint8_t { Leaf, Argument, Constant, List, Tuple, Dict };

  // What an item that is not a container is: a leaf, which was added to the leaves; an argument of a function, by its number; or the
  // item itself, the same at every call.
  struct Item {
    Kind kind = Kind::Leaf;
    size_t argument = 0;
  };
  using Classify = std::function<Item(const c10::IValue& item)>;
  // Unsupported where one list or dictionary occurs twice: a write to one would show in the other.
  ValueTree(const c10::IValue& value, const Classify& classify);

  // leaves: taken from the front of the span, in their order.
  c10::IValue build(std::span<const c10::IValue>& leaves, std::span<const c10::IValue> arguments) const;
  // Equal for trees that are equal but for the types of empty containers: "([**]{4:mask*})".
  std::string text() const { return text(false); }
  // The same with constants and the types of lists, and the same in every process.
  std::string full_text() const { return text(true); }
  // Whether the named tuples are of the same types; of trees with one full_text.
  bool has_types_of(const ValueTree& other) const;

 private:
  std::string text(bool is_full) const;
  ValueTree(const c10::IValue& value, const Classify& classify, std::vector<const void*>& seen);

  Kind kind_ = Kind::Leaf;
  size_t argument_ = 0;
  c10::IValue constant_;           // Constant; of a container: an empty one of its type
  c10::TupleTypePtr type_;         // of a named tuple
  std::vector<c10::IValue> keys_;  // of a dictionary
  std::vector<ValueTree> items_;
};

bool is_container(const c10::IValue& value);

}  // namespace cxxinductor::torch_bridge

#include "torch_bridge/jit/value_tree.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/dynamic_type.h>
#include <fmt/format.h>

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::torch_bridge {

bool is_container(const c10::IValue& value) { return value.isList() || value.isTuple() || value.isGenericDict(); }

namespace {

// None of tuples without names. The type of one that has none yet is asked for in the form that leaves out the sizes of tensors: a size that is a
// symbol would become a number.
c10::TupleTypePtr named_type(const c10::ivalue::Tuple& tuple) {
  if (tuple.type<c10::DynamicType>()) return nullptr;
  const c10::TupleTypePtr type = tuple.type();
  return type->schema() ? type : nullptr;
}

}  // namespace

ValueTree::ValueTree(const c10::IValue& value, const Classify& classify) {
  std::vector<const void*> seen;
  *this = ValueTree(value, classify, seen);
}

ValueTree::ValueTree(const c10::IValue& value, const Classify& classify, std::vector<const void*>& seen) {
  if (!is_container(value)) {
    const Item item = classify(value);
    kind_ = item.kind;
    argument_ = item.argument;
    if (kind_ == Kind::Constant) constant_ = value;
    return;
  }
  if (!value.isTuple()) {
    if (std::find(seen.begin(), seen.end(), value.internalToPointer()) != seen.end()) throw_unsupported("a list or dictionary that occurs twice in a value");
    seen.push_back(value.internalToPointer());
  }
  if (value.isTuple()) {
    kind_ = Kind::Tuple;
    type_ = named_type(value.toTupleRef());
    for (const c10::IValue& item : value.toTupleRef().elements()) items_.push_back(ValueTree(item, classify, seen));
  } else if (value.isList()) {
    kind_ = Kind::List;
    const c10::List<c10::IValue> list = value.toList();
    constant_ = c10::impl::GenericList(list.elementType());
    for (const c10::IValue& item : list) items_.push_back(ValueTree(item, classify, seen));
  } else {
    kind_ = Kind::Dict;
    const c10::impl::GenericDict dict = value.toGenericDict();
    constant_ = c10::impl::GenericDict(dict.keyType(), dict.valueType());
    for (const auto& entry : dict) {
      if (!entry.key().isString() && !entry.key().isInt() && !entry.key().isBool())
        throw_unsupported("a dictionary with keys of type {}", entry.key().tagKind());
      keys_.push_back(entry.key());
      items_.push_back(ValueTree(entry.value(), classify, seen));
    }
  }
}

c10::IValue ValueTree::build(std::span<const c10::IValue>& leaves, std::span<const c10::IValue> arguments) const {
  switch (kind_) {
    case Kind::Leaf: {
      if (leaves.empty()) throw_internal("a value has fewer leaves than its tree");
      const c10::IValue leaf = leaves.front();
      leaves = leaves.subspan(1);
      return leaf;
    }
    case Kind::Argument:
      return arguments[argument_];
    case Kind::Constant:
      return constant_;
    case Kind::List: {
      c10::impl::GenericList list(constant_.toList().elementType());
      for (const ValueTree& item : items_) list.push_back(item.build(leaves, arguments));
      return list;
    }
    case Kind::Tuple: {
      std::vector<c10::IValue> items;
      for (const ValueTree& item : items_) items.push_back(item.build(leaves, arguments));
      return type_ ? c10::ivalue::Tuple::createNamed(std::move(items), type_) : c10::ivalue::Tuple::create(std::move(items));
    }
    case Kind::Dict: {
      const c10::impl::GenericDict empty = constant_.toGenericDict();
      c10::impl::GenericDict dict(empty.keyType(), empty.valueType());
      for (size_t i = 0; i < items_.size(); ++i) dict.insert(keys_[i], items_[i].build(leaves, arguments));
      return dict;
    }
  }
  throw_internal("a value of no kind");
}

bool ValueTree::has_types_of(const ValueTree& other) const {
  return static_cast<bool>(type_) == static_cast<bool>(other.type_) && (!type_ || *type_ == *other.type_) &&
         std::ranges::equal(items_, other.items_, [](const ValueTree& a, const ValueTree& b) { return a.has_types_of(b); });
}

std::string ValueTree::text(bool is_full) const {
  const auto sized = [](const std::string& part) { return fmt::format("{}:{}", part.size(), part); };
  const auto all = [&](char open, char close) {
    std::string text(1, open);
    if (is_full && kind_ != Kind::Tuple) text += sized(constant_.type()->str());
    if (is_full && type_) text += sized(type_->name()->name());  // its qualifiers are of this process
    for (size_t i = 0; i < items_.size(); ++i) {
      if (kind_ == Kind::Dict) {
        const std::string key = keys_[i].isString() ? keys_[i].toStringRef() : c10::str(keys_[i]);
        text += fmt::format("{}:{}{}", key.size(), key, keys_[i].isString() ? 's' : 'n');
      }
      text += items_[i].text(is_full);
    }
    return text + close;
  };
  switch (kind_) {
    case Kind::Leaf:
      return "*";
    case Kind::Argument:
      return fmt::format("#{}", argument_);
    case Kind::Constant:
      return is_full ? "=" + sized(fmt::format("{} {}", constant_.tagKind(), c10::str(constant_))) : "=";
    case Kind::List:
      return all('[', ']');
    case Kind::Tuple:
      return all('(', ')');
    case Kind::Dict:
      return all('{', '}');
  }
  throw_internal("a value of no kind");
}

}  // namespace cxxinductor::torch_bridge

// What is to be known of each kind of node, once: NodeTraits<Kind> has the kind's keyword, its attributes with their text form, and what its results
// need. Printer, parser, equality, hashes and the visits of expressions follow from it, for every kind; a kind without a row, or a row without one of
// its kind's members, does not compile. Result types: infer.cpp; meaning: interp/graph_interp.cpp; lowering: lowering/lower.cpp, which do not compile
// without the kind either.
//
// Elementwise nodes print as their op and externs as calls (ir/call_text.h); what differs by op stands in ir/ops.def.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ir/graph/graph.h"
#include "support/member_count.h"

namespace cxxinductor::graph {

// ---- Attributes: how a member is written between "<" and ">" -------------------------------------------------------------------------

// `name=value`, which stands in every text, in this order and before all others.
template <class Kind, class T>
struct Required {
  std::string_view name;
  T Kind::*member;
};
// `name=[..]`, left out where the list is empty.
template <class Kind>
struct OptionalList {
  std::string_view name;
  std::vector<int> Kind::*member;
};
// `name=[..]` with one expression for each item of another list, left out where all are `usual`.
template <class Kind>
struct ListPerItem {
  std::string_view name;
  std::vector<sym::Expr> Kind::*member;
  std::vector<int> Kind::*items;
  int64_t usual;
};
// An enumerator by its own name; one that is `usual` is left out. `name` says what it is, for messages.
template <class Kind, class T>
struct Enumerator {
  std::string_view name;
  T Kind::*member;
  std::optional<T> usual = std::nullopt;
};
// `name`, where the member has the value that is not usual.
template <class Kind>
struct Flag {
  std::string_view name;
  bool Kind::*member;
  bool value = true;
};

// Whether every text has the attribute: those come first.
template <class Attribute>
constexpr bool always_written(const Attribute&) {
  return false;
}
template <class Kind, class T>
constexpr bool always_written(const Required<Kind, T>&) {
  return true;
}
template <class Kind, class T>
constexpr bool always_written(const Enumerator<Kind, T>& attribute) {
  return !attribute.usual;
}

// ---- Kinds ---------------------------------------------------------------------------------------------------------------------------

enum class Declares : uint8_t { Nothing, Sizes, DtypeAndSizes };  // what infer_results takes from the declaration

template <class Kind>
struct NodeTraits;

template <>
struct NodeTraits<Elementwise> {
  static constexpr std::string_view keyword = "";  // that of its op
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Nothing;  // but a cast's dtype
  static constexpr std::tuple attributes{Enumerator{"a scalar op", &Elementwise::op}};
};
template <>
struct NodeTraits<Reduce> {
  static constexpr std::string_view keyword = "reduce";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Nothing;
  static constexpr std::tuple attributes{Enumerator{"a reduction", &Reduce::reduction}, OptionalList{"dims", &Reduce::dims}, Flag{"keepdim", &Reduce::keepdim}};
};
template <>
struct NodeTraits<Full> {
  static constexpr std::string_view keyword = "full";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::DtypeAndSizes;
  static constexpr std::tuple<> attributes{};
};
template <>
struct NodeTraits<Iota> {
  static constexpr std::string_view keyword = "iota";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::DtypeAndSizes;
  static constexpr std::tuple attributes{Required{"start", &Iota::start}, Required{"step", &Iota::step}};
};
template <>
struct NodeTraits<Permute> {
  static constexpr std::string_view keyword = "permute";
  static constexpr bool is_view = true;
  static constexpr Declares declares = Declares::Nothing;
  static constexpr std::tuple attributes{Required{"dims", &Permute::dims}};
};
template <>
struct NodeTraits<Reshape> {
  static constexpr std::string_view keyword = "reshape";
  static constexpr bool is_view = true;
  static constexpr Declares declares = Declares::Sizes;
  static constexpr std::tuple<> attributes{};
};
template <>
struct NodeTraits<Expand> {
  static constexpr std::string_view keyword = "expand";
  static constexpr bool is_view = true;
  static constexpr Declares declares = Declares::Sizes;
  static constexpr std::tuple<> attributes{};
};
template <>
struct NodeTraits<Slice> {
  static constexpr std::string_view keyword = "slice";
  static constexpr bool is_view = true;
  static constexpr Declares declares = Declares::Sizes;
  static constexpr std::tuple attributes{Required{"dim", &Slice::dim}, Required{"start", &Slice::start}, Required{"step", &Slice::step}};
};
template <>
struct NodeTraits<Flip> {
  static constexpr std::string_view keyword = "flip";
  static constexpr bool is_view = true;
  static constexpr Declares declares = Declares::Nothing;
  static constexpr std::tuple attributes{Required{"dims", &Flip::dims}};
};
template <>
struct NodeTraits<Pad> {
  static constexpr std::string_view keyword = "pad";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Sizes;
  static constexpr std::tuple attributes{Required{"low", &Pad::low}, Required{"fill", &Pad::fill}};
};
template <>
struct NodeTraits<Cat> {
  static constexpr std::string_view keyword = "cat";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Nothing;
  static constexpr std::tuple attributes{Required{"dim", &Cat::dim}};
};
template <>
struct NodeTraits<Gather> {
  static constexpr std::string_view keyword = "gather";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Sizes;
  static constexpr std::tuple attributes{Required{"source", &Gather::source}, Required{"index_dims", &Gather::index_dims},
                                         Flag{"no_wrap", &Gather::wrap, false}, Flag{"no_check", &Gather::check, false}};
};
template <>
struct NodeTraits<Scatter> {
  static constexpr std::string_view keyword = "scatter";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Nothing;
  static constexpr std::tuple attributes{Required{"target", &Scatter::target},
                                         OptionalList{"index_dims", &Scatter::index_dims},
                                         ListPerItem{"start", &Scatter::start, &Scatter::target, 0},
                                         ListPerItem{"step", &Scatter::step, &Scatter::target, 1},
                                         Enumerator{"a way to combine", &Scatter::combine, std::optional(Combine::Overwrite)},
                                         Flag{"no_wrap", &Scatter::wrap, false},
                                         Flag{"no_check", &Scatter::check, false},
                                         Flag{"unique_indices", &Scatter::unique_indices},
                                         Flag{"inplace", &Scatter::inplace}};
};
template <>
struct NodeTraits<Extern> {
  static constexpr std::string_view keyword = "extern";
  static constexpr bool is_view = false;
  static constexpr Declares declares = Declares::Nothing;  // results are stated, never inferred
  static constexpr std::tuple<> attributes{};              // those of ir/call_text.h
};

template <class Kind>
constexpr size_t attribute_count = std::tuple_size_v<std::remove_const_t<decltype(NodeTraits<Kind>::attributes)>>;

// Calls visit(attribute) with each row of the kind, in order.
template <class Kind, class Visit>
constexpr void for_each_attribute(const Visit& visit) {
  std::apply([&](const auto&... attributes) { (visit(attributes), ...); }, NodeTraits<Kind>::attributes);
}

namespace detail {

template <class Kinds>
struct AllKinds;
template <class... Kinds>
struct AllKinds<std::variant<Kinds...>> {
  static constexpr bool have_all_members = ((std::is_same_v<Kinds, Extern> || attribute_count<Kinds> == member_count<Kinds>)&&...);
  template <class Visit>
  static void visit(const Visit& visit) {
    (visit.template operator()<Kinds>(), ...);
  }
};

}  // namespace detail

static_assert(detail::AllKinds<NodeKind>::have_all_members, "a member of a kind is not among its attributes");

// Calls visit.operator()<Kind>() for each kind.
template <class Visit>
void for_each_kind(const Visit& visit) {
  detail::AllKinds<NodeKind>::visit(visit);
}

// Equal kinds with equal attributes. Externs are equal to nothing: they may allocate, count or draw random numbers.
bool same_kind(const NodeKind& a, const NodeKind& b);
size_t hash_of(const NodeKind& kind);  // equal for the same kinds
// The expressions among the attributes, or an extern's arguments, in order.
void for_each_expression(const NodeKind& kind, const std::function<void(sym::Expr)>& visit);

}  // namespace cxxinductor::graph

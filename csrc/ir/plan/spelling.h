// Keywords of the plan's text form, one table for the printer and the parser.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Shapes of mappings by their keywords, with the fields' defaults.
template <class... Shapes>
constexpr auto keywords_of(const std::variant<Shapes...>*) {
  return std::array{std::pair{Shapes::keyword, Shape(Shapes())}...};
}
inline constexpr auto shape_keywords = keywords_of(static_cast<const Shape*>(nullptr));

inline constexpr std::array segment_keywords = {std::pair{std::string_view("per_row"), Segment::Kind::PerRow},
                                                std::pair{std::string_view("row_loop"), Segment::Kind::RowLoop},
                                                std::pair{std::string_view("epilogue"), Segment::Kind::Epilogue}};

inline constexpr std::array access_keywords = {
    std::pair{std::string_view("vector"), AccessKind::Vector}, std::pair{std::string_view("broadcast"), AccessKind::Broadcast},
    std::pair{std::string_view("strided"), AccessKind::Strided}, std::pair{std::string_view("staged"), AccessKind::Staged}};

inline constexpr std::array memory_space_keywords = {
    std::pair{std::string_view("local"), MemorySpace::Local}, std::pair{std::string_view("row"), MemorySpace::Row},
    std::pair{std::string_view("persistent"), MemorySpace::Persistent}, std::pair{std::string_view("shared"), MemorySpace::Shared}};

inline constexpr std::array buffer_keywords = {
    std::pair{std::string_view("input"), Buffer::Kind::Input}, std::pair{std::string_view("arena"), Buffer::Kind::Arena},
    std::pair{std::string_view("standalone"), Buffer::Kind::Standalone}, std::pair{std::string_view("extern_owned"), Buffer::Kind::ExternOwned},
    std::pair{std::string_view("slice"), Buffer::Kind::Slice}};

template <class Table, class Value>
std::string_view keyword_of(const Table& table, Value value) {
  for (const auto& [word, known] : table)
    if (known == value) return word;
  return "?";
}

}  // namespace cxxinductor::plan

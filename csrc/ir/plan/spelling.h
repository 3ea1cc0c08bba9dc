// Keywords of the plan's text form, one table for the printer and the parser.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

inline constexpr std::array mapping_keywords = {std::pair{std::string_view("pointwise"), MappingKind::Pointwise},
                                             std::pair{std::string_view("rows"), MappingKind::Rows},
                                             std::pair{std::string_view("columns"), MappingKind::Columns},
                                             std::pair{std::string_view("tiles"), MappingKind::Tiles},
                                             std::pair{std::string_view("matmul"), MappingKind::Matmul}};

// Numbers and flags of a mapping; those that have their default value are not printed.
inline constexpr std::array mapping_integers = {
    std::pair{std::string_view("vector_width"), &Mapping::vector_width},
    std::pair{std::string_view("unroll"), &Mapping::unroll},
    std::pair{std::string_view("block_threads"), &Mapping::block_threads},
    std::pair{std::string_view("threads_per_row"), &Mapping::threads_per_row},
    std::pair{std::string_view("rows_per_block"), &Mapping::rows_per_block},
    std::pair{std::string_view("items_per_thread"), &Mapping::items_per_thread},
    std::pair{std::string_view("columns_per_block"), &Mapping::columns_per_block},
    std::pair{std::string_view("tile"), &Mapping::tile},
    std::pair{std::string_view("tile_m"), &Mapping::tile_m},
    std::pair{std::string_view("tile_n"), &Mapping::tile_n},
    std::pair{std::string_view("tile_k"), &Mapping::tile_k},
    std::pair{std::string_view("warps_m"), &Mapping::warps_m},
    std::pair{std::string_view("warps_n"), &Mapping::warps_n},
    std::pair{std::string_view("stages"), &Mapping::stages},
    std::pair{std::string_view("group_m"), &Mapping::group_m}};
inline constexpr std::array mapping_counts = {std::pair{std::string_view("chunk"), &Mapping::chunk},
                                              std::pair{std::string_view("grain"), &Mapping::grain}};
inline constexpr std::array mapping_flags = {std::pair{std::string_view("vector_tail"), &Mapping::vector_tail},
                                             std::pair{std::string_view("persistent"), &Mapping::persistent},
                                             std::pair{std::string_view("sequential"), &Mapping::sequential},
                                             std::pair{std::string_view("left_along_k"), &Mapping::left_along_k},
                                             std::pair{std::string_view("right_along_k"), &Mapping::right_along_k},
                                             std::pair{std::string_view("warpgroups"), &Mapping::warpgroups}};

inline constexpr std::array segment_keywords = {std::pair{std::string_view("per_row"), Segment::Kind::PerRow},
                                             std::pair{std::string_view("row_loop"), Segment::Kind::RowLoop},
                                             std::pair{std::string_view("epilogue"), Segment::Kind::Epilogue}};

inline constexpr std::array access_keywords = {std::pair{std::string_view("vector"), AccessKind::Vector},
                                            std::pair{std::string_view("broadcast"), AccessKind::Broadcast},
                                            std::pair{std::string_view("strided"), AccessKind::Strided},
                                            std::pair{std::string_view("staged"), AccessKind::Staged}};

inline constexpr std::array memory_space_keywords = {std::pair{std::string_view("local"), MemorySpace::Local},
                                          std::pair{std::string_view("row"), MemorySpace::Row},
                                          std::pair{std::string_view("persistent"), MemorySpace::Persistent},
                                          std::pair{std::string_view("shared"), MemorySpace::Shared}};

inline constexpr std::array buffer_keywords = {std::pair{std::string_view("input"), Buffer::Kind::Input},
                                            std::pair{std::string_view("arena"), Buffer::Kind::Arena},
                                            std::pair{std::string_view("standalone"), Buffer::Kind::Standalone},
                                            std::pair{std::string_view("extern_owned"), Buffer::Kind::ExternOwned},
                                            std::pair{std::string_view("slice"), Buffer::Kind::Slice}};

template <class Table, class Value>
std::string_view keyword_of(const Table& table, Value value) {
  for (const auto& [word, known] : table)
    if (known == value) return word;
  return "?";
}

}  // namespace cxxinductor::plan

// What a shape of mapping.h states of itself. A shape is an aggregate of numbers with
//
//   keyword, simt, traits, fields     its members in the order of the text form; text, parse, range checks and hashes follow
//   units(mapping, region)            Launch::grid_x: blocks of threads (simt), or units that threads of the host divide
//   threads(vector_width)             of a block
//   has_dead_rows(kernel)             where simt: whether a block may have threads for rows past the end, which meet barriers and store nothing
//
// and, where they are not what mapping.h gives for shapes without them, unrolled_groups(), groups_of_thread(vector_width),
// updates_of_state(mapping, region), dynamic_shared_bytes(kernel) and verify(kernel, report). Whoever asks a Mapping asks its shape: nothing else
// lists the shapes but the variant in mapping.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>

#include "ir/loops/loops.h"

namespace cxxinductor::plan {

using loops::VarId;
struct Kernel;
struct Mapping;

// One field of a shape: an integer, a flag (false unless the text has it) or a variable.
template <class Shape, class Value>
struct Field {
  std::string_view keyword;
  Value Shape::*member;
  // Of integers.
  int low = 1, high = 1 << 30;
  bool power_of_two = false;
};

inline constexpr int most_block_threads = 1024;  // of any GPU

// What a group's neighbours are, and so which variable is the vector variable.
enum class Arrangement : uint8_t { Points, Rows, Columns, Tiles, Product };

struct ShapeTraits {
  Arrangement arrangement;
  bool exchanges = false;  // threads load elements for one another, so a store may not take the memory of a load
  bool any_size = true;    // kernels that differ in sizes alone may be one kernel, and sizes may have kernels of their own
  bool grouped = true;     // its launches may be part of a grouped launch
};

// invariant: "P4" and so on, as verify.cpp lists them.
using Report = std::function<void(std::string_view invariant, std::string message)>;

}  // namespace cxxinductor::plan

// Places of a Tiles kernel's elements in shared memory. A tile has `tile` rows along tile_var, each of tile / width groups of
// `width` elements along the last variable of space. Threads write a tile down its rows and read it along them, so rows are
// permuted and padded: consecutive threads meet in a bank neither way, or two at most.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cxxinductor::plan {

// Shared memory that every GPU grants a block without asking.
constexpr int64_t static_shared_bytes = 48 * 1024;

struct TileLayout {
  int tile = 32, width = 1, element_bytes = 4;

  int groups() const { return tile / width; }
  // Row of the array that holds row `r` of the tile: threads that hold squares of width x width elements write every width-th.
  int row(int r) const { return r % width * groups() + r / width; }
  // Groups from one row of the array to the next; an odd number of banks.
  int pitch() const { return groups() + std::max(1, 4 / (width * element_bytes)); }
  int64_t bytes() const { return int64_t{tile} * pitch() * width * element_bytes; }
};

}  // namespace cxxinductor::plan

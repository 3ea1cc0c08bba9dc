// Bank conflicts of a Tiles kernel's accesses to shared memory, counted from the addresses of its layout.
#include <array>
#include <set>

#include "ir/plan/tile_layout.h"
#include "unit/catch.h"

using cxxinductor::plan::TileLayout;

namespace {

constexpr int kBanks = 32, kWarp = 32;

// Most words of one bank that a wavefront of lanes asks for: the times that shared memory takes for it. Lanes of 8 bytes go in
// halves of a warp.
template <class Address>
int turns(const TileLayout& layout, Address address) {
  const int bytes = layout.width * layout.element_bytes, lanes = std::min(kWarp, kBanks * 4 / bytes);
  int most = 0;
  for (int first = 0; first < 2 * kWarp; first += lanes) {
    std::array<std::set<int>, kBanks> words;
    for (int thread = first; thread < first + lanes; ++thread)
      for (int byte = 0; byte < bytes; byte += 4) {
        const int word = (address(thread) * bytes + byte) / 4;
        words[static_cast<size_t>(word % kBanks)].insert(word);
      }
    for (const std::set<int>& bank : words) most = std::max(most, static_cast<int>(bank.size()));
  }
  return most;
}

}  // namespace

TEST_CASE("tiles: threads of a wavefront meet in no bank") {
  for (int tile : {32, 64})
    for (int bytes : {1, 2, 4, 8})
      for (int width = 1; width <= 4 && width * bytes <= 8; width *= 2) {
        const TileLayout layout{tile, width, bytes};
        const int groups = layout.groups();
        INFO("tile " << tile << ", groups of " << width << " of " << bytes << " bytes");
        // Groups of fewer threads than a wavefront has lanes: several columns of the tile at a time, the last meets the first.
        const bool several = groups < std::min(kWarp, kBanks * 4 / (width * bytes)) && width * bytes >= 4;
        for (int r = 0; r < width; ++r) {
          const auto write = [&](int t) { return layout.row(t % groups * width + r) * layout.pitch() + t / groups; };
          CHECK(turns(layout, write) <= (several ? 2 : 1));
        }
        const auto read = [&](int t) { return layout.row(t / groups) * layout.pitch() + t % groups; };
        CHECK(turns(layout, read) == 1);
      }
}

TEST_CASE("tiles: every element of a tile has its own place") {
  for (int tile : {32, 64})
    for (int width : {1, 2, 4}) {
      const TileLayout layout{tile, width, 2};
      std::set<int> rows;
      for (int r = 0; r < tile; ++r) rows.insert(layout.row(r));
      CHECK(static_cast<int>(rows.size()) == tile);
      CHECK(*rows.rbegin() == tile - 1);
      CHECK(layout.pitch() > layout.groups());
      CHECK(layout.bytes() == int64_t{tile} * layout.pitch() * width * 2);
    }
}

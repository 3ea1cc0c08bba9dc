// cxxi_matmul for warp groups, which read their factors from shared memory as they multiply. Follows matmul.cuh and warpgroup.cuh in a
// unit.
//
// A group of four warps computes TileM / Groups rows of a tile, 64 at a time. A block computes one tile after another: the first steps of
// the next one are fetched while the epilogue of this one runs, for which the memory that it passes through lies behind the stages.
template <class T, int TileM, int TileN, int TileK, int Groups, int Stages, bool LeftAlongK, bool RightAlongK>
struct cxxi_warpgroup_matmul {
  static constexpr int threads = 128 * Groups;
  static constexpr int tile_m = TileM, tile_n = TileN, tile_k = TileK;
  static constexpr int fragments_m = TileM / Groups / 64, fragments_n = TileN / 8, steps = TileK / 16;
  static_assert(Stages >= 3, "one stage is multiplied, one has been, the others are under way");
  using Left = cxxi_factor_tile<T, LeftAlongK ? TileM : TileK, LeftAlongK ? TileK : TileM, threads>;
  using Right = cxxi_factor_tile<T, RightAlongK ? TileN : TileK, RightAlongK ? TileK : TileN, threads>;
  static constexpr int stage_elements = Left::elements + Right::elements, stages_elements = Stages * stage_elements;

  float sums[fragments_m][fragments_n][4];
  T* const stages;
  int reading = 0, writing = Stages - 2;  // which stage is multiplied next, and which is filled

  // The part of a factor's tile from `across` (of m or n) on, for k from 16 * step on.
  template <class Tile, bool AlongK>
  CXXI_FN static cxxi_tile_descriptor part(const T* tile, int across, int step) {
    constexpr int row = Tile::block * int(sizeof(T));
    if constexpr (AlongK) {
      return cxxi_describe_tile(tile + across * Tile::block + step * 16, 0, 8 * row, row);
    } else {
      return cxxi_describe_tile(tile + across / Tile::block * (TileK * Tile::block) + step * 16 * Tile::block, TileK * row, 8 * row, row);
    }
  }

  CXXI_FN void multiply(const T* stage) {
    const int group_m = int(threadIdx.x) / 128 * (TileM / Groups);
    cxxi_begin_products();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int i = 0; i < fragments_m; ++i) {
        cxxi_multiply_add_group<LeftAlongK, RightAlongK>(sums[i], part<Left, LeftAlongK>(stage, group_m + i * 64, step),
                                                         part<Right, RightAlongK>(stage + Left::elements, 0, step), T());
      }
    }
    cxxi_commit_products();
  }

  template <class LeftSource, class RightSource, class Index>
  CXXI_FN static void fill(T* stage, const LeftSource& left, const RightSource& right, Index m, Index n, Index k) {
    Left::fill(stage, left, LeftAlongK ? m : k, LeftAlongK ? k : m);
    Right::fill(stage + Left::elements, right, RightAlongK ? n : k, RightAlongK ? k : n);
  }

  // fill_next(stage): the next step of the block's tiles, one after the other, into a stage; nothing behind the last one.
  template <class FillNext>
  CXXI_FN cxxi_warpgroup_matmul(T* shared, FillNext& fill_next) : stages(shared) {
#pragma unroll
    for (int s = 0; s < Stages - 2; ++s) {
      fill_next(stages + s * stage_elements);
      cxxi_commit_copies();
    }
  }

  // Sums over k < depth for the next tile. All threads of the block. The products of a stage are under way while the next stage is waited
  // for; a stage is filled again when all groups have multiplied the one behind it. (To fill it one step earlier takes another barrier in
  // each step: an H200 loses a tenth by it.)
  template <class Index, class FillNext>
  CXXI_FN void run(Index depth, FillNext& fill_next) {
    cxxi_clear_sums(sums);
    for (Index k = 0; k < depth; k += TileK) {
      cxxi_wait_copies<Stages - 3>();
      cxxi_publish_stage();
      cxxi_sync_block();
      multiply(stages + reading * stage_elements);
      fill_next(stages + writing * stage_elements);
      cxxi_commit_copies();
      reading = reading + 1 == Stages ? 0 : reading + 1;
      writing = writing + 1 == Stages ? 0 : writing + 1;
      cxxi_wait_products<1>();
    }
    cxxi_wait_products<0>();
#pragma unroll
    for (int i = 0; i < fragments_m; ++i) {
#pragma unroll
      for (int j = 0; j < fragments_n; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) cxxi_settle(sums[i][j][e]);
      }
    }
  }
};

// How a warp passes its sums on, cast to Kept: in parts of 16 rows and 128 bytes.
template <class Tile, class Kept>
struct cxxi_sum_parts {
  static constexpr int rows = 16, columns = 128 / int(sizeof(Kept)), pitch = columns + 16 / int(sizeof(Kept));
  static constexpr int across = Tile::tile_n / columns, count = Tile::fragments_m * across;

  // In the tile.
  CXXI_FN static int row_of(int part) {
    const int warp = int(threadIdx.x) / 32, group_rows = Tile::fragments_m * 64;
    return warp / 4 * group_rows + part / across * 64 + warp % 4 * 16;
  }
  CXXI_FN static int column_of(int part) { return part % across * columns; }

  // The part's sums, in rows of `pitch` elements in the warp's own shared memory behind the stages, which it returns.
  template <class T>
  CXXI_FN static Kept* keep(const Tile& tile, T* shared, int part) {
    Kept* const kept = reinterpret_cast<Kept*>(shared + Tile::stages_elements) + int(threadIdx.x) / 32 * (rows * pitch);
    cxxi_sync_warp();
#pragma unroll
    for (int p = 0; p < count; ++p) {
      if (p != part) continue;
      float sums[1][columns / 8][4];
#pragma unroll
      for (int j = 0; j < columns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[0][j][e] = tile.sums[p / across][p % across * (columns / 8) + j][e];
      }
      cxxi_keep_sums<pitch, 16>(kept, sums, 0, 0);
    }
    cxxi_sync_warp();
    return kept;
  }
};

// The tiles of a block, every gridDim.x-th of all.
template <class Tile, int Band, class Index, class Unsigned>
struct cxxi_tile_cursor {
  Unsigned tiles_m, tiles_n, tiles, number, problem;
  Index m, n;
  CXXI_FN cxxi_tile_cursor(Index rows, Index columns, Unsigned problems)
      : tiles_m(Unsigned((rows + (Tile::tile_m - 1)) / Tile::tile_m)),
        tiles_n(Unsigned((columns + (Tile::tile_n - 1)) / Tile::tile_n)),
        tiles(problems * tiles_m * tiles_n),
        number(blockIdx.x) {
    locate();
  }
  CXXI_FN bool more() const { return number < tiles; }
  CXXI_FN void next() {
    number += gridDim.x;
    locate();
  }
  CXXI_FN void locate() {
    problem = number / (tiles_m * tiles_n);
    Unsigned tile_m = 0, tile_n = 0;
    cxxi_tile_of_block<Band>(number - problem * (tiles_m * tiles_n), tiles_m, tiles_n, tile_m, tile_n);
    m = Index(tile_m) * Tile::tile_m;
    n = Index(tile_n) * Tile::tile_n;
  }
};

// One block's tile of a product on tensor cores: factors stream through a ring of stages in shared memory, sums stay in
// registers until the end, then pass through shared memory into rows, where an epilogue finds them as groups.
//
// A factor's tile in shared memory has rows of `Inner` consecutive elements in chunks of 8 (16 bytes), in blocks of up to 64 elements
// of each row; chunk c of a block's row r lies at place c ^ swizzle(r), so that the eight rows that a matrix load reads at one c touch
// all banks once. Warp groups read the same places (warpgroup.cuh). `Inner` runs along k (AlongK), or along m or n. Factors come from a source: put(to, outer, inner, count) makes the chunk whose first element
// has these coordinates, zeros from `count` on. Follows tensor_core.cuh in a unit.

// A factor in memory. Wide: chunks are aligned and copied asynchronously.
template <class T, class Index, bool Wide>
struct cxxi_stored_factor {
  const T* base;
  Index stride;        // between rows, in elements
  Index outer, inner;  // how many rows, and elements of a row, there are
  CXXI_FN void put(T* to, Index row, Index column, int count) const {
    const T* from = base + (count > 0 ? row * stride + column : Index(0));
    if constexpr (Wide) {
      cxxi_copy_async(to, from, count * int(sizeof(T)));
    } else {
      cxxi_store_group<8, true>(to, count > 0 ? cxxi_load_part<8, false>(from, count) : cxxi_group<T, 8>());
    }
  }
};
// A factor that is computed: make(outer, inner, count) gives a group of 8, of which the first `count` count.
template <class T, class Index, class Make>
struct cxxi_computed_factor {
  Make make;
  Index outer, inner;
  CXXI_FN void put(T* to, Index row, Index column, int count) const {
    cxxi_group<T, 8> group = {};
    if (count > 0) group = make(row, column, count);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e >= count) group.set(e, T());
    }
    cxxi_store_group<8, true>(to, group);
  }
};
template <class T, class Index, class Make>
CXXI_FN cxxi_computed_factor<T, Index, Make> cxxi_compute_factor(Make make, Index outer, Index inner) {
  return {make, outer, inner};
}

template <class T, int Outer, int Inner, int Threads>
struct cxxi_factor_tile {
  static constexpr int chunks = Inner / 8;
  static constexpr int rows_abreast = Threads / chunks;
  static constexpr int elements = Outer * Inner;
  static constexpr int block = Inner < 64 ? Inner : 64;  // elements of a row that lie together
  static_assert(Threads % chunks == 0 && (Outer % rows_abreast == 0 || Outer < rows_abreast), "whole rows of chunks");
  // In elements from the tile's start.
  CXXI_FN static int place(int row, int chunk) {
    constexpr int turns = block / 8, rows_a_turn = 8 / turns;
    return (chunk / turns * Outer + row) * block + (chunk % turns ^ row / rows_a_turn % turns) * 8;
  }
  template <class Source, class Index>
  CXXI_FN static void fill(T* tile, const Source& source, Index row, Index column) {
    const int chunk = threadIdx.x % chunks, first = threadIdx.x / chunks;
    const Index left = source.inner - column - chunk * 8;
    const int count = left < 0 ? 0 : left < 8 ? int(left) : 8;
#pragma unroll
    for (int r = 0; r < Outer; r += rows_abreast) {
      const int at = r + first;
      if (Outer < rows_abreast && at >= Outer) break;
      source.put(tile + place(at, chunk), row + at, column + chunk * 8, row + at < source.outer ? count : 0);
    }
  }
};

// Sums in registers as tensor cores leave them, cast to Kept, into rows of `Pitch` elements in shared memory. row: of the first eight
// rows of the lane's first fragment; the next fragment lies `Step` rows below.
template <int Pitch, int Step, class Kept, int FragmentsM, int FragmentsN>
CXXI_FN void cxxi_keep_sums(Kept* rows, const float (&sums)[FragmentsM][FragmentsN][4], int row, int column) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < FragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < FragmentsN; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        cxxi_group<Kept, 2> pair = {};
        pair.set(0, cxxi_cast<Kept>(sums[i][j][half * 2]));
        pair.set(1, cxxi_cast<Kept>(sums[i][j][half * 2 + 1]));
        const int at = row + i * Step + half * 8 + lane / 4;
        cxxi_store_group<2, true>(rows + at * Pitch + column + j * 8 + lane % 4 * 2, pair);
      }
    }
  }
}
template <int FragmentsM, int FragmentsN>
CXXI_FN void cxxi_clear_sums(float (&sums)[FragmentsM][FragmentsN][4]) {
#pragma unroll
  for (int i = 0; i < FragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < FragmentsN; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[i][j][e] = 0.0f;
    }
  }
}

template <class T, int TileM, int TileN, int TileK, int WarpsM, int WarpsN, int Stages, bool LeftAlongK, bool RightAlongK>
struct cxxi_matmul {
  static constexpr int threads = 32 * WarpsM * WarpsN;
  static constexpr int tile_m = TileM, tile_n = TileN, tile_k = TileK;
  static constexpr int fragments_m = TileM / WarpsM / 16, fragments_n = TileN / WarpsN / 8, steps = TileK / 16;
  static_assert(fragments_n % 2 == 0 && steps % 2 == 0, "fragments are loaded in pairs");
  using Left = cxxi_factor_tile<T, LeftAlongK ? TileM : TileK, LeftAlongK ? TileK : TileM, threads>;
  using Right = cxxi_factor_tile<T, RightAlongK ? TileN : TileK, RightAlongK ? TileK : TileN, threads>;
  static constexpr int stage_elements = Left::elements + Right::elements;

  float sums[fragments_m][fragments_n][4];

  struct Fragments {
    unsigned int left[fragments_m][4];
    unsigned int right[fragments_n / 2][4];
  };

  CXXI_FN static int warp_m() { return int(threadIdx.x) / 32 / WarpsN * (TileM / WarpsM); }
  CXXI_FN static int warp_n() { return int(threadIdx.x) / 32 % WarpsN * (TileN / WarpsN); }

  template <class LeftSource, class RightSource, class Index>
  CXXI_FN static void fill(T* stage, const LeftSource& left, const RightSource& right, Index m, Index n, Index k) {
    Left::fill(stage, left, LeftAlongK ? m : k, LeftAlongK ? k : m);
    Right::fill(stage + Left::elements, right, RightAlongK ? n : k, RightAlongK ? k : n);
  }

  // The fragments of step `step` of a stage. Matrices 0 to 3 of a load are, along (m, k): (0, 0), (8, 0), (0, 8), (8, 8),
  // and along (n, k): (0, 0), (0, 8), (8, 0), (8, 8).
  CXXI_FN static void load(Fragments& to, const T* stage, int step) {
    const int lane = threadIdx.x % 32, row = lane % 8, low = lane / 8 % 2, high = lane / 16;
#pragma unroll
    for (int i = 0; i < fragments_m; ++i) {
      const int m = warp_m() + i * 16;
      if constexpr (LeftAlongK) {
        cxxi_load_matrices(to.left[i], stage + Left::place(m + low * 8 + row, step * 2 + high));
      } else {
        cxxi_load_matrices_transposed(to.left[i], stage + Left::place(step * 16 + high * 8 + row, m / 8 + low));
      }
    }
    const T* right = stage + Left::elements;
#pragma unroll
    for (int j = 0; j < fragments_n / 2; ++j) {
      const int n = warp_n() + j * 16;
      if constexpr (RightAlongK) {
        cxxi_load_matrices(to.right[j], right + Right::place(n + high * 8 + row, step * 2 + low));
      } else {
        cxxi_load_matrices_transposed(to.right[j], right + Right::place(step * 16 + low * 8 + row, n / 8 + high));
      }
    }
  }

  CXXI_FN void multiply(const Fragments& with) {
#pragma unroll
    for (int i = 0; i < fragments_m; ++i) {
#pragma unroll
      for (int j = 0; j < fragments_n; ++j) {
        // Back and forth, so that neighbours share a fragment.
        const int at = i % 2 == 0 ? j : fragments_n - 1 - j;
        cxxi_multiply_add(sums[i][at], with.left[i], with.right[at / 2][at % 2 * 2], with.right[at / 2][at % 2 * 2 + 1],
                          T());
      }
    }
  }

  // Sums over k < depth for the tile at (m, n). All threads of the block; the shared memory may be used for other things
  // after the next barrier.
  template <class LeftSource, class RightSource, class Index>
  CXXI_FN void run(T* shared, const LeftSource& left, const RightSource& right, Index m, Index n, Index depth) {
    cxxi_clear_sums(sums);
    const Index tiles = (depth + TileK - 1) / TileK;
#pragma unroll
    for (int s = 0; s < Stages - 1; ++s) {
      if (s < tiles) fill(shared + s * stage_elements, left, right, m, n, Index(s) * TileK);
      cxxi_commit_copies();
    }
    cxxi_wait_copies<Stages - 2>();
    cxxi_sync_block();
    Fragments fragments[2];
    const T* reading = shared;
    T* writing = shared + (Stages - 1) * stage_elements;
    const T* const end = shared + Stages * stage_elements;
    if (tiles > 0) load(fragments[0], reading, 0);
    for (Index tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step + 1 == steps) {
          // The next stage has arrived, and no warp still reads the previous one.
          cxxi_wait_copies<Stages - 2>();
          cxxi_sync_block();
          reading = reading + stage_elements == end ? shared : reading + stage_elements;
        }
        if (step + 1 < steps || tile + 1 < tiles) load(fragments[(step + 1) % 2], reading, (step + 1) % steps);
        if (step == 0) {
          const Index ahead = tile + (Stages - 1);
          if (ahead < tiles) fill(writing, left, right, m, n, ahead * TileK);
          cxxi_commit_copies();
          writing = writing + stage_elements == end ? shared : writing + stage_elements;
        }
        multiply(fragments[step % 2]);
      }
    }
    cxxi_wait_copies<0>();
    cxxi_sync_block();
  }

  // The sums, cast to Kept, in rows of `Pitch` elements in shared memory, for all threads of the block.
  template <int Pitch, class Kept>
  CXXI_FN void keep(Kept* rows) const {
    cxxi_keep_sums<Pitch, 16>(rows, sums, warp_m(), warp_n());
    cxxi_sync_block();
  }
};

// Which tile a block computes: tiles in bands of `Band` rows of tiles, down each column of a band, so that blocks that run
// at the same time share rows of both factors.
template <int Band, class Unsigned>
CXXI_FN void cxxi_tile_of_block(Unsigned number, Unsigned tiles_m, Unsigned tiles_n, Unsigned& m, Unsigned& n) {
  const Unsigned band = number / (Band * tiles_n), within = number - band * Band * tiles_n;
  const Unsigned left = tiles_m - band * Band, rows = left < Band ? left : Unsigned(Band);
  n = within / rows;
  m = band * Band + (within - n * rows);
}

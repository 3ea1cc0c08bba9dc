// Transposes in registers. Included by value after vector.h.
namespace cxxi {

// Elements of a and b in turn: those of the lower halves, or of the upper ones.
template <bool Upper, int L, class V, int... I>
inline V interleaved(V a, V b, indices<I...>) {
  return __builtin_shufflevector(a, b, (I / 2 + (Upper ? L / 2 : 0) + (I % 2 ? L : 0))...);
}
// Rows of one vector: the largest block that pays. Bytes stay in 16 lanes, for which every instruction set has interleaves.
template <class E>
inline constexpr int block_side = CXXI_VECTOR_BYTES / sizeof(E) < 16 ? CXXI_VECTOR_BYTES / sizeof(E) : 16;

// to[j * to_step + i] = from[i * from_step + j], i and j < N, where from may be unaligned. Each of log2(N) rounds interleaves
// row i with row i + N / 2, which moves one bit of the row's number to the column's.
template <int N, class E>
inline void transpose_block(const E* from, index from_step, E* to, index to_step) {
  using V = vec<E, N>;
  using Lanes = typename make_indices<N>::type;
  V rows[N], next[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) __builtin_memcpy(&rows[i], from + i * from_step, sizeof(V));
#pragma GCC unroll 4
  for (int done = 1; done < N; done *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = interleaved<false, N>(rows[i], rows[i + N / 2], Lanes());
      next[2 * i + 1] = interleaved<true, N>(rows[i], rows[i + N / 2], Lanes());
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) __builtin_memcpy(to + i * to_step, &rows[i], sizeof(V));
}

// to[t * Side + c] = from[c * step + t] for t < along, c < across; both at most Side.
template <class D, int Side>
inline void stage(typename D::element* to, const typename D::element* from, index step, index along, index across) {
  constexpr int N = block_side<typename D::element> < Side ? block_side<typename D::element> : Side;
  index c = 0;
  for (; c + N <= across; c += N) {
    index t = 0;
    for (; t + N <= along; t += N) transpose_block<N>(from + c * step + t, step, to + t * Side + c, Side);
    for (; t < along; ++t) {
      for (index i = c; i < c + N; ++i) {
        to[t * Side + i] = from[i * step + t];
        CXXI_KEEP_SCALAR;
      }
    }
  }
  for (; c < across; ++c) {
    for (index t = 0; t < along; ++t) {
      to[t * Side + c] = from[c * step + t];
      CXXI_KEEP_SCALAR;
    }
  }
}

}  // namespace cxxi

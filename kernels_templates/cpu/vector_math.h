// Functions that the instruction set lacks: Sleef's, through cxxi_math, which the loader fills with the addresses that
// eager's kernels call. The unit defines CXXI_VECTOR_BYTES (the width of those functions), cxxi_math and its slots before
// this text. A single lane takes the same function as a full vector, so that tails equal the rest bit for bit; where a
// function is missing, f (the scalar spelling) is applied lane by lane.
namespace cxxi {

template <class T, class V>
inline vec<T, CXXI_VECTOR_BYTES / sizeof(T)> native_part(V v, int first) {
  constexpr int N = CXXI_VECTOR_BYTES / sizeof(T);
  if constexpr (lane_count<V> >= N) {
    return part<N, T, lane_count<V>>(v, first);
  } else {
    vec<T, N> r;
    for (int l = 0; l < N; ++l) r[l] = lane(v, l % lane_count<V>);
    return r;
  }
}

template <int Slot, class T, int L, class F, class... A>
inline vec<T, L> call_math(F f, A... operands) {
  constexpr int N = CXXI_VECTOR_BYTES / sizeof(T);
  void* const address = cxxi_math[Slot];
  if (__builtin_expect(address == nullptr, false)) {
    if constexpr (L == 1) {
      return static_cast<T>(f(operands...));
    } else {
      return apply_lanes<T, L>(f, widen<L>(operands)...);
    }
  }
  using function = vec<T, N> (*)(decltype(native_part<T>(operands, 0))...);
  const auto call = reinterpret_cast<function>(address);
  if constexpr (L <= N) {
    const vec<T, N> r = call(native_part<T>(widen<L>(operands), 0)...);
    if constexpr (L == 1) {
      return r[0];
    } else {
      return part<L, T, N>(r, 0);
    }
  } else {
    vec<T, L> r;
    for (int first = 0; first < L; first += N) {
      const vec<T, N> some = call(native_part<T>(widen<L>(operands), first)...);
      __builtin_memcpy(reinterpret_cast<char*>(&r) + first * sizeof(T), &some, sizeof some);
    }
    return r;
  }
}

}  // namespace cxxi

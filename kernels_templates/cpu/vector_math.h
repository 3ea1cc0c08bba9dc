// Functions that the instruction set lacks: Sleef's, through cxxi_math, which the loader fills with the addresses that
// eager's kernels call. The unit defines CXXI_VECTOR_BYTES (the width of those functions), cxxi_math and its slots
// before this text. A single lane takes the same function as a full vector, so that tails equal the rest bit for bit;
// where a function is missing, f (the scalar spelling) is applied lane by lane.
namespace cxxi {

template <class T, int L, class Function, class... V>
inline vec<T, L> call_native(Function function, V... operands) {
  constexpr int N = CXXI_VECTOR_BYTES / sizeof(T);
  if constexpr (L == N) {
    return function(operands...);
  } else if constexpr (L > N) {
    return join(call_native<T, L / 2>(function, part<L / 2, 0>(operands)...),
                call_native<T, L / 2>(function, part<L / 2, L / 2>(operands)...));
  } else if constexpr (L == 1) {
    return function(widen<N>(operands)...)[0];
  } else {
    return part<L, 0>(call_native<T, 2 * L>(function, join(operands, operands)...));
  }
}
template <class T, class A>
using native = vec<T, CXXI_VECTOR_BYTES / sizeof(T)>;

template <int Slot, class T, int L, class F, class... A>
inline vec<T, L> call_math(F f, A... operands) {
  void* const address = cxxi_math[Slot];
  if (__builtin_expect(address == nullptr, false)) {
    if constexpr (L == 1) {
      return static_cast<T>(f(operands...));
    } else {
      return apply_lanes<T, L>(f, widen<L>(operands)...);
    }
  }
  return call_native<T, L>(reinterpret_cast<native<T, T> (*)(native<T, A>...)>(address), widen<L>(operands)...);
}

// As apply, but a single lane is computed in a vector where f works on vectors.
template <class T, int L, class F, class... A>
inline vec<T, L> apply_as_vector(F f, A... operands) {
  constexpr int N = CXXI_VECTOR_BYTES / sizeof(T);
  if constexpr (L > 1) {
    return apply_wide<T, L>(f, widen<L>(operands)...);
  } else if constexpr (requires { f(widen<N>(operands)...); }) {
    return f(widen<N>(operands)...)[0];
  } else {
    return static_cast<T>(f(operands...));
  }
}

}  // namespace cxxi

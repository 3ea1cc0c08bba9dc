// Lanes: the same kernel text serves vectors of L elements and, with L == 1, scalars. Included by value after
// prelude.h.
//
// A value of dtype D with L lanes is a GCC/Clang vector (L == 1: the plain element), or for bool a mask (L == 1: bool).
// bf16, f16 and f8 values are their bits; arithmetic is done on f32 after cast. Vectors may be wider than the
// machine's: the compiler splits them. Values of one lane meet values of L lanes anywhere: they are widened.
namespace cxxi {

typedef long long index;

template <class T, int L>
struct vector_of {
  typedef T type __attribute__((vector_size(L * sizeof(T))));
};
template <class T>
struct vector_of<T, 1> {
  typedef T type;
};
template <class T, int L>
using vec = typename vector_of<T, L>::type;

template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;

// Passed to a kernel's body: how many lanes this instance works on, and which set of accumulators is its own.
template <int N>
struct number {
  static constexpr int value = N;
};

// ---- dtypes -----------------------------------------------------------------------------------------------------
// element: what lies in memory; compute: what arithmetic uses; bits: exponent and mantissa of a narrow float.
template <class Element, class Compute, int Exponent = 0, int Mantissa = 0, bool Finite = false>
struct dtype {
  using element = Element;
  using compute = Compute;
  static constexpr int exponent = Exponent, mantissa = Mantissa;
  static constexpr bool finite = Finite, narrow = Exponent != 0;
};
struct f64 : dtype<double, double> {};
struct f32 : dtype<float, float> {};
struct f16 : dtype<unsigned short, float, 5, 10> {};
struct bf16 : dtype<unsigned short, float, 8, 7> {};
struct f8e4m3fn : dtype<unsigned char, float, 4, 3, true> {};
struct f8e5m2 : dtype<unsigned char, float, 5, 2> {};
struct i8 : dtype<signed char, signed char> {};
struct i16 : dtype<short, short> {};
struct i32 : dtype<int, int> {};
struct i64 : dtype<long long, long long> {};
struct u8 : dtype<unsigned char, unsigned char> {};
struct u16 : dtype<unsigned short, unsigned short> {};
struct u32 : dtype<unsigned int, unsigned int> {};
struct u64 : dtype<unsigned long long, unsigned long long> {};
struct boolean : dtype<unsigned char, bool> {};

template <int Bytes>
struct signed_of;
template <>
struct signed_of<1> {
  using type = signed char;
};
template <>
struct signed_of<2> {
  using type = short;
};
template <>
struct signed_of<4> {
  using type = int;
};
template <>
struct signed_of<8> {
  using type = long long;
};

// Truth values of L > 1 lanes: each lane of `bits` is 0 or -1. Bytes follows the comparison that made it.
template <int Bytes, int L>
struct mask {
  vec<typename signed_of<Bytes>::type, L> bits;
};
template <class T>
inline constexpr bool is_mask = false;
template <int Bytes, int L>
inline constexpr bool is_mask<mask<Bytes, L>> = true;

template <int Bytes, int From, int L>
inline mask<Bytes, L> as_bytes(mask<From, L> m) {
  if constexpr (Bytes == From) {
    return m;
  } else {
    return {__builtin_convertvector(m.bits, vec<typename signed_of<Bytes>::type, L>)};
  }
}
template <int A, int B, int L>
inline mask<A, L> operator&(mask<A, L> a, mask<B, L> b) {
  return {a.bits & as_bytes<A>(b).bits};
}
template <int A, int B, int L>
inline mask<A, L> operator|(mask<A, L> a, mask<B, L> b) {
  return {a.bits | as_bytes<A>(b).bits};
}
template <int A, int B, int L>
inline mask<A, L> operator^(mask<A, L> a, mask<B, L> b) {
  return {a.bits ^ as_bytes<A>(b).bits};
}
template <int A, int L>
inline mask<A, L> operator!(mask<A, L> a) {
  return {~a.bits};
}

// ---- lanes of a value -------------------------------------------------------------------------------------------
template <class T>
T& declared();  // for unevaluated operands only
template <class T>
inline constexpr int lane_count = 1;
template <class T>
requires requires(T v) { v[0]; }
inline constexpr int lane_count<T> = sizeof(T) / sizeof(declared<T>()[0]);
template <int Bytes, int L>
inline constexpr int lane_count<mask<Bytes, L>> = L;

template <class V>
inline auto lane(V v, int l) {
  if constexpr (is_mask<V>) {
    return v.bits[l] != 0;
  } else if constexpr (lane_count<V> == 1) {
    return v;
  } else {
    return v[l];
  }
}
// v with L lanes: itself, or one value for every lane. (v - 0 keeps -0.)
template <int L, class V>
inline auto widen(V v) {
  if constexpr (L == 1 || lane_count<V> == L) {
    return v;
  } else if constexpr (same<V, bool>) {
    return mask<1, L>{vec<signed char, L>{} - static_cast<signed char>(v)};
  } else {
    return v - vec<V, L>{};
  }
}
template <class To, class From>
inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
// The result of comparing values of L lanes.
template <int L, class C>
inline auto as_mask(C comparison) {
  if constexpr (L == 1) {
    return static_cast<bool>(comparison);
  } else {
    constexpr int bytes = sizeof(comparison[0]);
    return mask<bytes, L>{bit_cast<vec<typename signed_of<bytes>::type, L>>(comparison)};
  }
}

// Lanes [First, First + N) of v, and two vectors side by side. (Copies through memory would be stores and loads.)
template <int... I>
struct indices {};
template <int N, int... I>
struct make_indices : make_indices<N - 1, N - 1, I...> {};
template <int... I>
struct make_indices<0, I...> {
  using type = indices<I...>;
};
template <int First, class V, int... I>
inline auto shuffled(V v, indices<I...>) {
  return __builtin_shufflevector(v, v, (First + I)...);
}
template <int N, int First, class V>
inline auto part(V v) {
  if constexpr (N == lane_count<V>) {
    return v;
  } else if constexpr (N == 1) {
    return v[First];
  } else {
    return shuffled<First>(v, typename make_indices<N>::type());
  }
}
template <class V, int... I>
inline auto joined(V a, V b, indices<I...>) {
  return __builtin_shufflevector(a, b, I...);
}
template <class V>
inline auto join(V low, V high) {
  return joined(low, high, typename make_indices<2 * lane_count<V>>::type());
}

// The numbers first, first + step, ...
template <int L>
inline vec<long long, L> iota(index first, index step) {
  if constexpr (L == 1) {
    return first;
  } else {
    vec<long long, L> r;
    for (int l = 0; l < L; ++l) r[l] = l;
    return r * step + first;
  }
}
// One value a lane from value(l).
template <class T, int L, class F>
inline vec<T, L> by_lane(F value) {
  if constexpr (L == 1) {
    return value(0);
  } else {
    vec<T, L> r;
    for (int l = 0; l < L; ++l) r[l] = value(l);
    return r;
  }
}
template <class V>
inline bool all(V m) {
  if constexpr (same<V, bool>) {
    return m;
  } else {
    bool r = true;
    for (int l = 0; l < lane_count<V>; ++l) r &= m.bits[l] != 0;
    return r;
  }
}

template <class To, class V>
inline auto convert(V v) {
  if constexpr (lane_count<V> == 1) {
    return static_cast<To>(v);
  } else {
    return __builtin_convertvector(v, vec<To, lane_count<V>>);
  }
}

template <class M, class A, class B>
inline auto select(M m, A a, B b) {
  constexpr int LM = lane_count<M>, LA = lane_count<A>, LB = lane_count<B>;
  constexpr int L = LM > LA ? (LM > LB ? LM : LB) : (LA > LB ? LA : LB);
  if constexpr (L == 1) {
    return m ? a : b;
  } else if constexpr (same<M, bool>) {
    auto wide_a = widen<L>(a);
    if constexpr (is_mask<decltype(wide_a)>) {
      return m ? as_bytes<1>(wide_a) : as_bytes<1>(widen<L>(b));
    } else {
      return m ? wide_a : widen<L>(b);
    }
  } else {
    auto wide_a = widen<L>(a);
    auto wide_b = widen<L>(b);
    if constexpr (is_mask<decltype(wide_a)> || same<A, bool>) {
      const auto chosen = as_bytes<1>(m);
      return (chosen & wide_a) | (!chosen & wide_b);
    } else {
      return as_bytes<sizeof(wide_a[0])>(m).bits ? wide_a : wide_b;
    }
  }
}

// ---- memory -----------------------------------------------------------------------------------------------------
// A value as the kernel holds it from the element(s) of memory, and back.
template <class D, int L, class V>
inline auto from_memory(V v) {
  if constexpr (!same<D, boolean>) {
    return v;
  } else if constexpr (L == 1) {
    return v != 0;
  } else {
    return as_mask<L>(v != 0);
  }
}
template <class D, int L, class V>
inline vec<typename D::element, L> to_memory(V v) {
  if constexpr (!same<D, boolean>) {
    return widen<L>(v);
  } else if constexpr (L == 1) {
    return static_cast<unsigned char>(v);
  } else {
    return bit_cast<vec<unsigned char, L>>(as_bytes<1>(widen<L>(v)).bits & 1);
  }
}
template <class D, int L>
inline auto load(const typename D::element* p) {
  vec<typename D::element, L> v;
  __builtin_memcpy(&v, p, sizeof v);
  return from_memory<D, L>(v);
}
template <class D, int L, class V>
inline void store(typename D::element* p, V value) {
  const auto v = to_memory<D, L>(value);
  __builtin_memcpy(p, &v, sizeof v);
}
// offset(l): element offset of lane l. Lanes whose mask is false are not read and give `otherwise`.
template <class D, int L, class F>
inline auto gather(const typename D::element* p, F offset) {
  if constexpr (L == 1) {
    return load<D, 1>(p + offset(0));
  } else {
    vec<typename D::element, L> v;
    for (int l = 0; l < L; ++l) v[l] = p[offset(l)];
    return from_memory<D, L>(v);
  }
}
template <class D, int L, class M, class F, class O>
inline auto gather_masked(M m, const typename D::element* p, F offset, O other) {
  const typename D::element rest = to_memory<D, 1>(other);
  if constexpr (L == 1) {
    return from_memory<D, 1>(m ? p[offset(0)] : rest);
  } else {
    vec<typename D::element, L> v;
    for (int l = 0; l < L; ++l) v[l] = lane(m, l) ? p[offset(l)] : rest;
    return from_memory<D, L>(v);
  }
}
// As gather_masked where the lanes' offsets are consecutive: one access when every lane is wanted.
template <class D, int L, class M, class F, class O>
inline auto load_masked(M m, const typename D::element* p, F offset, O other) {
  if constexpr (L == 1) {
    return gather_masked<D, L>(m, p, offset, other);
  } else {
    const typename D::element rest = to_memory<D, 1>(other);
    vec<typename D::element, L> v;
    if (all(m)) {
      __builtin_memcpy(&v, p + offset(0), sizeof v);
    } else {
      for (int l = 0; l < L; ++l) v[l] = lane(m, l) ? p[offset(l)] : rest;
    }
    return from_memory<D, L>(v);
  }
}
template <class D, int L, class F, class V>
inline void scatter(typename D::element* p, F offset, V value) {
  const auto v = to_memory<D, L>(value);
  for (int l = 0; l < L; ++l) p[offset(l)] = lane(v, l);
}
template <class D, int L, class M, class F, class V>
inline void scatter_masked(M m, typename D::element* p, F offset, V value) {
  const auto v = to_memory<D, L>(value);
  for (int l = 0; l < L; ++l) {
    if (lane(m, l)) p[offset(l)] = lane(v, l);
  }
}

// ---- ops --------------------------------------------------------------------------------------------------------
// f is the op's spelling. Where it does not work on vectors it is applied lane by lane.
template <class T, int L, class F, class... A>
inline vec<T, L> apply_lanes(F f, A... a) {
  vec<T, L> r;
  for (int l = 0; l < L; ++l) r[l] = static_cast<T>(f(lane(a, l)...));
  return r;
}
template <class T, int L, class F, class... A>
inline auto apply_wide(F f, A... a) {
  if constexpr (same<T, bool>) {
    if constexpr (requires { f(a...).bits; }) {
      return f(a...);
    } else if constexpr (requires { f(a...)[L - 1] << 1; }) {
      return as_mask<L>(f(a...));
    } else {
      vec<signed char, L> r;
      for (int l = 0; l < L; ++l) r[l] = f(lane(a, l)...) ? -1 : 0;
      return mask<1, L>{r};
    }
  } else if constexpr (requires { f(a...); }) {
    if constexpr (same<decltype(f(a...)), vec<T, L>>) {
      return f(a...);
    } else {
      return apply_lanes<T, L>(f, a...);
    }
  } else {
    return apply_lanes<T, L>(f, a...);
  }
}
template <class T, int L, class F, class... A>
inline auto apply(F f, A... a) {
  if constexpr (L == 1) {
    return static_cast<T>(f(a...));
  } else {
    return apply_wide<T, L>(f, widen<L>(a)...);
  }
}

}  // namespace cxxi

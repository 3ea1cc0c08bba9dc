// Lanes: the same kernel text serves vectors of L elements and, with L == 1, scalars. Included by value after
// prelude.h.
//
// A value of dtype D with L lanes is a GCC/Clang vector (L == 1: the plain element), or for bool a mask (L == 1: bool).
// f16 and f8 values are their bits, bf16 values those of the equal f32; arithmetic is done on f32 after cast. Vectors may be
// wider than the machine's: the compiler splits arithmetic, `select` and `apply` what it would take lane by lane. Values of
// one lane meet values of L lanes anywhere: they are widened.
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
// A run of a loop that ends at a cut where that lies inside.
inline index up_to(index run, index cut) { return cut > 0 && cut < run ? cut : run; }

template <class T>
inline constexpr bool is_mask = false;
template <int Bytes, int L>
inline constexpr bool is_mask<mask<Bytes, L>> = true;

template <class T>
T& declared();  // for unevaluated operands only
template <class T>
inline constexpr int lane_count = 1;
template <class T>
requires requires(T v) { v[0]; }
inline constexpr int lane_count<T> = sizeof(T) / sizeof(declared<T>()[0]);
template <int Bytes, int L>
inline constexpr int lane_count<mask<Bytes, L>> = L;

// Values of another arithmetic type. GCC joins lanes that are converted one by one into its widening and narrowing
// instructions, but makes __builtin_convertvector between integers lane by lane where the width changes more than twofold;
// narrow integers reach other types by way of int.
template <class To, class V>
inline auto convert(V v) {
  constexpr int L = lane_count<V>;
  constexpr bool from_whole = static_cast<bool>(requires { v % v; }), to_whole = requires(To t) { t % t; };
  if constexpr (L == 1) {
    To r = static_cast<To>(v);
    // With -fno-trapping-math GCC makes a conversion to an integer and back a truncation, which keeps -0, NaN and what no integer holds.
    if constexpr (!from_whole && to_whole && sizeof(To) >= 4) asm("" : "+r"(r));
    return r;
  } else if constexpr (from_whole && to_whole) {
    vec<To, L> r;
#pragma GCC unroll 64
    for (int l = 0; l < L; ++l) r[l] = static_cast<To>(v[l]);
    return r;
  } else if constexpr (from_whole && sizeof(v) < 4 * L) {
    return __builtin_convertvector(convert<int>(v), vec<To, L>);
  } else {
    return __builtin_convertvector(v, vec<To, L>);
  }
}

template <int Bytes, int From, int L>
inline mask<Bytes, L> as_bytes(mask<From, L> m) {
  if constexpr (Bytes == From) {
    return m;
  } else {
    return {convert<typename signed_of<Bytes>::type>(m.bits)};
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

// Lanes [First, First + N) of v, and two vectors side by side: shuffles, since copies through memory would be stores and
// loads, but for what takes several of the machine's vectors, which compilers keep in memory and would shuffle lane by lane.
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
  } else if constexpr (sizeof(V) > CXXI_VECTOR_BYTES) {
    vec<__typeof__(v[0]), N> some;
    __builtin_memcpy(&some, reinterpret_cast<const char*>(&v) + First * sizeof(v[0]), sizeof some);
    return some;
  } else {
    return shuffled<First>(v, typename make_indices<N>::type());
  }
}
template <int N, int First, int Bytes, int L>
inline auto part(mask<Bytes, L> m) {
  if constexpr (N == 1) {
    return m.bits[First] != 0;
  } else {
    return mask<Bytes, N>{part<N, First>(m.bits)};
  }
}
template <class V, int... I>
inline auto joined(V a, V b, indices<I...>) {
  return __builtin_shufflevector(a, b, I...);
}
template <class V>
inline auto join(V low, V high) {
  if constexpr (2 * sizeof(V) > CXXI_VECTOR_BYTES) {
    constexpr int L = lane_count<V>;
    vec<__typeof__(low[0]), 2 * L> both;
    __builtin_memcpy(&both, &low, sizeof low);
    __builtin_memcpy(reinterpret_cast<char*>(&both) + sizeof low, &high, sizeof high);
    return both;
  } else {
    return joined(low, high, typename make_indices<2 * lane_count<V>>::type());
  }
}
template <int Bytes, int L>
inline mask<Bytes, 2 * L> join(mask<Bytes, L> low, mask<Bytes, L> high) {
  return {join(low.bits, high.bits)};
}
// Do L lanes of V, itself one lane or L, take several of the machine's vectors? Compilers split arithmetic on those, but
// make comparisons and choices lane by lane.
template <int L, class V>
inline constexpr bool splits = !is_mask<V> && L * (sizeof(V) / lane_count<V>) > CXXI_VECTOR_BYTES;
// Lanes [First, First + N) of v, or its one lane.
template <int N, int First, class V>
inline auto some_lanes(V v) {
  if constexpr (lane_count<V> == 1) {
    return v;
  } else {
    return part<N, First>(v);
  }
}

// The numbers first, first + step, ...
template <int L, class T = long long>
inline vec<T, L> iota(index first, index step) {
  if constexpr (L == 1) {
    return static_cast<T>(first);
  } else {
    vec<T, L> r;
    for (int l = 0; l < L; ++l) r[l] = static_cast<T>(l);
    return r * static_cast<T>(step) + static_cast<T>(first);
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
    const auto bytes = as_bytes<1>(m).bits;
    if constexpr (sizeof bytes % 8 == 0) {
      const auto words = bit_cast<vec<long long, sizeof bytes / 8>>(bytes);
      long long r = -1;
      for (int w = 0; w < static_cast<int>(sizeof bytes / 8); ++w) r &= lane(words, w);
      return r == -1;
    } else {
      bool r = true;
      for (int l = 0; l < lane_count<V>; ++l) r &= bytes[l] != 0;
      return r;
    }
  }
}

template <class M, class A, class B>
inline auto select(M m, A a, B b) {
  constexpr int LM = lane_count<M>, LA = lane_count<A>, LB = lane_count<B>;
  constexpr int L = LM > LA ? (LM > LB ? LM : LB) : (LA > LB ? LA : LB);
  if constexpr (L == 1) {
    return m ? a : b;
  } else if constexpr (splits<L, A> && !same<M, bool>) {
    constexpr int H = L / 2;
    return join(widen<H>(select(part<H, 0>(widen<L>(m)), some_lanes<H, 0>(a), some_lanes<H, 0>(b))),
                widen<H>(select(part<H, H>(widen<L>(m)), some_lanes<H, H>(a), some_lanes<H, H>(b))));
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

}  // namespace cxxi

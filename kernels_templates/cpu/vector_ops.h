// Ops on vectors, under the names that prelude.h gives their scalar forms; what is missing here is applied lane by
// lane. Each equals the scalar form of its row in ops.def, step by step. Included by value after vector_math.h.
namespace cxxi {

template <class T>
struct element_of {
  using type = T;
};
template <class V>
requires(lane_count<V> > 1 && !is_mask<V>) struct element_of<V> {
  using type = __typeof__(+declared<V>()[0]);
};
template <class V>
concept vector = lane_count<V> >
1 && !is_mask<V>;
template <class V>
concept real = vector<V> &&(same<V, vec<float, lane_count<V>>> || same<V, vec<double, lane_count<V>>>);
template <class V>
concept whole = vector<V> && !real<V>;
template <class V>
using element = typename element_of<V>::type;

// f lane by lane, for functions that are one instruction on vectors: the compiler joins the lanes.
template <class F, class V, class... A>
inline V map(F f, V v, A... a) {
  V r;
#pragma GCC unroll 64
  for (int l = 0; l < lane_count<V>; ++l) r[l] = f(v[l], a[l]...);
  return r;
}
// a * b + c, rounded once: compilers do not join the scalar functions into one instruction.
template <real V>
inline V fused(V a, V b, V c) {
  using T = element<V>;
  constexpr int L = lane_count<V>;
#ifdef __AVX512F__
  if constexpr (sizeof(V) == 64) {
    if constexpr (same<T, float>) {
      return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
    } else {
      return __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
    }
  } else
#endif
#ifdef __FMA__
      if constexpr (sizeof(V) > 32) {
    return join(fused(part<L / 2, 0>(a), part<L / 2, 0>(b), part<L / 2, 0>(c)),
                fused(part<L / 2, L / 2>(a), part<L / 2, L / 2>(b), part<L / 2, L / 2>(c)));
  } else if constexpr (sizeof(V) == 32) {
    if constexpr (same<T, float>) {
      return __builtin_ia32_vfmaddps256(a, b, c);
    } else {
      return __builtin_ia32_vfmaddpd256(a, b, c);
    }
  } else
#endif
  {
    return map([](T x, T y, T z) { return cxxi_fma(x, y, z); }, a, b, c);
  }
}
#define CXXI_MAP(name, function)                                         \
  template <real V>                                                      \
  inline V name(V v) {                                                   \
    if constexpr (same<element<V>, float>) {                             \
      return map([](float x) { return __builtin_##function##f(x); }, v); \
    } else {                                                             \
      return map([](double x) { return __builtin_##function(x); }, v);   \
    }                                                                    \
  }
CXXI_MAP(square_root, sqrt)
CXXI_MAP(floored, floor)
CXXI_MAP(ceiled, ceil)
CXXI_MAP(truncated, trunc)
CXXI_MAP(nearest, nearbyint)
CXXI_MAP(magnitude, fabs)
#undef CXXI_MAP
// NaN of a, then of b, else the larger (smaller), b where they are equal.
template <vector V>
inline V larger(V a, V b) {
  if constexpr (real<V>) {
    return ((a > b) | (a != a)) & (b == b) ? a : (a != a ? a : b);
  } else {
    return a < b ? b : a;
  }
}
template <vector V>
inline V smaller(V a, V b) {
  if constexpr (real<V>) {
    return ((a < b) | (a != a)) & (b == b) ? a : (a != a ? a : b);
  } else {
    return b < a ? b : a;
  }
}
template <real V>
inline V number_like(V, double value) {
  return V{} + static_cast<element<V>>(value);
}

#define CXXI_MATH(name, slot)                                                                                \
  template <real V>                                                                                          \
  inline V name(V v) {                                                                                       \
    constexpr int L = lane_count<V>;                                                                         \
    if constexpr (same<element<V>, float>) {                                                                 \
      return call_math<cxxi_slot_##slot##_f32, float, L>([](float x) { return __builtin_##name##f(x); }, v); \
    } else {                                                                                                 \
      return call_math<cxxi_slot_##slot##_f64, double, L>([](double x) { return __builtin_##name(x); }, v);  \
    }                                                                                                        \
  }
CXXI_MATH(exp, exp_u10)
CXXI_MATH(expm1, expm1_u10)
CXXI_MATH(log1p, log1p_u10)
CXXI_MATH(tanh, tanh_u10)
CXXI_MATH(erf, erf_u10)
#undef CXXI_MATH

// erf within 1.5e-7 (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26): enough where it is added to
// one, as in gelu, where eager's f32 kernels use it too; three times as fast as erf. Exact in double.
template <real V>
inline V erf_near(V x) {
  if constexpr (same<element<V>, double>) {
    return erf(x);
  } else {
    const V size = magnitude(x);
    const V t = 1 / fused(number_like(x, 0.3275911), size, number_like(x, 1));
    V poly = fused(number_like(x, 1.061405429), t, number_like(x, -1.453152027));
    poly = fused(poly, t, number_like(x, 1.421413741));
    poly = fused(poly, t, number_like(x, -0.284496736));
    poly = fused(poly, t, number_like(x, 0.254829592));
    const V value = fused(-exp(-(x * x)) * t, poly, number_like(x, 1));
    return x < 0 ? -value : value;
  }
}

}  // namespace cxxi

// ---- Arithmetic -------------------------------------------------------------------------------------------------
template <cxxi::vector V>
inline V cxxi_add(V a, V b) {
  return a + b;
}
template <cxxi::vector V>
inline V cxxi_sub(V a, V b) {
  return a - b;
}
template <cxxi::vector V>
inline V cxxi_mul(V a, V b) {
  return a * b;
}
template <cxxi::real V>
inline V cxxi_div(V a, V b) {
  return a / b;
}
template <cxxi::vector V>
inline V cxxi_neg(V a) {
  return -a;
}
template <cxxi::real V>
inline V cxxi_abs(V a) {
  return cxxi::magnitude(a);
}
template <cxxi::whole V>
inline V cxxi_abs(V a) {
  return a < 0 ? -a : a;
}
template <cxxi::real V>
inline V cxxi_reciprocal(V a) {
  return 1 / a;
}
template <cxxi::vector V>
inline V cxxi_square(V a) {
  return a * a;
}
template <cxxi::real V>
inline V cxxi_add_alpha(V a, V b, V c) {
  return cxxi::fused(c, b, a);
}
template <cxxi::real V>
inline V cxxi_sub_alpha(V a, V b, V c) {
  return cxxi::fused(-c, b, a);
}
template <cxxi::real V>
inline V cxxi_addcmul(V a, V b, V c, V d) {
  return cxxi::fused(d * b, c, a);
}
template <cxxi::real V>
inline V cxxi_addcdiv(V a, V b, V c, V d) {
  return a + d * b / c;
}
template <cxxi::real V>
inline V cxxi_lerp(V a, V b, V c) {
  const V near = cxxi::fused(c, b - a, a), far = cxxi::fused(-(b - a), 1 - c, b);
  return cxxi::magnitude(c) < cxxi::number_like(c, 0.5) ? near : far;
}
template <cxxi::real V>
inline V cxxi_floor(V a) {
  return cxxi::floored(a);
}
template <cxxi::real V>
inline V cxxi_ceil(V a) {
  return cxxi::ceiled(a);
}
template <cxxi::real V>
inline V cxxi_trunc(V a) {
  return cxxi::truncated(a);
}
template <cxxi::real V>
inline V cxxi_round(V a) {
  return cxxi::nearest(a);
}
template <cxxi::real V>
inline V cxxi_copysign(V a, V b) {
  using U = cxxi::vec<typename cxxi::signed_of<sizeof(a[0])>::type, cxxi::lane_count<V>>;
  const U sign = cxxi::bit_cast<U>(-V{});
  return cxxi::bit_cast<V>((cxxi::bit_cast<U>(a) & ~sign) | (cxxi::bit_cast<U>(b) & sign));
}
template <cxxi::vector V>
inline V cxxi_sign(V a) {
  return a > 0 ? V{} + 1 : (a < 0 ? V{} - 1 : V{});
}
template <cxxi::real V>
inline V cxxi_frac(V a) {
  return a - cxxi::truncated(a);
}
template <cxxi::real V>
inline V cxxi_sqrt(V a) {
  return cxxi::square_root(a);
}
template <cxxi::real V>
inline V cxxi_rsqrt(V a) {
  return 1 / cxxi::square_root(a);
}

// ---- Minimum, maximum, clamp ------------------------------------------------------------------------------------
template <cxxi::vector V>
inline V cxxi_maximum(V a, V b) {
  return cxxi::larger(a, b);
}
template <cxxi::vector V>
inline V cxxi_minimum(V a, V b) {
  return cxxi::smaller(a, b);
}
template <cxxi::real V>
inline V cxxi_fmax(V a, V b) {
  return (a >= b) | (b != b) ? a : b;
}
template <cxxi::real V>
inline V cxxi_fmin(V a, V b) {
  return (a <= b) | (b != b) ? a : b;
}
template <cxxi::vector V>
inline V cxxi_clamp_min(V a, V b) {
  return cxxi::larger(b, a);
}
template <cxxi::vector V>
inline V cxxi_clamp_max(V a, V b) {
  return cxxi::smaller(b, a);
}
template <cxxi::whole V>
inline V cxxi_clamp(V a, V b, V c) {
  return cxxi::smaller(c, cxxi::larger(b, a));
}
template <cxxi::real V>
inline V cxxi_clamp(V a, V b, V c) {
  const V limited = cxxi::smaller(c, cxxi::larger(b, a));
  return b != b ? (a != a ? a : b) : limited;
}

// ---- Comparison and logic; the result of a comparison becomes a mask in cxxi::apply ------------------------------
template <cxxi::vector V>
inline auto cxxi_eq(V a, V b) {
  return a == b;
}
template <cxxi::vector V>
inline auto cxxi_ne(V a, V b) {
  return a != b;
}
template <cxxi::vector V>
inline auto cxxi_lt(V a, V b) {
  return a < b;
}
template <cxxi::vector V>
inline auto cxxi_le(V a, V b) {
  return a <= b;
}
template <cxxi::vector V>
inline auto cxxi_gt(V a, V b) {
  return a > b;
}
template <cxxi::vector V>
inline auto cxxi_ge(V a, V b) {
  return a >= b;
}
template <cxxi::real V>
inline auto cxxi_isnan(V a) {
  return a != a;
}
template <cxxi::real V>
inline auto cxxi_isinf(V a) {
  return cxxi::magnitude(a) == V{} + __builtin_inff();
}
template <cxxi::real V>
inline auto cxxi_isfinite(V a) {
  return cxxi::magnitude(a) < V{} + __builtin_inff();
}
template <cxxi::vector V>
inline auto cxxi_logical_xor(V a, V b) {
  return (a != 0) ^ (b != 0);
}
template <cxxi::vector V>
inline auto cxxi_logical_not(V a) {
  return a == 0;
}
template <cxxi::vector V>
inline auto cxxi_logical_and(V a, V b) {
  return (a != 0) & (b != 0);
}
template <cxxi::vector V>
inline auto cxxi_logical_or(V a, V b) {
  return (a != 0) | (b != 0);
}
template <int A, int B, int L>
inline auto cxxi_logical_and(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a & b;
}
template <int A, int B, int L>
inline auto cxxi_logical_or(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a | b;
}
template <int A, int B, int L>
inline auto cxxi_logical_xor(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a ^ b;
}
template <int A, int L>
inline auto cxxi_logical_not(cxxi::mask<A, L> a) {
  return !a;
}
template <int A, int B, int L>
inline auto cxxi_bit_and(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a & b;
}
template <int A, int B, int L>
inline auto cxxi_bit_or(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a | b;
}
template <int A, int B, int L>
inline auto cxxi_bit_xor(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a ^ b;
}
template <int A, int L>
inline auto cxxi_bit_not(cxxi::mask<A, L> a) {
  return !a;
}
template <int A, int B, int L>
inline auto cxxi_eq(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return !(a ^ b);
}
template <int A, int B, int L>
inline auto cxxi_ne(cxxi::mask<A, L> a, cxxi::mask<B, L> b) {
  return a ^ b;
}
template <cxxi::whole V>
inline V cxxi_bit_and(V a, V b) {
  return a & b;
}
template <cxxi::whole V>
inline V cxxi_bit_or(V a, V b) {
  return a | b;
}
template <cxxi::whole V>
inline V cxxi_bit_xor(V a, V b) {
  return a ^ b;
}
template <cxxi::whole V>
inline V cxxi_bit_not(V a) {
  return ~a;
}

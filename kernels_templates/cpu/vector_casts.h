// Conversions between dtypes on lanes, with ATen's results for values that the target cannot hold. Included by value after
// vector.h.
namespace cxxi {

// ---- casts, as ATen converts ------------------------------------------------------------------------------------
template <class D, class V>
inline auto widen_float(V v) {  // D as it is held -> f32
  constexpr int L = lane_count<V>;
  if constexpr (same<D, bf16>) {
    return bit_cast<vec<float, L>>(v);
  } else {
    const auto bits = convert<unsigned int>(v);
    const auto magnitude = bits & ((1u << (D::exponent + D::mantissa)) - 1);
    const auto sign = (bits >> (D::exponent + D::mantissa)) << 31;
    constexpr int bias = (1 << (D::exponent - 1)) - 1;
    const float scale = __builtin_bit_cast(float, static_cast<unsigned int>(127 + 127 - bias) << 23);
    auto r = bit_cast<vec<unsigned int, L>>(bit_cast<vec<float, L>>(magnitude << (23 - D::mantissa)) * scale);
    constexpr unsigned int top =
        D::finite ? (1u << (D::exponent + D::mantissa)) - 1 : ((1u << D::exponent) - 1) << D::mantissa;
    const auto special = D::finite ? r | 0x7fc00000u : r | 0x7f800000u;
    if constexpr (L == 1) {
      r = magnitude >= top ? special : r;
    } else {
      r = (magnitude >= top) ? special : r;
    }
    return bit_cast<vec<float, L>>(r | sign);
  }
}
template <class D, class V>
inline auto narrow_float(V v) {  // f32 -> D as it is held, to nearest even
  constexpr int L = lane_count<V>;
  using U = vec<unsigned int, L>;
  const U bits = bit_cast<U>(v);
  const U magnitude = bits & 0x7fffffffu;
  constexpr int drop = 23 - D::mantissa;
  U r;
  if constexpr (same<D, bf16>) {
    r = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
    return v == v ? r : U{} + 0x7fc00000u;
  } else {
    constexpr int bias = (1 << (D::exponent - 1)) - 1;
    const U normal = (magnitude - (static_cast<unsigned int>(127 - bias) << 23) + ((1u << (drop - 1)) - 1) +
                      ((magnitude >> drop) & 1u)) >>
                     drop;
    // Adding this power of two leaves a subnormal result, rounded, in the low bits of the sum.
    constexpr unsigned int magic = static_cast<unsigned int>(127 - bias + drop + 1) << 23;
    const U subnormal = bit_cast<U>(bit_cast<vec<float, L>>(magnitude) + __builtin_bit_cast(float, magic)) - magic;
    constexpr unsigned int top = ((1u << D::exponent) - 1) << D::mantissa;
    constexpr unsigned int nan = D::finite ? top | ((1u << D::mantissa) - 1) : top | (1u << (D::mantissa - 1));
    // The first magnitude that is out of range whatever the rounding.
    constexpr unsigned int limit = D::finite ? 0x43f00000u : static_cast<unsigned int>(127 + bias + 1) << 23;
    r = magnitude < (static_cast<unsigned int>(128 - bias) << 23) ? subnormal : normal;
    r = magnitude >= limit ? U{} + (D::finite ? nan : top) : r;
    r = magnitude > 0x7f800000u ? U{} + nan : r;
    r |= (bits >> 31) << (D::exponent + D::mantissa);
    return convert<typename D::element>(r);
  }
}
#ifdef __F16C__
typedef float f32x4 __attribute__((vector_size(16)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef short i16x8 __attribute__((vector_size(16)));
template <>
inline auto widen_float<f16, unsigned short>(unsigned short v) {
  return __builtin_ia32_vcvtph2ps(i16x8{static_cast<short>(v)})[0];
}
template <>
inline auto narrow_float<f16, float>(float v) {
  return static_cast<unsigned short>(__builtin_ia32_vcvtps2ph(f32x4{v}, 0)[0]);
}
#ifdef __AVX512F__
typedef float f32x16 __attribute__((vector_size(64)));
typedef short i16x16 __attribute__((vector_size(32)));
#endif
template <class V>
inline auto widen_half(V v) {  // a multiple of 8 lanes
  constexpr int L = lane_count<V>;
#ifdef __AVX512F__
  if constexpr (L == 16) return __builtin_ia32_vcvtph2ps512_mask(bit_cast<i16x16>(v), f32x16{}, -1, 4);
  else
#endif
  if constexpr (L == 8) {
    return __builtin_ia32_vcvtph2ps256(bit_cast<i16x8>(v));
  } else {
    return join(widen_half(part<L / 2, 0>(v)), widen_half(part<L / 2, L / 2>(v)));
  }
}
template <class V>
inline auto narrow_half(V v) {
  constexpr int L = lane_count<V>;
#ifdef __AVX512F__
  if constexpr (L == 16)
    return bit_cast<vec<unsigned short, 16>>(__builtin_ia32_vcvtps2ph512_mask(v, 0, i16x16{}, -1));
  else
#endif
  if constexpr (L == 8) {
    return bit_cast<vec<unsigned short, 8>>(__builtin_ia32_vcvtps2ph256(v, 0));
  } else {
    return join(narrow_half(part<L / 2, 0>(v)), narrow_half(part<L / 2, L / 2>(v)));
  }
}
#endif

template <class From, class V>
inline auto to_compute(V v) {  // narrow floats -> f32, others unchanged
  if constexpr (!From::narrow) {
    return v;
#ifdef __F16C__
  } else if constexpr (same<From, f16> && lane_count<V> % 8 == 0) {
    return widen_half(v);
#endif
  } else {
    return widen_float<From>(v);
  }
}
// The value, of which the compiler knows nothing. It would convert a constant that the target cannot hold to another number than the machine does.
template <class V>
inline V computed(V v) {
#if defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#else
  asm("" : "+m"(v));
#endif
  return v;
}
// Truncated towards zero. What does not fit is what the machine makes of it in i32 for narrow integers, in i64 for u8 and wide ones, then wrapped: as
// ATen converts. The machine's conversions to unsigned types would saturate in some widths and wrap in others.
template <class To, class V>
inline auto to_whole(V v) {
  v = computed(v);
  if constexpr (same<To, unsigned long long>) {
    const auto high = v - 9223372036854775808.0f;  // exact where it is used: v >= 2^63
    const auto wrapped = convert<To>(convert<long long>(v));
    const auto above = convert<To>(convert<long long>(high)) ^ (1ull << 63);
    if constexpr (lane_count<V> == 1) {
      return v >= 9223372036854775808.0f ? above : wrapped;
    } else {
      return select(as_mask<lane_count<V>>(v >= 9223372036854775808.0f), above, wrapped);
    }
  } else if constexpr (same<To, long long> || same<To, int>) {
    return convert<To>(v);
  } else if constexpr (sizeof(To) < 4 && (sizeof(v) / lane_count<V> == 4 || !same<To, unsigned char>)) {
    return convert<To>(convert<int>(v));  // floats that i32 does not hold are multiples of 256, so that their last byte is 0 in i64 too
  } else {
    return convert<To>(convert<long long>(v));
  }
}
template <class To, class From, class V>
inline auto cast(V v) {
  constexpr int L = lane_count<V>;
  constexpr int from_bytes = sizeof(typename From::compute), to_bytes = sizeof(typename To::compute);
  if constexpr (same<To, From>) {
    return v;
  } else if constexpr (L > 1 && L * (from_bytes > to_bytes ? from_bytes : to_bytes) > CXXI_VECTOR_BYTES) {
    return join(cast<To, From>(part<L / 2, 0>(v)), cast<To, From>(part<L / 2, L / 2>(v)));
  } else if constexpr (same<From, boolean>) {
    return cast<To, u8>(to_memory<boolean, L>(v));
  } else if constexpr (same<To, boolean>) {
    const auto wide = to_compute<From>(v);
    return as_mask<L>(wide != 0);
  } else if constexpr (To::narrow) {
    const auto single = convert<float>(to_compute<From>(v));
#ifdef __F16C__
    if constexpr (same<To, f16> && L % 8 == 0)
      return narrow_half(single);
    else
      return narrow_float<To>(single);
#else
    return narrow_float<To>(single);
#endif
  } else {
    const auto wide = to_compute<From>(v);
    if constexpr ((same<typename From::compute, float> || same<typename From::compute, double>)&&!same<To, f32> &&
                  !same<To, f64>) {
      return to_whole<typename To::element>(wide);
    } else {
      return convert<typename To::element>(wide);
    }
  }
}

// Elements of memory combined, lane after lane, with the lanes of a value whose mask is true: op in the compute type C,
// then rounded. Lanes may meet.
template <class D, class C, int L, class M, class F, class V, class Op>
inline void combine(M m, typename D::element* p, F offset, V value, Op op) {
  for (int l = 0; l < L; ++l) {
    if (!lane(m, l)) continue;
    typename D::element* const at = p + offset(l);
    store<D, 1>(at, cast<D, C>(op(cast<C, D>(load<D, 1>(at)), cast<C, D>(lane(value, l)))));
  }
}

}  // namespace cxxi

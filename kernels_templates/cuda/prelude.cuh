// What every CUDA unit starts with: storage types, conversions, primitives. No headers: NVRTC sees this text alone.
//
// Compute types: float, double, signed char, short, int, long long, their unsigned forms, bool. Storage types of narrow
// floats are structs of raw bits; cxxi_cast<To>(value) converts between any two of them as ATen converts.
// The same text compiles for the host, where tests/emulation has the intrinsics.
struct alignas(2) cxxi_bf16 {
  unsigned short bits;
};
struct alignas(2) cxxi_f16 {
  unsigned short bits;
};
struct cxxi_f8e4m3fn {
  unsigned char bits;
};
struct cxxi_f8e5m2 {
  unsigned char bits;
};

#include "intrinsics/cuda/language.cuh"
#include "intrinsics/cuda/conversions.cuh"
#include "intrinsics/cuda/arithmetic.cuh"
#include "intrinsics/cuda/threads.cuh"
#include "intrinsics/cuda/atomics.cuh"
#include "intrinsics/cuda/registers.cuh"
// ---- Narrow floats -----------------------------------------------------------------------------------------------
CXXI_FN float cxxi_to_float(cxxi_bf16 v) { return cxxi_bits_float((unsigned int)(v.bits) << 16); }

// Round to nearest even into a format of E exponent and M mantissa bits, as c10's float8 types do.
template <int E, int M, bool Finite>
CXXI_FN unsigned char cxxi_float_to_f8(float value) {
  const int bias = (1 << (E - 1)) - 1;
  const unsigned int bits = cxxi_float_bits(value);
  const unsigned char sign = (unsigned char)((bits >> 24) & 0x80u);
  const unsigned int magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7fu;
  const int exponent = int(magnitude >> 23) - 127;
  const int shift = exponent < 1 - bias ? 23 - M + (1 - bias - exponent) : 23 - M;
  unsigned int code;
  if (shift > 31) {
    code = 0;
  } else {
    const unsigned int full = exponent < 1 - bias ? (magnitude & 0x7fffffu) | 0x800000u
                                                  : magnitude - ((unsigned int)(127 - bias) << 23);
    const unsigned int kept = full >> shift;
    const unsigned int rest = full & ((1u << shift) - 1u), half = 1u << (shift - 1);
    code = kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u);
  }
  const unsigned int limit = Finite ? 0x7eu : (((1u << E) - 1u) << M) - 1u;  // the largest finite code
  if (code > limit) code = Finite ? 0x7fu : ((1u << E) - 1u) << M;
  return sign | (unsigned char)(code);
}
template <int E, int M, bool Finite>
CXXI_FN float cxxi_f8_to_float(unsigned char code) {
  const int bias = (1 << (E - 1)) - 1;
  const unsigned int sign = (unsigned int)(code & 0x80u) << 24;
  const unsigned int exponent = (code & 0x7fu) >> M, mantissa = code & ((1u << M) - 1u);
  if (Finite ? (code & 0x7fu) == 0x7fu : exponent == (1u << E) - 1u)
    return cxxi_bits_float(sign | 0x7f800000u | (Finite || mantissa ? 0x400000u : 0u));
  if (exponent == 0) {
    const float value = float(mantissa) * cxxi_bits_float((unsigned int)(127 + 1 - bias - M) << 23);
    return sign ? -value : value;
  }
  return cxxi_bits_float(sign | ((exponent + (unsigned int)(127 - bias)) << 23) | (mantissa << (23 - M)));
}
CXXI_FN float cxxi_to_float(cxxi_f8e4m3fn v) { return cxxi_f8_to_float<4, 3, true>(v.bits); }
CXXI_FN float cxxi_to_float(cxxi_f8e5m2 v) { return cxxi_f8_to_float<5, 2, false>(v.bits); }

// ---- Casts -------------------------------------------------------------------------------------------------------
template <class From>
CXXI_FN From cxxi_widen(From v) {
  return v;
}
CXXI_FN float cxxi_widen(cxxi_bf16 v) { return cxxi_to_float(v); }
CXXI_FN float cxxi_widen(cxxi_f16 v) { return cxxi_to_float(v); }
CXXI_FN float cxxi_widen(cxxi_f8e4m3fn v) { return cxxi_to_float(v); }
CXXI_FN float cxxi_widen(cxxi_f8e5m2 v) { return cxxi_to_float(v); }

template <class To>
struct cxxi_narrow {
  template <class From>
  CXXI_FN static To from(From v) {
    return static_cast<To>(v);
  }
};
template <>
struct cxxi_narrow<bool> {
  template <class From>
  CXXI_FN static bool from(From v) {
    return v != From(0);
  }
};
// By way of 64 bits, as c10::convert: negative numbers wrap.
template <>
struct cxxi_narrow<unsigned char> {
  template <class From>
  CXXI_FN static unsigned char from(From v) {
    return static_cast<unsigned char>(static_cast<long long>(v));
  }
};
template <>
struct cxxi_narrow<cxxi_bf16> {
  template <class From>
  CXXI_FN static cxxi_bf16 from(From v) {
    return cxxi_to_bf16(float(v));
  }
};
template <>
struct cxxi_narrow<cxxi_f16> {
  template <class From>
  CXXI_FN static cxxi_f16 from(From v) {
    return cxxi_to_f16(float(v));
  }
};
template <>
struct cxxi_narrow<cxxi_f8e4m3fn> {
  template <class From>
  CXXI_FN static cxxi_f8e4m3fn from(From v) {
    return {cxxi_float_to_f8<4, 3, true>(float(v))};
  }
};
template <>
struct cxxi_narrow<cxxi_f8e5m2> {
  template <class From>
  CXXI_FN static cxxi_f8e5m2 from(From v) {
    return {cxxi_float_to_f8<5, 2, false>(float(v))};
  }
};
template <class To, class From>
CXXI_FN To cxxi_cast(From v) {
  return cxxi_narrow<To>::from(cxxi_widen(v));
}
// Rounded to a narrow float and widened again.
template <class Narrow>
CXXI_FN float cxxi_rounded(float value) {
  return cxxi_to_float(cxxi_narrow<Narrow>::from(value));
}
template <>
CXXI_FN float cxxi_rounded<cxxi_bf16>(float value) {
  return cxxi_round_to_bf16(value);
}
template <>
CXXI_FN float cxxi_rounded<cxxi_f16>(float value) {
  return cxxi_round_to_f16(value);
}

// ---- Primitives --------------------------------------------------------------------------------------------------
#define CXXI_PRIMITIVE(name, single, real)                       \
  CXXI_FN float cxxi_##name(float a) { return single(a); }       \
  CXXI_FN double cxxi_##name(double a) { return real(a); }
CXXI_PRIMITIVE(sqrt, sqrtf, sqrt)
CXXI_PRIMITIVE(floor, floorf, floor)
CXXI_PRIMITIVE(ceil, ceilf, ceil)
CXXI_PRIMITIVE(trunc, truncf, trunc)
CXXI_PRIMITIVE(round, nearbyintf, nearbyint)
CXXI_PRIMITIVE(exp, expf, exp)
CXXI_PRIMITIVE(exp2, exp2f, exp2)
CXXI_PRIMITIVE(expm1, expm1f, expm1)
CXXI_PRIMITIVE(log, logf, log)
CXXI_PRIMITIVE(log2, log2f, log2)
CXXI_PRIMITIVE(log10, log10f, log10)
CXXI_PRIMITIVE(log1p, log1pf, log1p)
CXXI_PRIMITIVE(sin, sinf, sin)
CXXI_PRIMITIVE(cos, cosf, cos)
CXXI_PRIMITIVE(tan, tanf, tan)
CXXI_PRIMITIVE(asin, asinf, asin)
CXXI_PRIMITIVE(acos, acosf, acos)
CXXI_PRIMITIVE(atan, atanf, atan)
CXXI_PRIMITIVE(sinh, sinhf, sinh)
CXXI_PRIMITIVE(cosh, coshf, cosh)
CXXI_PRIMITIVE(tanh, tanhf, tanh)
CXXI_PRIMITIVE(asinh, asinhf, asinh)
CXXI_PRIMITIVE(acosh, acoshf, acosh)
CXXI_PRIMITIVE(atanh, atanhf, atanh)
CXXI_PRIMITIVE(erf, erff, erf)
CXXI_PRIMITIVE(erfc, erfcf, erfc)
CXXI_PRIMITIVE(lgamma, lgammaf, lgamma)
#undef CXXI_PRIMITIVE

#define CXXI_PRIMITIVE(name, single, real)                                   \
  CXXI_FN float cxxi_##name(float a, float b) { return single(a, b); }       \
  CXXI_FN double cxxi_##name(double a, double b) { return real(a, b); }
CXXI_PRIMITIVE(copysign, copysignf, copysign)
CXXI_PRIMITIVE(real_fmod, fmodf, fmod)
CXXI_PRIMITIVE(real_pow, powf, pow)
CXXI_PRIMITIVE(atan2, atan2f, atan2)
CXXI_PRIMITIVE(hypot, hypotf, hypot)
CXXI_PRIMITIVE(larger, fmaxf, fmax)
CXXI_PRIMITIVE(smaller, fminf, fmin)
#undef CXXI_PRIMITIVE

// In double the approximations are the functions.
CXXI_FN double cxxi_sin_approx(double a) { return sin(a); }
CXXI_FN double cxxi_cos_approx(double a) { return cos(a); }
CXXI_FN double cxxi_tan_approx(double a) { return tan(a); }
CXXI_FN double cxxi_exp_approx(double a) { return exp(a); }
CXXI_FN double cxxi_log_approx(double a) { return log(a); }

#define CXXI_PRIMITIVE(name, type, result) \
  CXXI_FN type cxxi_##name(type a) {       \
    type sine, cosine;                     \
    cxxi_sincospi(a, &sine, &cosine);      \
    return result;                         \
  }
CXXI_PRIMITIVE(sinpi, float, sine)
CXXI_PRIMITIVE(sinpi, double, sine)
CXXI_PRIMITIVE(cospi, float, cosine)
CXXI_PRIMITIVE(cospi, double, cosine)
#undef CXXI_PRIMITIVE

CXXI_FN float cxxi_fma(float a, float b, float c) { return fmaf(a, b, c); }
CXXI_FN double cxxi_fma(double a, double b, double c) { return fma(a, b, c); }
CXXI_FN float cxxi_infinity(float) { return cxxi_bits_float(0x7f800000u); }
CXXI_FN double cxxi_infinity(double) { return double(cxxi_bits_float(0x7f800000u)); }
CXXI_FN float cxxi_nan(float) { return cxxi_bits_float(0x7fc00000u); }
CXXI_FN double cxxi_nan(double) { return double(cxxi_bits_float(0x7fc00000u)); }
CXXI_FN float cxxi_abs(float a) { return fabsf(a); }
CXXI_FN double cxxi_abs(double a) { return fabs(a); }
CXXI_FN bool cxxi_signbit(float a) { return (cxxi_float_bits(a) >> 31) != 0u; }
CXXI_FN bool cxxi_signbit(double a) { return copysign(1.0, a) < 0.0; }
template <class T>
CXXI_FN bool cxxi_signbit(T a) {
  return a < T(0);
}
template <class T>
CXXI_FN T cxxi_abs(T a) {
  return a < T(0) ? T(T(0) - a) : a;
}

// A divisor that many dividends share. The quotients have the bits of a / b: with the correctly rounded 1 / b, one correction of a
// quotient by its remainder rounds correctly, as long as nothing on the way comes near the ends of the exponents' range. In
// double nothing does, and rounding from there is harmless.
struct cxxi_divisor {
  float value, inverse, largest;  // largest: what dividends of the short way may add up to
  CXXI_FN static cxxi_divisor of(float b) {
    const bool usual = b >= 9.5367431640625e-07f && b <= 1048576.0f;  // 2 ^ -20, 2 ^ 20
    return {b, 1.0f / b, usual ? 1.2676506e+30f : -1.0f};             // 2 ^ 100
  }
  CXXI_FN float corrected(float a) const {
    const float quotient = cxxi_mul(a, inverse);
    return cxxi_fma(cxxi_fma(-quotient, value, a), inverse, quotient);
  }
  CXXI_FN static float through_double(double a, double b, double b_inverse) {
    const double quotient = a * b_inverse;
    const double fixed = fma(fma(-quotient, b, a), b_inverse, quotient);
    return float(fixed != fixed || quotient == 0.0 ? quotient : fixed);
  }
  template <int N>
  CXXI_FN void divide_all(float (&a)[N]) const {
    float smallest = fabsf(a[0]), sum = fabsf(a[0]);
#pragma unroll
    for (int e = 1; e < N; ++e) {
      smallest = fminf(smallest, fabsf(a[e]));
      sum += fabsf(a[e]);
    }
    if (smallest >= 7.888609e-31f && sum <= largest) {  // 2 ^ -100
#pragma unroll
      for (int e = 0; e < N; ++e) a[e] = corrected(a[e]);
    } else {
      const double b = double(value), b_inverse = 1.0 / b;
#pragma unroll
      for (int e = 0; e < N; ++e) a[e] = through_double(double(a[e]), b, b_inverse);
    }
  }
  CXXI_FN float divide(float a) const {
    float one[1] = {a};
    divide_all(one);
    return one[0];
  }
};

// Integers wrap: arithmetic on the unsigned 64-bit value, cut to the type.
template <class T>
CXXI_FN T cxxi_add(T a, T b) {
  return T((unsigned long long)(a) + (unsigned long long)(b));
}
template <class T>
CXXI_FN T cxxi_sub(T a, T b) {
  return T((unsigned long long)(a) - (unsigned long long)(b));
}
template <class T>
CXXI_FN T cxxi_mul(T a, T b) {
  return T((unsigned long long)(a) * (unsigned long long)(b));
}
template <class T>
CXXI_FN T cxxi_neg(T a) {
  return T(0ULL - (unsigned long long)(a));
}
template <class T>
CXXI_FN T cxxi_fma(T a, T b, T c) {
  return cxxi_add(cxxi_mul(a, b), c);
}
template <class T>
CXXI_FN T cxxi_div(T a, T b) {
  return a / b;
}
template <class T>
CXXI_FN T cxxi_larger(T a, T b) {
  return a > b ? a : b;
}
template <class T>
CXXI_FN T cxxi_smaller(T a, T b) {
  return a < b ? a : b;
}
// a + value * b * c, in the order in which ATen's CUDA kernel multiplies (its CPU kernel has another).
template <class T>
CXXI_FN T cxxi_addcmul(T a, T b, T c, T value) {
  return value == T(1) ? cxxi_fma(b, c, a) : cxxi_fma(value, cxxi_mul(b, c), a);
}

#include "shared/scalar_math.h"

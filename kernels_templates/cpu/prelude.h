// Scalar primitives for the host compiler, without headers (<cmath> costs half a second a unit): builtins only.
// Every unit starts with this text. Elements of narrow float types are handled by vector.h.
#define CXXI_FN static inline __attribute__((always_inline, unused))
// One element, as opposed to a vector of them: vector_ops.h has the vector forms, others are applied lane by lane.
template <class T>
concept cxxi_number = requires(T a) { static_cast<bool>(a); };
#define CXXI_NUMBER cxxi_number

#define CXXI_PRIMITIVE(name, builtin)                                        \
  CXXI_FN float cxxi_##name(float a) { return __builtin_##builtin##f(a); }   \
  CXXI_FN double cxxi_##name(double a) { return __builtin_##builtin(a); }
CXXI_PRIMITIVE(sqrt, sqrt)
CXXI_PRIMITIVE(floor, floor)
CXXI_PRIMITIVE(ceil, ceil)
CXXI_PRIMITIVE(trunc, trunc)
CXXI_PRIMITIVE(round, nearbyint)
CXXI_PRIMITIVE(exp, exp)
CXXI_PRIMITIVE(exp2, exp2)
CXXI_PRIMITIVE(expm1, expm1)
CXXI_PRIMITIVE(log, log)
CXXI_PRIMITIVE(log2, log2)
CXXI_PRIMITIVE(log10, log10)
CXXI_PRIMITIVE(log1p, log1p)
CXXI_PRIMITIVE(sin, sin)
CXXI_PRIMITIVE(cos, cos)
CXXI_PRIMITIVE(tan, tan)
CXXI_PRIMITIVE(asin, asin)
CXXI_PRIMITIVE(acos, acos)
CXXI_PRIMITIVE(atan, atan)
CXXI_PRIMITIVE(sinh, sinh)
CXXI_PRIMITIVE(cosh, cosh)
CXXI_PRIMITIVE(tanh, tanh)
CXXI_PRIMITIVE(asinh, asinh)
CXXI_PRIMITIVE(acosh, acosh)
CXXI_PRIMITIVE(atanh, atanh)
CXXI_PRIMITIVE(erf, erf)
CXXI_PRIMITIVE(erfc, erfc)
CXXI_PRIMITIVE(lgamma, lgamma)
#undef CXXI_PRIMITIVE

#define CXXI_PRIMITIVE(name, builtin)                                                          \
  CXXI_FN float cxxi_##name(float a, float b) { return __builtin_##builtin##f(a, b); }         \
  CXXI_FN double cxxi_##name(double a, double b) { return __builtin_##builtin(a, b); }
CXXI_PRIMITIVE(copysign, copysign)
CXXI_PRIMITIVE(real_fmod, fmod)
CXXI_PRIMITIVE(real_pow, pow)
CXXI_PRIMITIVE(atan2, atan2)
CXXI_PRIMITIVE(hypot, hypot)
#undef CXXI_PRIMITIVE

CXXI_FN unsigned long long cxxi_whole_product(unsigned int a, unsigned int b) { return (unsigned long long)(a) * b; }
CXXI_FN float cxxi_sinpi(float a) { return __builtin_sinf(3.14159265358979323846f * a); }
CXXI_FN double cxxi_sinpi(double a) { return __builtin_sin(3.14159265358979323846 * a); }
CXXI_FN float cxxi_cospi(float a) { return __builtin_cosf(3.14159265358979323846f * a); }
CXXI_FN double cxxi_cospi(double a) { return __builtin_cos(3.14159265358979323846 * a); }
CXXI_FN float cxxi_rsqrt(float a) { return 1.0f / __builtin_sqrtf(a); }
CXXI_FN double cxxi_rsqrt(double a) { return 1.0 / __builtin_sqrt(a); }
CXXI_FN float cxxi_infinity(float) { return __builtin_inff(); }
CXXI_FN double cxxi_infinity(double) { return __builtin_inf(); }
// By their bits: vectors of the builtin are a pattern that GCC 12 makes for AVX-512 and then does not know.
CXXI_FN bool cxxi_signbit(float a) { return __builtin_bit_cast(int, a) < 0; }
CXXI_FN bool cxxi_signbit(double a) { return __builtin_bit_cast(long long, a) < 0; }
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_signbit(T a) {
  return a < T(0);
}
CXXI_FN float cxxi_abs(float a) { return __builtin_fabsf(a); }
CXXI_FN double cxxi_abs(double a) { return __builtin_fabs(a); }
template <CXXI_NUMBER T>
CXXI_FN T cxxi_abs(T a) {
  return a < T(0) ? T(T(0) - a) : a;
}

// Units are compiled with -ffp-contract=off: a product is rounded before it is added, but for cxxi_fma. ATen's vectorised
// CPU kernels contract in the same places as the CUDA ones (add with alpha, addcmul, lerp: measured on torch 2.11).
CXXI_FN float cxxi_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
CXXI_FN double cxxi_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <CXXI_NUMBER T>
CXXI_FN T cxxi_fma(T a, T b, T c) {
  return T(a * b + c);
}
// Integers wrap as in eager: units are compiled with -fwrapv.
template <CXXI_NUMBER T>
CXXI_FN T cxxi_add(T a, T b) {
  return T(a + b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_sub(T a, T b) {
  return T(a - b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_mul(T a, T b) {
  return T(a * b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_div(T a, T b) {
  return a / b;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_larger(T a, T b) {
  return a > b ? a : b;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_smaller(T a, T b) {
  return a < b ? a : b;
}
// a + value * b * c, in the order in which ATen's CPU kernel multiplies (its CUDA kernel has another).
template <CXXI_NUMBER T>
CXXI_FN T cxxi_addcmul(T a, T b, T c, T value) {
  return cxxi_fma(cxxi_mul(value, b), c, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_neg(T a) {
  return T(T(0) - a);
}
CXXI_FN float cxxi_neg(float a) { return -a; }
CXXI_FN double cxxi_neg(double a) { return -a; }

#define CXXI_COMPARISON(name, op)        \
  template <CXXI_NUMBER T>               \
  CXXI_FN bool cxxi_##name(T a, T b) {   \
    return a op b;                       \
  }
CXXI_COMPARISON(eq, ==)
CXXI_COMPARISON(ne, !=)
CXXI_COMPARISON(lt, <)
CXXI_COMPARISON(le, <=)
CXXI_COMPARISON(gt, >)
CXXI_COMPARISON(ge, >=)
#undef CXXI_COMPARISON

#include "shared/scalar_math.h"

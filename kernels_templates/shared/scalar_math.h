// Scalar ops that are the same text on every target: built from the primitives of the target's prelude (cxxi_exp,
// cxxi_mul, ...), templates over the compute type. Spelled as ATen's kernels compute them, so that contraction inside an
// op happens as there; an op that would end in a plain product ends in cxxi_mul, which never contracts into the next op.
//
// Where ATen's kernels contract on every target, cxxi_fma says so; what is written with operators may be contracted by
// nvcc (and so by NVRTC) and is not by the host compiler.
//
// CXXI_FN is defined by the prelude, and CXXI_NUMBER where a target overloads these functions for vectors (a concept that
// vectors do not meet). No headers are included: NVRTC and the host compiler see this text alone.
#ifndef CXXI_NUMBER
#define CXXI_NUMBER class
#endif

template <CXXI_NUMBER T>
CXXI_FN T cxxi_square(T a) {
  return cxxi_mul(a, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_reciprocal(T a) {
  return T(1) / a;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_frac(T a) {
  return cxxi_sub(a, cxxi_trunc(a));
}

// ---- Integers (wrapping is the caller's cast to T) -----------------------------------------------------------------
template <CXXI_NUMBER T>
CXXI_FN T cxxi_integer_trunc_div(T a, T b) {
  if (b == T(0)) return T(0);
  if (T(-1) < T(0) && b == T(-1)) return T(T(0) - a);
  return T(a / b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_integer_fmod(T a, T b) {
  if (b == T(0) || (T(-1) < T(0) && b == T(-1))) return T(0);
  return T(a % b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_integer_floor_div(T a, T b) {
  const T q = cxxi_integer_trunc_div(a, b);
  return cxxi_integer_fmod(a, b) != T(0) && (a < T(0)) != (b < T(0)) ? T(q - T(1)) : q;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_integer_remainder(T a, T b) {
  const T r = cxxi_integer_fmod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? T(r + b) : r;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_integer_pow(T a, T b) {
  if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % T(2) ? T(-1) : T(1)) : T(0);
  T result = T(1);
  while (b != T(0)) {
    if (b % T(2)) result = T(result * a);
    a = T(a * a);
    b = T(b / T(2));
  }
  return result;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_shift_left(T a, T b) {
  const int width = 8 * int(sizeof(T));
  return b < T(0) || b >= T(width) ? T(0) : T((unsigned long long)(a) << int(b));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_shift_right(T a, T b) {
  const int width = 8 * int(sizeof(T));
  if (b < T(0) || b >= T(width)) return a < T(0) ? T(-1) : T(0);
  return T(a >> int(b));
}

#include "shared/philox.h"
// ---- Division with a rounding mode; ATen's div_floor_floating (c10/util/generic_math.h), re-expressed -----------------
template <CXXI_NUMBER T>
CXXI_FN T cxxi_real_floor_div(T a, T b) {
  if (b == T(0)) return a / b;
  const T modulus = cxxi_real_fmod(a, b);
  T quotient = (a - modulus) / b;
  if (modulus != T(0) && (b < T(0)) != (modulus < T(0))) quotient -= T(1);
  if (quotient == T(0)) return cxxi_copysign(T(0), a / b);
  T floored = cxxi_floor(quotient);
  if (quotient - floored > T(0.5)) floored += T(1);
  return floored;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_real_remainder(T a, T b) {
  T modulus = cxxi_real_fmod(a, b);
  if (modulus != T(0) && (b < T(0)) != (modulus < T(0))) modulus += b;
  return modulus;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_real_trunc_div(T a, T b) {
  return cxxi_trunc(a / b);
}

// ---- Minimum, maximum, clamp: NaN propagates. On the CPU the second operand of two zeros wins: it is the value in eager's
// clamp, and the first operand of its fmax. On a GPU the instruction's zero wins, whatever the order.
template <CXXI_NUMBER T>
CXXI_FN T cxxi_maximum(T a, T b) {
  return a != a ? a : b != b ? b : cxxi_larger(a, b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_minimum(T a, T b) {
  return a != a ? a : b != b ? b : cxxi_smaller(a, b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_clamp_min(T a, T b) {
  return cxxi_maximum(b, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_clamp_max(T a, T b) {
  return cxxi_minimum(b, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_clamp(T a, T low, T high) {
  if (a != a) return a;
  if (low != low) return low;
  if (high != high) return high;
  return cxxi_smaller(high, cxxi_larger(low, a));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_fmax(T a, T b) {
  return a != a ? b : b != b ? a : cxxi_larger(b, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_fmin(T a, T b) {
  return a != a ? b : b != b ? a : cxxi_smaller(b, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_sign(T a) {
  return T((T(0) < a) - (a < T(0)));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_threshold(T a, T threshold, T value) {
  return a <= threshold ? value : a;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_relu(T a) {
  return a != a ? a : cxxi_larger(a, T(0));
}

// ---- Logic -----------------------------------------------------------------------------------------------------------
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_logical_and(T a, T b) {
  return a != T(0) && b != T(0);
}
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_logical_or(T a, T b) {
  return a != T(0) || b != T(0);
}
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_logical_xor(T a, T b) {
  return (a != T(0)) != (b != T(0));
}
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_logical_not(T a) {
  return a == T(0);
}
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_isnan(T a) {
  return a != a;
}
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_isfinite(T a) {
  return cxxi_abs(a) < cxxi_infinity(a);
}
template <CXXI_NUMBER T>
CXXI_FN bool cxxi_isinf(T a) {
  return cxxi_abs(a) == cxxi_infinity(a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_bit_and(T a, T b) {
  return T(a & b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_bit_or(T a, T b) {
  return T(a | b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_bit_xor(T a, T b) {
  return T(a ^ b);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_bit_not(T a) {
  return T(~a);
}
CXXI_FN bool cxxi_bit_not(bool a) { return !a; }

// ---- Combined arithmetic: one rounding scheme inside, as ATen's kernels contract ----------------------------------------
template <CXXI_NUMBER T>
CXXI_FN T cxxi_add_alpha(T a, T b, T alpha) {
  return cxxi_fma(alpha, b, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_sub_alpha(T a, T b, T alpha) {
  return cxxi_fma(T(-alpha), b, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_addcdiv(T a, T b, T c, T value) {
  return cxxi_fma(value, b / c, a);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_lerp(T a, T b, T weight) {
  return cxxi_abs(weight) < T(0.5) ? cxxi_fma(weight, b - a, a) : cxxi_fma(-(b - a), T(1) - weight, b);
}

// ---- Activations -----------------------------------------------------------------------------------------------------
template <CXXI_NUMBER T>
CXXI_FN T cxxi_sigmoid(T a) {
  return T(1) / (T(1) + cxxi_exp(-a));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_silu(T a) {
  return a / (T(1) + cxxi_exp(-a));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_gelu(T a) {
  return cxxi_mul(a * T(0.5), T(1) + cxxi_erf(a * T(0.70710678118654752440)));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_gelu_tanh(T a) {
  const T cube = a * a * a;
  const T inner = T(0.79788456080286535588) * cxxi_fma(T(0.044715), cube, a);
  return cxxi_mul(T(0.5) * a, T(1) + cxxi_tanh(inner));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_mish(T a) {
  return cxxi_mul(a, cxxi_tanh(cxxi_log1p(cxxi_exp(a))));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_softplus(T a, T beta, T threshold) {
  return a * beta > threshold ? a : cxxi_log1p(cxxi_exp(a * beta)) / beta;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_elu(T a, T alpha, T scale, T input_scale) {
  const T negative = alpha * scale;
  return a > T(0) ? cxxi_mul(a, scale) : cxxi_mul(cxxi_expm1(a * input_scale), negative);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_leaky_relu(T a, T slope) {
  return a > T(0) ? a : cxxi_mul(a, slope);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_hardsigmoid(T a) {
  return cxxi_mul(cxxi_clamp(a + T(3), T(0), T(6)), T(1.0f / 6.0f));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_hardswish(T a) {
  return cxxi_mul(a * cxxi_clamp(a + T(3), T(0), T(6)), T(1.0f / 6.0f));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_log_sigmoid(T a) {
  return cxxi_minimum(T(0), a) - cxxi_log1p(cxxi_exp(-cxxi_abs(a)));
}

// ---- Logarithms and the like that guard a special case ------------------------------------------------------------------
template <CXXI_NUMBER T>
CXXI_FN T cxxi_logaddexp(T a, T b) {
  if (a == b && cxxi_isinf(a)) return a;
  return cxxi_maximum(a, b) + cxxi_log1p(cxxi_exp(-cxxi_abs(a - b)));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_logaddexp2(T a, T b) {
  if (a == b && cxxi_isinf(a)) return a;
  return cxxi_fma(cxxi_log1p(cxxi_exp2(-cxxi_abs(a - b))), T(1.44269504088896340736), cxxi_maximum(a, b));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_xlogy(T a, T b) {
  if (b != b) return b;
  return a == T(0) ? T(0) : cxxi_mul(a, cxxi_log(b));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_sinc(T a) {
  const T product = T(3.14159265358979323846) * a;
  return a == T(0) ? T(1) : cxxi_sin(product) / product;
}

// ---- Their derivatives -----------------------------------------------------------------------------------------------
template <CXXI_NUMBER T>
CXXI_FN T cxxi_sigmoid_backward(T grad, T out) {
  return cxxi_mul(grad * (T(1) - out), out);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_tanh_backward(T grad, T out) {
  return cxxi_mul(grad, cxxi_fma(-out, out, T(1)));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_silu_backward(T grad, T a) {
  const T s = T(1) / (T(1) + cxxi_exp(-a));
  return cxxi_mul(grad * s, cxxi_fma(a, T(1) - s, T(1)));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_mish_backward(T grad, T a) {
  const T s = T(1) / (T(1) + cxxi_exp(-a));
  const T t = cxxi_tanh(cxxi_log1p(cxxi_exp(a)));
  return cxxi_mul(grad, cxxi_fma(a * s, cxxi_fma(-t, t, T(1)), t));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_gelu_backward(T grad, T a) {
  const T cdf = T(0.5) * (T(1) + cxxi_erf(a * T(0.70710678118654752440)));
  const T pdf = cxxi_exp(T(-0.5) * a * a) * T(0.39894228040143267794);
  return cxxi_mul(grad, cdf + a * pdf);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_gelu_tanh_backward(T grad, T a) {
  const T beta = T(0.79788456080286535588), kappa = T(0.044715);
  const T square = a * a;
  const T t = cxxi_tanh(beta * cxxi_fma(kappa, square * a, a));
  const T left = T(0.5) * a, right = T(1) + t;
  const T left_derivative = T(0.5) * right;
  const T tanh_derivative = cxxi_fma(-t, t, T(1));
  const T inner_derivative = beta * cxxi_fma(T(3) * kappa, square, T(1));
  return cxxi_mul(grad, left_derivative + left * tanh_derivative * inner_derivative);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_threshold_backward(T grad, T a, T threshold) {
  return a <= threshold ? T(0) : grad;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_hardtanh_backward(T grad, T a, T low, T high) {
  return a <= low || a >= high ? T(0) : grad;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_leaky_relu_backward(T grad, T a, T slope) {
  return a > T(0) ? grad : cxxi_mul(grad, slope);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_hardsigmoid_backward(T grad, T a) {
  return a > T(-3) && a < T(3) ? cxxi_mul(grad, T(1.0f / 6.0f)) : T(0);
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_hardswish_backward(T grad, T a) {
  if (a <= T(-3)) return T(0);
  if (a < T(3)) return cxxi_mul(grad, a / T(3) + T(0.5));
  return grad;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_softplus_backward(T grad, T a, T beta, T threshold) {
  const T z = cxxi_exp(a * beta);
  return a * beta > threshold ? grad : grad * z / (z + T(1));
}

// ---- Integer or real by operand type -----------------------------------------------------------------------------------
#define CXXI_BY_KIND(name)                                                                  \
  CXXI_FN float cxxi_##name(float a, float b) { return cxxi_real_##name(a, b); }            \
  CXXI_FN double cxxi_##name(double a, double b) { return cxxi_real_##name(a, b); }         \
  template <CXXI_NUMBER T>                                                                        \
  CXXI_FN T cxxi_##name(T a, T b) {                                                         \
    return cxxi_integer_##name(a, b);                                                       \
  }
CXXI_BY_KIND(floor_div)
CXXI_BY_KIND(trunc_div)
CXXI_BY_KIND(remainder)
CXXI_BY_KIND(fmod)
CXXI_BY_KIND(pow)
#undef CXXI_BY_KIND

// ---- Index arithmetic of expressions -----------------------------------------------------------------------------------
CXXI_FN long long cxxi_floor_mod(long long a, long long b) {
  const long long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
CXXI_FN long long cxxi_min_int(long long a, long long b) { return a < b ? a : b; }
CXXI_FN long long cxxi_max_int(long long a, long long b) { return a > b ? a : b; }

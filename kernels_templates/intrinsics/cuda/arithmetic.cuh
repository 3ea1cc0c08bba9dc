// Arithmetic that C++ has no spelling for, or whose spelling the compiler may contract.

// Rounded to nearest, ties to even, denormals kept, and never contracted with what comes before or behind: eager rounds between ops.
CXXI_FN float cxxi_add(float a, float b) { return __fadd_rn(a, b); }
CXXI_FN double cxxi_add(double a, double b) { return __dadd_rn(a, b); }
CXXI_FN float cxxi_sub(float a, float b) { return __fsub_rn(a, b); }
CXXI_FN double cxxi_sub(double a, double b) { return __dsub_rn(a, b); }
CXXI_FN float cxxi_mul(float a, float b) { return __fmul_rn(a, b); }
CXXI_FN double cxxi_mul(double a, double b) { return __dmul_rn(a, b); }
// 1 / sqrt(a): off by at most 2 units in the last place, in double by 1.
CXXI_FN float cxxi_rsqrt(float a) { return rsqrtf(a); }
CXXI_FN double cxxi_rsqrt(double a) { return rsqrt(a); }
// sin(pi * a) and cos(pi * a), off by at most 1 unit in the last place, in double by 2.
CXXI_FN void cxxi_sincospi(float a, float* sine, float* cosine) { sincospif(a, sine, cosine); }
CXXI_FN void cxxi_sincospi(double a, double* sine, double* cosine) { sincospi(a, sine, cosine); }
// By the unit for special functions. Sine and cosine: off by at most 2 ^ -21.41 and 2 ^ -21.19 for |a| <= pi. Tangent: their quotient.
// Exponential: by at most 2 + |1.173 * a| units in the last place. Logarithm: by at most 2 ^ -21.41 for a in [0.5, 2], else 3 units.
CXXI_FN float cxxi_sin_approx(float a) { return __sinf(a); }
CXXI_FN float cxxi_cos_approx(float a) { return __cosf(a); }
CXXI_FN float cxxi_tan_approx(float a) { return __tanf(a); }
CXXI_FN float cxxi_exp_approx(float a) { return __expf(a); }
CXXI_FN float cxxi_log_approx(float a) { return __logf(a); }
// The larger, and the smaller: 0x7fffffff if either is a NaN; -0 is smaller than +0.
CXXI_FN float cxxi_max_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}
CXXI_FN float cxxi_min_nan(float a, float b) {
  float smaller;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(smaller) : "f"(a), "f"(b));
  return smaller;
}
// All 64 bits of the product. One instruction, where high and low halves would be two; the compiler does not always find it.
CXXI_FN unsigned long long cxxi_whole_product(unsigned int a, unsigned int b) {
  unsigned long long product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}

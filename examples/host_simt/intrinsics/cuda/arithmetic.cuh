// The host's kernels_templates/intrinsics/cuda/arithmetic.cuh, for tests/emulation too. Units are compiled without contraction.
CXXI_FN float cxxi_add(float a, float b) { return a + b; }
CXXI_FN double cxxi_add(double a, double b) { return a + b; }
CXXI_FN float cxxi_sub(float a, float b) { return a - b; }
CXXI_FN double cxxi_sub(double a, double b) { return a - b; }
CXXI_FN float cxxi_mul(float a, float b) { return a * b; }
CXXI_FN double cxxi_mul(double a, double b) { return a * b; }
CXXI_FN float cxxi_rsqrt(float a) { return float(1.0 / std::sqrt(double(a))); }
CXXI_FN double cxxi_rsqrt(double a) { return 1.0 / std::sqrt(a); }
// As the interpreter computes them: the product with pi is rounded to the type.
template <class T>
void cxxi_sincospi(T a, T* sine, T* cosine) {
  *sine = std::sin(T(3.14159265358979323846) * a);
  *cosine = std::cos(T(3.14159265358979323846) * a);
}
CXXI_FN float cxxi_sin_approx(float a) { return std::sin(a); }
CXXI_FN float cxxi_cos_approx(float a) { return std::cos(a); }
CXXI_FN float cxxi_tan_approx(float a) { return std::tan(a); }
CXXI_FN float cxxi_exp_approx(float a) { return std::exp(a); }
CXXI_FN float cxxi_log_approx(float a) { return std::log(a); }
CXXI_FN float cxxi_max_nan(float a, float b) {
  if (a != a || b != b) return cxxi_bits_float(0x7fffffffu);
  return a == b ? cxxi_bits_float(cxxi_float_bits(a) & cxxi_float_bits(b)) : a > b ? a : b;
}
CXXI_FN float cxxi_min_nan(float a, float b) {
  if (a != a || b != b) return cxxi_bits_float(0x7fffffffu);
  return a == b ? cxxi_bits_float(cxxi_float_bits(a) | cxxi_float_bits(b)) : a < b ? a : b;
}
CXXI_FN unsigned long long cxxi_whole_product(unsigned int a, unsigned int b) { return (unsigned long long)(a) * b; }

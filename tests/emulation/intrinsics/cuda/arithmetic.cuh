// The host's kernels_templates/intrinsics/cuda/arithmetic.cuh. Units are compiled without contraction.
CXXI_FN float cxxi_add(float a, float b) { return a + b; }
CXXI_FN double cxxi_add(double a, double b) { return a + b; }
CXXI_FN float cxxi_sub(float a, float b) { return a - b; }
CXXI_FN double cxxi_sub(double a, double b) { return a - b; }
CXXI_FN float cxxi_mul(float a, float b) { return a * b; }
CXXI_FN double cxxi_mul(double a, double b) { return a * b; }
CXXI_FN float cxxi_rsqrt(float a) { return float(1.0 / std::sqrt(double(a))); }
CXXI_FN double cxxi_rsqrt(double a) { return 1.0 / std::sqrt(a); }
// Of a turn's part within [-1/4, 1/4], where the product with pi loses nothing that counts. Zeros have the sign of `a`, as the device's do.
CXXI_FN void cxxi_sincospi(double a, double* sine, double* cosine) {
  const double turns = std::nearbyint(2.0 * a), angle = (a - 0.5 * turns) * 3.14159265358979323846;
  const int quarter = int(std::fmod(turns, 4.0)) & 3;
  const double s = std::sin(angle), c = std::cos(angle);
  *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
  *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
  if (*sine == 0.0) *sine = std::copysign(0.0, a);
  if (*cosine == 0.0) *cosine = 0.0;
}
CXXI_FN void cxxi_sincospi(float a, float* sine, float* cosine) {
  double s, c;
  cxxi_sincospi(double(a), &s, &c);
  *sine = float(s);
  *cosine = float(c);
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

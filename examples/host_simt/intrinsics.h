// Host versions of what kernels_templates/intrinsics/cuda lists, in the place of its files. Types of narrow floats are complete here.
#define CXXI_FN inline
#define CXXI_DYNAMIC_SHARED(name) unsigned char* const name = host_simt::block->shared()

// ---- Conversions: every NaN becomes the same one, as on GPUs ------------------------------------------------------------
CXXI_FN float cxxi_bits_float(unsigned int bits) { return __builtin_bit_cast(float, bits); }
CXXI_FN unsigned int cxxi_float_bits(float value) { return __builtin_bit_cast(unsigned int, value); }
CXXI_FN float cxxi_to_float(cxxi_f16 v) { return __builtin_bit_cast(_Float16, v.bits); }
CXXI_FN cxxi_f16 cxxi_to_f16(float value) { return {value != value ? (unsigned short)(0x7fff) : __builtin_bit_cast(unsigned short, _Float16(value))}; }
CXXI_FN cxxi_bf16 cxxi_to_bf16(float value) {
  const unsigned int bits = cxxi_float_bits(value);
  return {value != value ? (unsigned short)(0x7fff) : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
CXXI_FN float cxxi_round_to_f16(float value) { return cxxi_to_float(cxxi_to_f16(value)); }
CXXI_FN float cxxi_round_to_bf16(float value) { return cxxi_bits_float((unsigned int)(cxxi_to_bf16(value).bits) << 16); }

// ---- Arithmetic, which the compiler does not contract (-ffp-contract=off) -------------------------------------------------
CXXI_FN float cxxi_add(float a, float b) { return a + b; }
CXXI_FN double cxxi_add(double a, double b) { return a + b; }
CXXI_FN float cxxi_sub(float a, float b) { return a - b; }
CXXI_FN double cxxi_sub(double a, double b) { return a - b; }
CXXI_FN float cxxi_mul(float a, float b) { return a * b; }
CXXI_FN double cxxi_mul(double a, double b) { return a * b; }
CXXI_FN float cxxi_rsqrt(float a) { return 1 / std::sqrt(a); }
CXXI_FN double cxxi_rsqrt(double a) { return 1 / std::sqrt(a); }
template <class T>
void cxxi_sincospi(T a, T* sine, T* cosine) {
  *sine = std::sin(T(M_PI) * a);
  *cosine = std::cos(T(M_PI) * a);
}
CXXI_FN float cxxi_sin_approx(float a) { return std::sin(a); }
CXXI_FN float cxxi_cos_approx(float a) { return std::cos(a); }
CXXI_FN float cxxi_tan_approx(float a) { return std::tan(a); }
CXXI_FN float cxxi_exp_approx(float a) { return std::exp(a); }
CXXI_FN float cxxi_log_approx(float a) { return std::log(a); }
CXXI_FN float cxxi_max_nan(float a, float b) { return a != a || b != b ? NAN : std::signbit(a) && a == b ? b : a < b ? b : a; }
CXXI_FN float cxxi_min_nan(float a, float b) { return a != a || b != b ? NAN : std::signbit(b) && a == b ? b : b < a ? b : a; }
CXXI_FN unsigned long long cxxi_whole_product(unsigned int a, unsigned int b) { return (unsigned long long)(a)*b; }

// ---- Threads ------------------------------------------------------------------------------------------------------
CXXI_FN void cxxi_sync_block() { host_simt::block->wait_for_block(); }
CXXI_FN void cxxi_sync_warp() { host_simt::block->wait_for_warp(); }
CXXI_FN void cxxi_fence_system() {}
template <class T>
T cxxi_from_lane(T value, int mask) {
  return host_simt::shuffle(value, host_simt::block->lane() ^ unsigned(mask));
}
template <class T>
T cxxi_of_lane(T value, int lane) {
  return host_simt::shuffle(value, unsigned(lane));
}
CXXI_FN long long cxxi_uniform(long long value) { return value; }
CXXI_FN void cxxi_hide_origin(unsigned int&) {}

// ---- Atomics ------------------------------------------------------------------------------------------------------
template <class T>
T cxxi_compare_and_swap(T* address, T expected, T value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class T>
constexpr bool cxxi_adds_in_memory = false;
template <class T>
void cxxi_add_in_memory(T*, T);  // of no type

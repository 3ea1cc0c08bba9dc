// Bits of floats, and conversions to and from the 16-bit formats. Needs the storage types cxxi_bf16 and cxxi_f16.

// The float that has these bits, NaNs and denormals unchanged; and the other way.
CXXI_FN float cxxi_bits_float(unsigned int bits) { return __uint_as_float(bits); }
CXXI_FN unsigned int cxxi_float_bits(float value) { return __float_as_uint(value); }
// Exact, denormals too. A NaN becomes a NaN.
CXXI_FN float cxxi_to_float(cxxi_f16 v) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
}
// To nearest, ties to even; denormals are kept; from 65520 on infinity. Every NaN becomes 0x7fff.
CXXI_FN cxxi_f16 cxxi_to_f16(float f) {
  cxxi_f16 v;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v.bits) : "f"(f));
  return v;
}
// To nearest, ties to even; denormals are kept. Every NaN becomes 0x7fff.
CXXI_FN cxxi_bf16 cxxi_to_bf16(float f) {
  cxxi_bf16 v;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v.bits) : "f"(f));
  return v;
}
// cxxi_to_bf16 and cxxi_to_f16, widened again. Conversions of pairs run four times as fast as those of single values, and the upper half
// of a word of bf16 is a float.
CXXI_FN float cxxi_round_to_bf16(float value) {
  unsigned int pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(value), "f"(0.0f));
  return cxxi_bits_float(pair);
}
CXXI_FN float cxxi_round_to_f16(float value) {
  unsigned int pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(value));
  return cxxi_to_float(cxxi_f16{(unsigned short)(pair)});
}

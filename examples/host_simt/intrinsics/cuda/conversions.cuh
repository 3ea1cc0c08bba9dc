// The host's kernels_templates/intrinsics/cuda/conversions.cuh, for tests/emulation too.
CXXI_FN float cxxi_bits_float(unsigned int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
CXXI_FN unsigned int cxxi_float_bits(float value) {
  unsigned int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
CXXI_FN float cxxi_to_float(cxxi_f16 v) {
  const unsigned int sign = (unsigned int)(v.bits & 0x8000u) << 16;
  const unsigned int exponent = (v.bits >> 10) & 31u, mantissa = v.bits & 1023u;
  if (exponent == 0) {
    const float value = std::ldexp(float(mantissa), -24);
    return sign ? -value : value;
  }
  const unsigned int scaled = exponent == 31 ? 255u : exponent + 112u;
  return cxxi_bits_float(sign | (scaled << 23) | (mantissa << 13));
}
CXXI_FN cxxi_f16 cxxi_to_f16(float f) {
  const unsigned int sign = (cxxi_float_bits(f) >> 16) & 0x8000u;
  const float a = std::fabs(f);
  if (f != f) return {0x7fff};
  unsigned int code = 0x7c00u;
  if (a < 65520.0f) {
    int exponent;
    std::frexp(a, &exponent);
    if (exponent < -13) exponent = -13;
    code = (unsigned int)(std::nearbyint(std::ldexp(double(a), 11 - exponent)));
    code += a == 0.0f ? 0u : (unsigned int)(exponent + 13) << 10;
  }
  return {(unsigned short)(sign | code)};
}
CXXI_FN cxxi_bf16 cxxi_to_bf16(float f) {
  if (f != f) return {0x7fff};
  const unsigned int bits = cxxi_float_bits(f);
  return {(unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
CXXI_FN float cxxi_round_to_bf16(float value) { return cxxi_bits_float((unsigned int)(cxxi_to_bf16(value).bits) << 16); }
CXXI_FN float cxxi_round_to_f16(float value) { return cxxi_to_float(cxxi_to_f16(value)); }

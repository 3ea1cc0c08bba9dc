// Activations and their derivatives on vectors, under the names that prelude.h gives their scalar forms. Included by value
// after vector_ops.h.
// ---- Activations and their derivatives --------------------------------------------------------------------------
template <cxxi::vector V>
inline V cxxi_relu(V a) {
  return a < 0 ? V{} : a;
}
template <cxxi::real V>
inline V cxxi_sigmoid(V a) {
  return 1 / (1 + cxxi::exp(-a));
}
template <cxxi::real V>
inline V cxxi_silu(V a) {
  return a / (1 + cxxi::exp(-a));
}
template <cxxi::real V>
inline V cxxi_gelu(V a) {
  return a * cxxi::number_like(a, 0.5) * (1 + cxxi::erf_near(a * cxxi::number_like(a, 0.70710678118654752440)));
}
template <cxxi::real V>
inline V cxxi_gelu_tanh(V a) {
  const V inner = cxxi::number_like(a, 0.79788456080286535588) * cxxi::fused(cxxi::number_like(a, 0.044715), a * a * a, a);
  return cxxi::number_like(a, 0.5) * a * (1 + cxxi::tanh(inner));
}
template <cxxi::real V>
inline V cxxi_mish(V a) {
  return a * cxxi::tanh(cxxi::log1p(cxxi::exp(a)));
}
template <cxxi::real V>
inline V cxxi_softplus(V a, V b, V c) {
  return a * b > c ? a : cxxi::log1p(cxxi::exp(a * b)) / b;
}
template <cxxi::real V>
inline V cxxi_elu(V a, V b, V c, V d) {
  return a > 0 ? a * c : cxxi::expm1(a * d) * (b * c);
}
template <cxxi::real V>
inline V cxxi_leaky_relu(V a, V b) {
  return a > 0 ? a : a * b;
}
template <cxxi::real V>
inline V cxxi_hardsigmoid(V a) {
  return cxxi_clamp(a + 3, V{}, V{} + 6) * cxxi::number_like(a, 1.0f / 6.0f);
}
template <cxxi::real V>
inline V cxxi_hardswish(V a) {
  return a * cxxi_clamp(a + 3, V{}, V{} + 6) * cxxi::number_like(a, 1.0f / 6.0f);
}
template <cxxi::real V>
inline V cxxi_log_sigmoid(V a) {
  return cxxi::smaller(V{}, a) - cxxi::log1p(cxxi::exp(-cxxi::magnitude(a)));
}
template <cxxi::vector V>
inline V cxxi_threshold(V a, V b, V c) {
  return a <= b ? c : a;
}
template <cxxi::vector V>
inline V cxxi_threshold_backward(V a, V b, V c) {
  return b <= c ? V{} : a;
}
template <cxxi::real V>
inline V cxxi_hardtanh_backward(V a, V b, V c, V d) {
  return (b <= c) | (b >= d) ? V{} : a;
}
template <cxxi::real V>
inline V cxxi_leaky_relu_backward(V a, V b, V c) {
  return b > 0 ? a : a * c;
}
template <cxxi::real V>
inline V cxxi_hardsigmoid_backward(V a, V b) {
  return (b > -3) & (b < 3) ? a * cxxi::number_like(a, 1.0f / 6.0f) : V{};
}
template <cxxi::real V>
inline V cxxi_hardswish_backward(V a, V b) {
  const V middle = a * (b / 3 + cxxi::number_like(b, 0.5));
  return b <= -3 ? V{} : (b < 3 ? middle : a);
}
template <cxxi::real V>
inline V cxxi_softplus_backward(V a, V b, V c, V d) {
  const V z = cxxi::exp(b * c);
  return b * c > d ? a : a * z / (z + 1);
}
template <cxxi::real V>
inline V cxxi_mish_backward(V a, V b) {
  const V s = 1 / (1 + cxxi::exp(-b)), t = cxxi::tanh(cxxi::log1p(cxxi::exp(b)));
  return a * cxxi::fused(b * s, cxxi::fused(-t, t, cxxi::number_like(t, 1)), t);
}
template <cxxi::real V>
inline V cxxi_sigmoid_backward(V a, V b) {
  return a * (1 - b) * b;
}
template <cxxi::real V>
inline V cxxi_tanh_backward(V a, V b) {
  return a * cxxi::fused(-b, b, cxxi::number_like(b, 1));
}
template <cxxi::real V>
inline V cxxi_silu_backward(V a, V b) {
  const V s = 1 / (1 + cxxi::exp(-b));
  return a * s * cxxi::fused(b, 1 - s, cxxi::number_like(b, 1));
}
template <cxxi::real V>
inline V cxxi_gelu_backward(V a, V b) {
  const V cdf = cxxi::number_like(b, 0.5) * (1 + cxxi::erf_near(b * cxxi::number_like(b, 0.70710678118654752440)));
  const V pdf = cxxi::exp(cxxi::number_like(b, -0.5) * b * b) * cxxi::number_like(b, 0.39894228040143267794);
  return a * (cdf + b * pdf);
}
template <cxxi::real V>
inline V cxxi_gelu_tanh_backward(V a, V b) {
  const V beta = cxxi::number_like(b, 0.79788456080286535588), kappa = cxxi::number_like(b, 0.044715);
  const V one = cxxi::number_like(b, 1);
  const V t = cxxi::tanh(beta * cxxi::fused(kappa, b * b * b, b));
  const V left = cxxi::number_like(b, 0.5) * b, right = 1 + t;
  const V inner = beta * cxxi::fused(3 * kappa, b * b, one);
  return a * (cxxi::number_like(b, 0.5) * right + left * cxxi::fused(-t, t, one) * inner);
}

// Random ops of CUDA, bit for bit as ATen draws them. Philox is a function of the generator's state and an element's position,
// so random numbers are computed where they are used, and fuse.
//
// Dropout assigns one Philox call to four neighbours (ATen/native/cuda/Dropout.cu, torch 2.11: vectors of 16 bytes), and so do
// kernels. Distributions assign the numbers of one call to elements far apart (random_bits.h), so kernels make one call per
// element. That is still cheaper than a tensor of random numbers: for 67M f32 on an H200 it adds 41 us to the 127 us of their
// copy, and writing and reading the tensor would cost a copy.
//
// Formulas: ATen/native/cuda/DistributionTemplates.h and ATen/core/TransformationHelper.h of torch 2.11,
// curand_uniform.h and curand_normal.h of CUDA 13, with the contractions that nvcc makes of them.
#include <cmath>
#include <limits>

#include "frontend/aten_table.h"
#include "frontend/pointwise.h"
#include "frontend/random_bits.h"
#include "ir/device_types.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

// The number in (0, 1] to which curand_uniform4 maps a word.
float unit_number(int64_t word) { return std::fmaf(static_cast<float>(word), 0x1p-32f, 0x1p-33f); }

// The first word whose number has a property that all larger numbers share; 2^32 if none has it. Numbers grow with words, so
// comparing words is comparing numbers.
template <class Property>
int64_t first_word(const Property& property) {
  int64_t low = 0, high = int64_t{1} << 32;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (property(unit_number(middle))) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
int64_t words_below(float p) {
  return first_word([p](float number) { return number >= p; });
}

// ---- Dropout -----------------------------------------------------------------------------------------------------

// Neighbours that a thread of ATen's dropout takes at once: as many as 16 bytes hold, fewer if elements would remain.
int64_t vector_width(const CallContext& context, DType dtype, sym::Expr count) {
  int64_t width = dtype == DType::F32 ? 4 : dtype == DType::F16 || dtype == DType::BF16 ? 8 : 1;
  // The largest of 8, 4, .. that divides the count: which one it is must be known.
  const int64_t divisor = sym::known_divisor(count, context.assumptions());
  if (!count.is_constant() && divisor % width != 0) return 1;
  while (width > 1 && divisor % width != 0) width /= 2;
  return width;
}

// native_dropout(input, p, train) -> (input * mask / (1 - p), mask)
Results import_dropout(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "input");
  const double keep_exactly = 1.0 - context.real(1, "p", 0);
  if (!context.eager().philox || !context.boolean(2, "train", true) || keep_exactly <= 0 || keep_exactly >= 1) return std::nullopt;
  const Sizes sizes = context.value(x).sizes;
  const DType dtype = context.dtype(x);
  const sym::Expr count = graph::element_count(sizes);
  const int64_t width = vector_width(context, dtype, count);
  if (width < 4 || sym::bounds(count, context.assumptions()).high > std::numeric_limits<int32_t>::max()) return std::nullopt;
  if (!context.is_contiguous(sizes, context.value(x).layout.strides) || !context.is_contiguous(sizes, context.result().strides)) {
    return std::nullopt;
  }
  const auto keep = static_cast<float>(keep_exactly);
  const auto scale = static_cast<float>(1.0 / keep);
  const ValueId drawn = words_of_neighbours(context, sizes, width);
  const ValueId mask = build.elementwise(ScalarOp::Lt, {drawn, Operand(Scalar::from_integer(DType::I64, words_below(keep)))});
  // ATen multiplies by the mask, then by the scale: the same product, also of infinities and zeros, as both are
  // positive.
  const ValueId factor = build.elementwise(ScalarOp::Where, {mask, Operand(Scalar::from_real(DType::F32, scale)), Operand(Scalar::from_real(DType::F32, 0))});
  const ValueId scaled = build.elementwise(ScalarOp::Mul, {build.cast(x, DType::F32), factor});
  return std::vector{build.cast(scaled, dtype), mask};
}

// ---- Numbers that the distributions share --------------------------------------------------------------------------

// The call's result, where its elements' positions are known: by Philox, from the default generator, dense, and small
// enough that ATen's iterator stays whole (offsets in bytes fit 32 bits; the parts of a split one draw for themselves).
std::optional<std::vector<int>> drawn_order(const CallContext& context) {
  constexpr size_t nowhere = 100;  // keyword only
  if (!context.eager().philox || context.has(nowhere, "generator")) return std::nullopt;
  const sym::Expr bytes = graph::element_count(context.result().sizes) * byte_size(context.result().dtype);
  if (sym::bounds(bytes, context.assumptions()).high > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return memory_order(context);
}

// The same for a float result; the transformations compute in `compute`.
struct Real {
  std::vector<int> order;
  DType dtype, compute;
};
std::optional<Real> drawn_real(const CallContext& context) {
  const DType dtype = context.result().dtype;
  if (dtype != DType::F64 && dtype != DType::F32 && dtype != DType::F16 && dtype != DType::BF16) return std::nullopt;
  auto order = drawn_order(context);
  if (!order) return std::nullopt;
  return Real{std::move(*order), dtype, compute_type(dtype)};
}

std::optional<double> constant(const CallContext& context, size_t position, std::string_view name, double otherwise) {
  if (!context.has(position, name)) return otherwise;
  const auto number = context.scalar_arg(position, name);
  return number ? constant_real(*number) : std::nullopt;
}
std::optional<int64_t> constant_integer(const CallContext& context, size_t position, std::string_view name) {
  const auto number = context.scalar_arg(position, name);
  const auto* value = number ? std::get_if<int64_t>(&*number) : nullptr;
  return value ? std::optional(*value) : std::nullopt;
}

Operand real_of(DType dtype, double value) { return Scalar::from_real(dtype, value); }
double rounded(DType dtype, double value) { return cast(Scalar::from_real(DType::F64, value), dtype).real(); }

// a * b + c, rounded once.
ValueId multiply_add(CallContext& context, ValueId a, double b, double c) {
  const DType dtype = context.dtype(a);
  return context.build.elementwise(ScalarOp::AddAlpha, {real_of(dtype, c), a, real_of(dtype, b)});
}

// 53 bits of a pair of words, x ^ y << 21, as f64 (_curand_uniform_double_hq).
ValueId long_fraction(CallContext& context, ValueId pair) {
  graph::Builder& build = context.build;
  const auto integer = [](int64_t value) { return Operand(Scalar::from_integer(DType::I64, value)); };
  const ValueId low = build.elementwise(ScalarOp::BitAnd, {pair, integer(0xffffffff)});
  const ValueId shifted = build.elementwise(ScalarOp::ShiftLeft, {low, integer(21)});
  const ValueId high = build.elementwise(ScalarOp::ShiftRight, {pair, integer(32)});
  const ValueId first = build.elementwise(ScalarOp::BitAnd, {high, integer(0xffffffff)});
  return build.cast(build.elementwise(ScalarOp::BitXor, {first, shifted}), DType::F64);
}

ValueId unit_number(CallContext& context, ValueId word) { return multiply_add(context, context.build.cast(word, DType::F32), 0x1p-32, 0x1p-33); }

// In (0, 1]: curand_uniform4, curand_uniform2_double.
ValueId uniform_number(CallContext& context, const std::vector<int>& order, DType compute) {
  if (compute == DType::F64) return multiply_add(context, long_fraction(context, GridStrideSampler(context, order, 2).pair()), 0x1p-53, 0x1p-54);
  return unit_number(context, GridStrideSampler(context, order, 4).word());
}

// Box and Muller: of two uniform numbers, a normal one by the sine for even places and one by the cosine for odd ones.
// curand_normal4 has the angle in radians and takes sine and cosine of the special-function unit, curand_normal2_double
// in units of pi.
ValueId normal_number(CallContext& context, const Real& result) {
  graph::Builder& build = context.build;
  const bool wide = result.compute == DType::F64;
  GridStrideSampler draw(context, result.order, wide ? 2 : 4);
  ValueId first, angle;
  if (wide) {
    first = multiply_add(context, long_fraction(context, draw.pair_of_call(0)), 0x1p-53, 0x1p-54);
    angle = multiply_add(context, long_fraction(context, draw.pair_of_call(1)), 0x1p-52, 0x1p-53);
  } else {
    const ValueId pair = draw.pair();
    const ValueId upper = build.elementwise(ScalarOp::ShiftRight, {pair, Operand(Scalar::from_integer(DType::I64, 32))});
    const float turn = 6.2831855f;
    first = multiply_add(context, build.cast(build.cast(upper, DType::U32), DType::F32), 0x1p-32, 0x1p-33);
    angle = multiply_add(context, build.cast(build.cast(pair, DType::U32), DType::F32), 0x1p-32 * turn, 0x1p-33 * turn);
  }
  const ValueId logarithm = build.elementwise(ScalarOp::Log, {first});
  const ValueId square = build.elementwise(ScalarOp::Mul, {logarithm, real_of(result.compute, -2)});
  const ValueId radius = build.elementwise(ScalarOp::Sqrt, {square});
  const ValueId sine = build.elementwise(wide ? ScalarOp::Sinpi : ScalarOp::SinApprox, {angle});
  const ValueId cosine = build.elementwise(wide ? ScalarOp::Cospi : ScalarOp::CosApprox, {angle});
  const ValueId side = build.elementwise(ScalarOp::Where, {draw.is_odd(), cosine, sine});
  return build.elementwise(ScalarOp::Mul, {side, radius});
}

// ---- Distributions -------------------------------------------------------------------------------------------------

// A number times `range` plus `low` in the dtype, and `low` where that is `high`: the ends of (0, 1] turned around. For
// f32 and narrower dtypes the words that map to `high` are counted beforehand, so the result does not depend on how the value
// is stored.
ValueId scaled(CallContext& context, const Real& result, double low, double high, double range) {
  graph::Builder& build = context.build;
  if (result.compute == DType::F64) {
    const ValueId value = multiply_add(context, uniform_number(context, result.order, DType::F64), range, low);
    const ValueId at_end = build.elementwise(ScalarOp::Eq, {value, real_of(DType::F64, high)});
    return build.elementwise(ScalarOp::Where, {at_end, real_of(DType::F64, low), value});
  }
  const auto value_of = [&](float number) { return rounded(result.dtype, std::fmaf(number, static_cast<float>(range), static_cast<float>(low))); };
  const int64_t first = first_word([&](float number) { return value_of(number) >= high; });
  const int64_t past = first_word([&](float number) { return value_of(number) > high; });
  const auto count = [](int64_t words) { return Operand(Scalar::from_integer(DType::U32, words)); };
  const ValueId word = GridStrideSampler(context, result.order, 4).word();
  const ValueId value = multiply_add(context, unit_number(context, word), range, low);
  if (first == past || past - first > std::numeric_limits<uint32_t>::max()) return build.cast(value, result.dtype);
  const ValueId after = build.elementwise(ScalarOp::Sub, {word, count(first)});
  const ValueId at_end = build.elementwise(ScalarOp::Lt, {after, count(past - first)});
  const ValueId chosen = build.elementwise(ScalarOp::Where, {at_end, real_of(DType::F32, low), value});
  return build.cast(chosen, result.dtype);
}

// uniform(self, from, to)
Results import_uniform(CallContext& context, std::optional<double> from, std::optional<double> to) {
  const auto result = drawn_real(context);
  if (!result || !from || !to || !(*from <= *to)) return std::nullopt;
  const double most = result->dtype == DType::F16   ? 65504
                      : result->dtype == DType::F64 ? std::numeric_limits<double>::max()
                                                    : 0x1.fep127;  // of bf16; eager rejects larger bounds
  if (std::fabs(*from) > most || std::fabs(*to) > most || *to - *from > most) return std::nullopt;
  const double low = rounded(result->dtype, *from), high = rounded(result->dtype, *to);
  return std::vector{scaled(context, *result, low, high, rounded(result->dtype, high - low))};
}

// A normal number times std plus mean, in the compute type; eager rejects a negative std.
std::optional<ValueId> normal(CallContext& context, const std::optional<Real>& result, std::optional<double> mean, std::optional<double> std) {
  if (!result || !mean || !std || !(*std >= 0)) return std::nullopt;
  return multiply_add(context, normal_number(context, *result), rounded(result->compute, *std), rounded(result->compute, *mean));
}

Results import_normal(CallContext& context, std::optional<double> mean, std::optional<double> std) {
  const auto value = normal(context, drawn_real(context), mean, std);
  return value ? Results({context.build.cast(*value, context.result().dtype)}) : std::nullopt;
}

// normal.Tensor_float(mean, std=1): drawn about 0 and rounded, then the mean is added.
Results import_normal_about(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId mean = context.tensor(0, "mean");
  const DType dtype = context.result().dtype, compute = compute_type(dtype);
  if (context.dtype(mean) != dtype) return std::nullopt;
  const auto value = normal(context, drawn_real(context), 0.0, constant(context, 1, "std", 1));
  if (!value) return std::nullopt;
  const ValueId drawn = build.cast(build.cast(*value, dtype), compute);
  return std::vector{build.cast(build.elementwise(ScalarOp::Add, {drawn, build.cast(mean, compute)}), dtype)};
}

// log_normal(self, mean=1, std=2)
Results import_log_normal(CallContext& context) {
  const auto std = constant(context, 2, "std", 2);
  if (!std || !(*std > 0)) return std::nullopt;
  const auto value = normal(context, drawn_real(context), constant(context, 1, "mean", 1), std);
  if (!value) return std::nullopt;
  return std::vector{context.build.cast(context.build.elementwise(ScalarOp::ExpApprox, {*value}), context.result().dtype)};
}

// exponential(self, lambd=1). A logarithm that would be 0 is half an epsilon below it.
Results import_exponential(CallContext& context) {
  graph::Builder& build = context.build;
  const auto result = drawn_real(context);
  const auto rate = constant(context, 1, "lambd", 1);
  if (!result || !rate || !(rounded(result->compute, *rate) > 0) || std::isinf(*rate)) return std::nullopt;
  const double half_epsilon = result->compute == DType::F64 ? 0x1p-53 : 0x1p-24;
  const ValueId number = uniform_number(context, result->order, result->compute);
  const ValueId near_one = build.elementwise(ScalarOp::Ge, {number, real_of(result->compute, 1 - half_epsilon)});
  const ValueId logarithm =
      build.elementwise(ScalarOp::Where, {near_one, real_of(result->compute, -half_epsilon), build.elementwise(ScalarOp::LogApprox, {number})});
  const double factor = rounded(result->compute, -1 / rounded(result->compute, *rate));
  return std::vector{build.cast(build.elementwise(ScalarOp::Mul, {logarithm, real_of(result->compute, factor)}), result->dtype)};
}

// cauchy(self, median=0, sigma=1): in f32 the ends, where the tangent would overflow, are cut.
Results import_cauchy(CallContext& context) {
  graph::Builder& build = context.build;
  const auto result = drawn_real(context);
  const auto median = constant(context, 1, "median", 0), sigma = constant(context, 2, "sigma", 1);
  if (!result || !median || !sigma || !(*sigma > 0)) return std::nullopt;
  const DType compute = result->compute;
  ValueId number = uniform_number(context, result->order, compute);
  if (compute == DType::F32) {
    for (const auto& [beyond, end] : {std::pair(ScalarOp::Gt, 1 - 0x1p-23), std::pair(ScalarOp::Lt, 0x1p-23)})
      number = build.elementwise(ScalarOp::Where, {build.elementwise(beyond, {number, real_of(compute, end)}), real_of(compute, end), number});
  }
  const ValueId centred = build.elementwise(ScalarOp::Sub, {number, real_of(compute, 0.5)});
  const ValueId angle = build.elementwise(ScalarOp::Mul, {centred, real_of(compute, 3.14159265358979323846)});
  const ValueId tangent = build.elementwise(ScalarOp::TanApprox, {angle});
  return std::vector{build.cast(multiply_add(context, tangent, rounded(compute, *sigma), rounded(compute, *median)), result->dtype)};
}

// bernoulli.p(self, p=0.5): 1 where a uniform number is below p, in any dtype.
Results import_bernoulli(CallContext& context) {
  graph::Builder& build = context.build;
  const auto order = drawn_order(context);
  const auto p = constant(context, 1, "p", 0.5);
  const DType dtype = context.result().dtype;
  if (!order || !p || !(*p >= 0 && *p <= 1)) return std::nullopt;
  const auto drawn = [&] {
    if (dtype == DType::F64) return build.elementwise(ScalarOp::Lt, {uniform_number(context, *order, DType::F64), real_of(DType::F64, *p)});
    const Operand limit(Scalar::from_integer(DType::U32, words_below(static_cast<float>(*p))));
    return build.elementwise(ScalarOp::Lt, {GridStrideSampler(context, *order, 4).word(), limit});
  };
  return std::vector{build.cast(drawn(), dtype)};
}

// Are all integers of [low, high) of the dtype, and low and high exact where it is a float? Eager rejects others, or
// moves the ends.
bool holds_integers(DType dtype, int64_t low, int64_t high) {
  switch (info(dtype).dtype_class) {
    case DTypeClass::Boolean:
      return low >= 0 && high <= 2;
    case DTypeClass::Signed:
    case DTypeClass::Unsigned: {
      const bool is_signed = info(dtype).dtype_class == DTypeClass::Signed;
      if (!is_signed && low < 0) return false;
      const int bits = 8 * byte_size(dtype) - (is_signed ? 1 : 0);
      return bits >= 63 || (high - 1 < int64_t{1} << bits && low >= -(int64_t{1} << bits));
    }
    case DTypeClass::Float: {
      const int digits = dtype == DType::F64 ? 53 : dtype == DType::F32 ? 24 : dtype == DType::F16 ? 11 : dtype == DType::BF16 ? 8 : 0;
      const int64_t most = int64_t{1} << digits;
      return digits > 0 && low >= -most && high <= most;
    }
    case DTypeClass::Opaque:
      return false;
  }
  return false;
}

// Integers of [low, high): a word modulo their number, or both words of a pair where there are many.
Results import_randint(CallContext& context, std::optional<int64_t> low, std::optional<int64_t> high) {
  graph::Builder& build = context.build;
  const auto order = drawn_order(context);
  const DType dtype = context.result().dtype;
  if (!order || !low || !high || *low >= *high || !holds_integers(dtype, *low, *high)) return std::nullopt;
  const uint64_t range = static_cast<uint64_t>(*high) - static_cast<uint64_t>(*low);
  const DType of = range >= uint64_t{1} << 28 ? DType::U64 : DType::U32;
  const ValueId drawn = of == DType::U64 ? build.cast(GridStrideSampler(context, *order, 2).pair(), DType::U64) : GridStrideSampler(context, *order, 4).word();
  const ValueId rest = build.elementwise(ScalarOp::Fmod, {drawn, Operand(Scalar::from_integer(of, static_cast<int64_t>(range)))});
  const ValueId value = build.elementwise(ScalarOp::Add, {build.cast(rest, DType::I64), Operand(Scalar::from_integer(DType::I64, *low))});
  return std::vector{build.cast(value, dtype)};
}

}  // namespace

void add_random_rows(ImportTable& table) {
  const auto add = [&table](std::initializer_list<const char*> names, const Importer& importer) {
    for (const char* name : names) table.emplace(name, ImportRow{importer, Accepts::Arithmetic});
  };
  const auto real = [](size_t position, const char* name, double otherwise) {
    return [=](const CallContext& context) { return constant(context, position, name, otherwise); };
  };
  const auto integer = [](size_t position, const char* name) { return [=](const CallContext& context) { return constant_integer(context, position, name); }; };
  const auto uniform = [](auto from, auto to) { return [=](CallContext& context) { return import_uniform(context, from(context), to(context)); }; };
  const auto normal = [](auto mean, auto std) { return [=](CallContext& context) { return import_normal(context, mean(context), std(context)); }; };
  const auto randint = [](auto low, auto high) { return [=](CallContext& context) { return import_randint(context, low(context), high(context)); }; };
  const auto zero = [](const CallContext&) { return std::optional(0.0); };
  const auto one = [](const CallContext&) { return std::optional(1.0); };
  const auto from_zero = [](const CallContext&) { return std::optional(int64_t{0}); };
  add({"aten::native_dropout"}, import_dropout);
  add({"aten::rand", "aten::rand_like"}, uniform(zero, one));
  add({"aten::uniform"}, uniform(real(1, "from", 0), real(2, "to", 1)));
  add({"aten::randn", "aten::randn_like"}, normal(zero, one));
  add({"aten::normal_functional"}, normal(real(1, "mean", 0), real(2, "std", 1)));
  add({"aten::normal.float_float"}, normal(real(0, "mean", 0), real(1, "std", 1)));
  add({"aten::normal.Tensor_float"}, import_normal_about);
  add({"aten::log_normal"}, import_log_normal);
  add({"aten::exponential"}, import_exponential);
  add({"aten::cauchy"}, import_cauchy);
  add({"aten::bernoulli.p"}, import_bernoulli);
  add({"aten::randint"}, randint(from_zero, integer(0, "high")));
  add({"aten::randint.low"}, randint(integer(0, "low"), integer(1, "high")));
  add({"aten::randint_like"}, randint(from_zero, integer(1, "high")));
  add({"aten::randint_like.low_dtype"}, randint(integer(1, "low"), integer(2, "high")));
}

}  // namespace cxxinductor::frontend

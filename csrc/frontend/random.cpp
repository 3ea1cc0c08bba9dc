// Random ops of CUDA, bit for bit as ATen draws them: Philox is a function of the generator's state and an element's
// position, so that what it gives is computed where it is used. The state is taken from torch's generator by one call,
// cxxinductor::philox_state, which keeps its place among the calls that draw.
//
// Imported are forms whose elements draw in fours of neighbours (ATen/native/cuda/Dropout.cu, torch 2.11: vectors of 16
// bytes); others draw one element a thread and call, which a fused kernel would repeat for each: they stay calls.
#include <cmath>
#include <limits>

#include "frontend/aten_table.h"
#include "frontend/pointwise.h"
#include "ir/random_threads.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

// i64[3] on `device`: seed, number of the next Philox call, threads that share the elements.
ValueId generator_state(CallContext& context, sym::Expr count, Device device) {
  graph::Extern callee;
  callee.callee = "cxxinductor::philox_state";
  callee.args = {Arg(count), Arg(device)};
  callee.ordered = true;
  callee.alias_of = {-1};
  graph::Value state;
  state.dtype = DType::I64;
  state.device = device;
  state.sizes = {3};
  state.layout = {graph::Layout::Kind::Fixed, {1}};
  return context.build.call_extern(std::move(callee), {}, {state}).front();
}

ValueId element(CallContext& context, ValueId state, int64_t index) {
  return context.build.reshape(context.build.slice(state, 0, index, 1, 1), {});
}

// A random word an element in row-major order, below 2^32, drawn as vectors of `width` neighbours.
ValueId random_words(CallContext& context, const Sizes& sizes, int64_t width) {
  graph::Builder& build = context.build;
  const Device device = context.result().device;
  const sym::Expr count = graph::element_count(sizes);
  const ValueId state = generator_state(context, count, device);
  const ValueId position = build.reshape(build.iota(0, 1, count, DType::I64, device), sizes);
  const Operand fours(Scalar::from_integer(DType::I64, width / 4));
  // A number that kernels are compiled for is divided by faster than one that they load.
  const bool known = context.cuda() && count.is_constant();
  const Operand threads = known ? Operand(Scalar::from_integer(DType::I64, random_threads(count.constant(), *context.cuda())))
                                : Operand(element(context, state, 2));
  return build.elementwise(ScalarOp::Philox, {element(context, state, 0), element(context, state, 1), position, fours,
                                              threads});
}

// How many words there are whose number in (0, 1], word * 2^-32 + 2^-33 in f32 as curand has it, is below p. The number
// grows with the word, so that comparing words is comparing numbers.
int64_t words_below(float p) {
  int64_t low = 0, high = int64_t{1} << 32;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const float number = std::fmaf(static_cast<float>(middle), 0x1p-32f, 0x1p-33f);
    if (number < p) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Neighbours that a thread of ATen's dropout takes at once: what 16 bytes hold, less where elements would remain.
int64_t vector_width(const CallContext& context, DType dtype, sym::Expr count) {
  int64_t width = dtype == DType::F32 ? 4 : dtype == DType::F16 || dtype == DType::BF16 ? 8 : 1;
  // The largest of 8, 4, .. that divides the count: which one it is must be known.
  const int64_t divisor = sym::known_divisor(count, context.facts());
  if (!count.is_constant() && divisor % width != 0) return 1;
  while (width > 1 && divisor % width != 0) width /= 2;
  return width;
}

// native_dropout(input, p, train) -> (input * mask / (1 - p), mask)
Results import_dropout(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "input");
  const double keep_exactly = 1.0 - context.real(1, "p", 0);
  if (!context.on_cuda() || !context.boolean(2, "train", true) || keep_exactly <= 0 || keep_exactly >= 1) return std::nullopt;
  const Sizes sizes = context.value(x).sizes;
  const DType dtype = context.dtype(x);
  const sym::Expr count = graph::element_count(sizes);
  const int64_t width = vector_width(context, dtype, count);
  if (width < 4 || sym::bounds(count, context.facts()).high > std::numeric_limits<int32_t>::max()) return std::nullopt;
  if (!context.is_contiguous(sizes, context.value(x).layout.strides) ||
      !context.is_contiguous(sizes, context.result().strides)) {
    return std::nullopt;
  }
  const auto keep = static_cast<float>(keep_exactly);
  const auto scale = static_cast<float>(1.0 / keep);
  const ValueId drawn = random_words(context, sizes, width);
  const ValueId mask = build.elementwise(ScalarOp::Lt, {drawn, Operand(Scalar::from_integer(DType::I64, words_below(keep)))});
  // ATen multiplies by the mask, then by the scale: the same product, also of infinities and zeros, as both are positive.
  const ValueId factor = build.elementwise(ScalarOp::Where, {mask, Operand(Scalar::from_real(DType::F32, scale)),
                                                             Operand(Scalar::from_real(DType::F32, 0))});
  const ValueId scaled = build.elementwise(ScalarOp::Mul, {build.cast(x, DType::F32), factor});
  return std::vector{build.cast(scaled, dtype), mask};
}

}  // namespace

void add_random_rows(ImportTable& table) { table.emplace("aten::native_dropout", ImportRow{import_dropout, Accepts::Arithmetic}); }

}  // namespace cxxinductor::frontend

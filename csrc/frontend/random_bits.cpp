#include "frontend/random_bits.h"

#include <algorithm>

#include "ir/random_threads.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

Operand integer_of(DType dtype, int64_t value) { return Scalar::from_integer(dtype, value); }

// i64[3] on the result's device: seed, number of the next Philox call, threads that share the elements. A pass joins such calls.
ValueId generator_state(CallContext& context, sym::Expr count, int numbers) {
  const Device device = context.result().device;
  graph::Extern callee;
  callee.callee = "cxxinductor::philox_state";
  callee.args = {ArgList{Arg(count)}, ArgList{Arg(int64_t{numbers})}, Arg(device)};
  callee.ordered = true;
  callee.alias_of = {-1};
  graph::Value state;
  state.dtype = DType::I64;
  state.device = device;
  state.sizes = {3};
  state.layout = {graph::Layout::Kind::Fixed, {1}};
  return context.build.call_extern(std::move(callee), {}, {state}).front();
}

ValueId element(CallContext& context, ValueId state, int64_t index) { return context.build.reshape(context.build.slice(state, 0, index, 1, 1), {}); }

// Division by a constant of the kernel is faster than division by a loaded number.
Operand thread_count(CallContext& context, ValueId state, sym::Expr count, DType dtype) {
  if (const Target* gpu = context.gpu(); gpu && count.is_constant()) return integer_of(dtype, random_threads(count.constant(), *gpu));
  return context.build.cast(element(context, state, 2), dtype);
}

}  // namespace

ValueId words_of_neighbours(CallContext& context, const Sizes& sizes, int64_t width) {
  graph::Builder& build = context.build;
  const sym::Expr count = graph::element_count(sizes);
  const ValueId state = generator_state(context, count, 4);
  const ValueId position = build.reshape(build.iota(0, 1, count, DType::I64, context.result().device), sizes);
  return build.elementwise(ScalarOp::Philox, {element(context, state, 0), element(context, state, 1), position, integer_of(DType::I64, width / 4),
                                              thread_count(context, state, count, DType::I64)});
}

std::optional<std::vector<int>> memory_order(const CallContext& context) {
  const Sizes& sizes = context.result().sizes;
  const Sizes& strides = context.result().strides;
  std::vector<int> left, inside;  // from the innermost
  for (int d = static_cast<int>(sizes.size()) - 1; d >= 0; --d) left.push_back(d);
  sym::Expr expected = 1;
  while (!left.empty()) {
    // A dimension of size 1 has no order.
    const auto next = std::find_if(left.begin(), left.end(), [&](int d) {
      const auto i = static_cast<size_t>(d);
      return (sizes[i].is_constant() && sizes[i].constant() <= 1) || sym::prove_equal(strides[i], expected, context.assumptions());
    });
    if (next == left.end()) return std::nullopt;
    expected = expected * sizes[static_cast<size_t>(*next)];
    inside.push_back(*next);
    left.erase(next);
  }
  return std::vector<int>(inside.rbegin(), inside.rend());
}

// Of T threads that take `numbers` numbers a call, thread p % T draws for element p, in its call p / (T * numbers), the
// number (p / T) % numbers.
GridStrideSampler::GridStrideSampler(CallContext& context, const std::vector<int>& order, int numbers) : build_(context.build), numbers_(numbers) {
  const Sizes& sizes = context.result().sizes;
  const sym::Expr count = graph::element_count(sizes);
  const ValueId state = generator_state(context, count, numbers);
  Sizes in_memory;
  std::vector<int> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    in_memory.push_back(sizes[static_cast<size_t>(order[i])]);
    place[static_cast<size_t>(order[i])] = static_cast<int>(i);
  }
  ValueId position = build_.reshape(build_.iota(0, 1, count, DType::I64, context.result().device), in_memory);
  if (!std::is_sorted(order.begin(), order.end())) position = build_.permute(position, place);
  position = build_.cast(position, DType::U32);
  const Operand threads = thread_count(context, state, count, DType::U32);
  const ValueId quotient = build_.elementwise(ScalarOp::TruncDiv, {position, threads});
  const ValueId thread = build_.elementwise(ScalarOp::Fmod, {position, threads});
  const ValueId turn = build_.elementwise(ScalarOp::ShiftRight, {quotient, integer_of(DType::U32, numbers == 4 ? 2 : 1)});
  number_ = build_.elementwise(ScalarOp::BitAnd, {quotient, integer_of(DType::U32, numbers - 1)});
  seed_ = element(context, state, 0);
  call_ = build_.elementwise(ScalarOp::Add, {element(context, state, 1), build_.cast(turn, DType::I64)});
  thread_ = build_.cast(thread, DType::I64);
}

ValueId GridStrideSampler::draw(Operand pair) { return build_.elementwise(ScalarOp::PhiloxPair, {seed_, call_, thread_, std::move(pair)}); }

ValueId GridStrideSampler::pair_of_call(int which) { return draw(integer_of(DType::I64, which)); }

ValueId GridStrideSampler::pair() {
  const ValueId which = numbers_ == 2 ? number_ : build_.elementwise(ScalarOp::ShiftRight, {number_, integer_of(DType::U32, 1)});
  return draw(build_.cast(which, DType::I64));
}

ValueId GridStrideSampler::is_odd() {
  const ValueId last = build_.elementwise(ScalarOp::BitAnd, {number_, integer_of(DType::U32, 1)});
  return build_.elementwise(ScalarOp::Ne, {last, integer_of(DType::U32, 0)});
}

ValueId GridStrideSampler::word() {
  const ValueId both = pair();
  const ValueId first = build_.elementwise(ScalarOp::ShiftRight, {both, integer_of(DType::I64, 32)});
  return build_.cast(build_.elementwise(ScalarOp::Where, {is_odd(), both, first}), DType::U32);
}

}  // namespace cxxinductor::frontend

// A row per overload that has a form on pairs. z = a + bi, w = c + di; formulas are ATen's (c10/util/complex.h and the
// kernels in aten/src/ATen/native) unless a comment says otherwise. Overloads without a row run on interleaved tensors.
#include <complex>
#include <limits>

#include "frontend/complex/pairs.h"
#include "frontend/importer.h"
#include "support/fork_locks.h"

namespace cxxinductor::frontend {
namespace {

// None where the call has none: rules then leave the call as it is, for the importer to refuse.
Arg operand(const Call& call, size_t position, std::string_view name) {
  if (position < call.args.size()) return call.args[position];
  for (const auto& [key, arg] : call.kwargs)
    if (key == name) return arg;
  return None{};
}

CallValueInfo info_of(const PairLowering& pairs, const Call& call, size_t result = 0) { return pairs.info(call.results.at(result)); }

bool gives_complex(const PairLowering& pairs, const Call& call) { return component_type(info_of(pairs, call).dtype) != info_of(pairs, call).dtype; }

// ---- Arithmetic ---------------------------------------------------------------------------------------------------

Pair product(PairLowering& p, const Pair& z, const Pair& w, const CallValueInfo& like) {
  return {p.sub(p.mul(z.re, w.re, like), p.mul(z.im, w.im, like), like), p.add(p.mul(z.re, w.im, like), p.mul(z.im, w.re, like), like)};
}

// Smith's division: the larger part of the divisor scales both, so that no square overflows.
Pair quotient(PairLowering& p, const Pair& z, const Pair& w, const CallValueInfo& like) {
  CallValueInfo truth = like;
  truth.dtype = DType::Bool;
  const Arg c = p.tensor(w.re, like), d = p.tensor(w.im, like);
  const Arg by_real = p.call("aten::ge", "Tensor", {p.call("aten::abs", "", {c}, like), p.call("aten::abs", "", {d}, like)}, truth);
  const Arg large = p.select(by_real, c, d, like), small = p.select(by_real, d, c, like);
  const Arg is_zero = p.call("aten::eq", "Scalar", {large, Arg(0.0)}, truth);
  // Of a zero divisor: each part over |0|, as ATen has it.
  const Arg ratio = p.select(is_zero, Arg(0.0), p.div(small, large, like), like);
  const Arg scale = p.call("aten::reciprocal", "", {p.add(large, p.mul(small, ratio, like), like)}, like);
  const Arg first = p.select(by_real, z.re, z.im, like), second = p.select(by_real, z.im, z.re, like);
  const Arg cross = p.sub(second, p.mul(first, ratio, like), like);
  const Arg im = p.mul(cross, scale, like);
  return {p.mul(p.add(first, p.mul(second, ratio, like), like), scale, like), p.select(by_real, im, p.neg(im, like), like)};
}

template <Pair (*Formula)(PairLowering&, const Pair&, const Pair&, const CallValueInfo&)>
bool binary(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self")), w = p.pair_of(operand(call, 1, "other"));
  if (!z || !w) return false;
  p.set_pair(call.results[0], Formula(p, *z, *w, info_of(p, call)));
  return true;
}

// z + alpha * w, or z - alpha * w.
bool sum_of(PairLowering& p, const Call& call, size_t alpha_position, bool subtract) {
  const auto z = p.pair_of(operand(call, 0, "self"));
  auto w = p.pair_of(operand(call, 1, "other"));
  const Arg given = operand(call, alpha_position, "alpha");
  const auto alpha = given.is_none() ? std::optional(Pair{1.0, 0.0}) : p.pair_of(given);
  if (!z || !w || !alpha) return false;
  const CallValueInfo like = info_of(p, call);
  if (alpha->re != Arg(1.0) || alpha->im != Arg(0.0)) w = product(p, *w, *alpha, like);
  const auto combine = [&](const Arg& a, const Arg& b) { return subtract ? p.sub(a, b, like) : p.add(a, b, like); };
  p.set_pair(call.results[0], {combine(z->re, w->re), combine(z->im, w->im)});
  return true;
}

template <bool Subtract>
bool sum_of_tensors(PairLowering& p, const Call& call) {
  return sum_of(p, call, 2, Subtract);
}

template <bool Conjugate, bool Negate>
bool change_signs(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self"));
  if (!z) return false;
  const CallValueInfo like = info_of(p, call);
  if (!gives_complex(p, call)) {
    p.define_as(call.results[0], Negate ? p.neg(z->re, like) : z->re);
    return true;
  }
  p.set_pair(call.results[0], {Negate ? p.neg(z->re, like) : z->re, Conjugate != Negate ? p.neg(z->im, like) : z->im});
  return true;
}

bool reciprocal(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self"));
  if (!z || !gives_complex(p, call)) return false;
  p.set_pair(call.results[0], quotient(p, {1.0, 0.0}, *z, info_of(p, call)));
  return true;
}

bool power(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self")), exponent = p.pair_of(operand(call, 1, "exponent"));
  if (!z || !exponent || exponent->re != Arg(2.0) || exponent->im != Arg(0.0)) return false;
  p.set_pair(call.results[0], product(p, *z, *z, info_of(p, call)));
  return true;
}

bool exponential(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self"));
  if (!z || !gives_complex(p, call)) return false;
  const CallValueInfo like = info_of(p, call);
  CallValueInfo truth = like;
  truth.dtype = DType::Bool;
  const auto both = [&](const Arg& a, const Arg& b) { return p.call("aten::logical_and", "", {a, b}, truth); };
  const Arg size = p.call("aten::exp", "", {z->re}, like);
  const Arg re = p.mul(size, p.call("aten::cos", "", {z->im}, like), like), im = p.mul(size, p.call("aten::sin", "", {z->im}, like), like);
  // On the real axis infinity times zero is zero.
  const Arg on_axis = p.call("aten::eq", "Scalar", {z->im, Arg(0.0)}, truth);
  // Of no direction: the size stays, and no size has no direction.
  const Arg undirected = p.call("aten::ne", "Scalar", {p.sub(z->im, z->im, like), Arg(0.0)}, truth);
  const Arg is_size = p.call("aten::logical_or", "", {on_axis, both(undirected, p.call("aten::isinf", "", {z->re}, truth))}, truth);
  const Arg is_zero = both(undirected, p.call("aten::eq", "Scalar", {z->re, Arg(-std::numeric_limits<double>::infinity())}, truth));
  const Arg along = p.select(is_zero, p.call("aten::copysign", "Tensor", {size, z->im}, like), im, like);
  p.set_pair(call.results[0], {p.select(is_size, size, re, like), p.select(on_axis, z->im, along, like)});
  return true;
}

// ---- Between complex and real -------------------------------------------------------------------------------------

Arg magnitude(PairLowering& p, const Pair& z, const CallValueInfo& like) { return p.call("aten::hypot", "", {z.re, z.im}, like); }

bool absolute(PairLowering& p, const Call& call) {
  if (!p.is_complex(operand(call, 0, "self"))) return false;
  p.define_as(call.results[0], magnitude(p, *p.pair_of(operand(call, 0, "self")), info_of(p, call)));
  return true;
}

bool angle(PairLowering& p, const Call& call) {
  if (!p.is_complex(operand(call, 0, "self"))) return false;
  const Pair z = *p.pair_of(operand(call, 0, "self"));
  p.define(call.results[0], "aten::atan2", "", {z.im, z.re});
  return true;
}

// z / |z|, and 0 of 0.
bool sign(PairLowering& p, const Call& call) {
  if (!p.is_complex(operand(call, 0, "self"))) return false;
  const Pair z = *p.pair_of(operand(call, 0, "self"));
  const CallValueInfo like = info_of(p, call);
  CallValueInfo truth = like;
  truth.dtype = DType::Bool;
  const Arg size = magnitude(p, z, like);
  const Arg is_zero = p.call("aten::eq", "Scalar", {size, Arg(0.0)}, truth);
  const auto part = [&](const Arg& x) { return p.select(is_zero, Arg(0.0), p.div(x, size, like), like); };
  p.set_pair(call.results[0], {part(z.re), part(z.im)});
  return true;
}

bool of_parts(PairLowering& p, const Call& call) {
  p.set_pair(call.results[0], {operand(call, 0, "real"), operand(call, 1, "imag")});
  return true;
}

bool polar(PairLowering& p, const Call& call) {
  const Arg size = operand(call, 0, "abs"), direction = operand(call, 1, "angle");
  const OperandRef* angle = direction.as<OperandRef>();
  if (angle == nullptr) return false;
  const CallValueInfo like = info_of(p, call);
  CallValueInfo own = p.info(angle->operand);
  const Arg cosine = p.call("aten::cos", "", {direction}, own), sine = p.call("aten::sin", "", {direction}, own);
  p.set_pair(call.results[0], {p.mul(size, cosine, like), p.mul(size, sine, like)});
  return true;
}

bool view_as_complex(PairLowering& p, const Call& call) {
  const Arg both = operand(call, 0, "self");
  if (!both.as<OperandRef>()) return false;
  const auto last = static_cast<int64_t>(info_of(p, call).sizes.size());
  if (const Pair* known = p.stacked(both.as<OperandRef>()->operand)) {
    p.set_pair(call.results[0], Pair(*known));
    return true;
  }
  const auto part = [&](int64_t index) { return p.call("aten::select", "int", {both, Arg(last), Arg(index)}, info_of(p, call)); };
  p.set_pair(call.results[0], {part(0), part(1)});
  return true;
}

bool view_as_real(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self"));
  if (!z) return false;
  const auto last = static_cast<int64_t>(info_of(p, call).sizes.size()) - 1;
  p.define(call.results[0], "aten::stack", "", {Arg(ArgList{z->re, z->im}), Arg(last)});
  p.remember_stacked(call.results[0], *z);
  return true;
}

// real() and imag() arrive as a select of view_as_real.
bool select_part(PairLowering& p, const Call& call) {
  const Arg self = operand(call, 0, "self");
  const Pair* known = self.as<OperandRef>() ? p.stacked(self.as<OperandRef>()->operand) : nullptr;
  if (known == nullptr) return false;
  const auto last = static_cast<int64_t>(p.info(self.as<OperandRef>()->operand).sizes.size()) - 1;
  const Arg dim = operand(call, 1, "dim"), index = operand(call, 2, "index");
  if ((dim != Arg(last) && dim != Arg(int64_t{-1})) || (index != Arg(int64_t{0}) && index != Arg(int64_t{1}))) return false;
  p.define_as(call.results[0], index == Arg(int64_t{0}) ? known->re : known->im);
  return true;
}

template <bool Equal>
bool compare(PairLowering& p, const Call& call) {
  const auto z = p.pair_of(operand(call, 0, "self")), w = p.pair_of(operand(call, 1, "other"));
  if (!z || !w) return false;
  const CallValueInfo like = info_of(p, call);
  const char* name = Equal ? "aten::eq" : "aten::ne";
  const auto compared = [&](Arg a, Arg b) {
    if (!a.as<OperandRef>()) std::swap(a, b);
    if (b.as<OperandRef>()) return p.call(name, "Tensor", {a, b}, like);
    CallValueInfo own = p.info(a.as<OperandRef>()->operand);  // a number does not broadcast
    own.dtype = like.dtype;
    return p.call(name, "Tensor", {a, b}, own);
  };
  p.define(call.results[0], Equal ? "aten::logical_and" : "aten::logical_or", "", {compared(z->re, w->re), compared(z->im, w->im)});
  return true;
}

template <bool Nan>
bool test_parts(PairLowering& p, const Call& call) {
  if (!p.is_complex(operand(call, 0, "self"))) return false;
  const Pair z = *p.pair_of(operand(call, 0, "self"));
  const CallValueInfo like = info_of(p, call);
  const char* name = Nan ? "aten::isnan" : "aten::isinf";
  p.define(call.results[0], "aten::logical_or", "", {p.call(name, "", {z.re}, like), p.call(name, "", {z.im}, like)});
  return true;
}

// ---- Casts and creation -------------------------------------------------------------------------------------------

bool cast(PairLowering& p, const Call& call) {
  const auto pair = call.args.empty() ? std::nullopt : p.pair_of(call.args[0]);
  if (!pair) return false;
  const Pair& z = *pair;
  Call part = call;
  std::erase_if(part.kwargs, [](const auto& named) { return named.first == "dtype"; });
  const CallValueInfo like = info_of(p, call);
  const DType dtype = component_type(like.dtype);
  part.kwargs.emplace_back("dtype", Arg(dtype));
  const auto of = [&](const Arg& x) {
    std::vector<Arg> args = part.args;
    args[0] = x;
    return p.call("aten::_to_copy", "", std::move(args), like, part.kwargs);
  };
  if (gives_complex(p, call))
    p.set_pair(call.results[0], {of(z.re), z.im.as<OperandRef>() ? of(z.im) : z.im});
  else if (dtype == DType::Bool && z.im.as<OperandRef>())  // true unless both parts are zero
    p.define(call.results[0], "aten::logical_or", "", {of(z.re), of(z.im)});
  else
    p.define_as(call.results[0], of(z.re));
  return true;
}

bool constant(PairLowering& p, const Call& call, const Pair& value) {
  if (!gives_complex(p, call)) return false;
  p.set_pair(call.results[0], value);
  return true;
}
bool zeros(PairLowering& p, const Call& call) { return constant(p, call, {0.0, 0.0}); }
bool ones(PairLowering& p, const Call& call) { return constant(p, call, {1.0, 0.0}); }
template <size_t Position>
bool full(PairLowering& p, const Call& call) {
  const auto value = p.pair_of(operand(call, Position, "fill_value"));
  return value && !value->re.as<OperandRef>() && constant(p, call, *value);
}

// ---- Ops that treat both parts alike ------------------------------------------------------------------------------

// Runs the call once per part; the arguments at Positions hold elements, the others say which.
template <size_t... Positions>
bool part_by_part(PairLowering& p, const Call& call) {
  for (CallValue result : call.results) {
    if (component_type(p.info(result).dtype) == p.info(result).dtype) return false;
  }
  const std::vector<CallValue> real = p.call_on_part(call, {Positions...}, false);
  const std::vector<CallValue> imaginary = p.call_on_part(call, {Positions...}, true);
  for (size_t r = 0; r < call.results.size(); ++r) p.set_pair(call.results[r], {Arg(OperandRef{real[r]}), Arg(OperandRef{imaginary[r]})});
  return true;
}

// Of scatters whose source must have the target's dtype: ATen raises where it has not.
template <size_t Target, size_t Source>
bool scatter_part_by_part(PairLowering& p, const Call& call) {
  const OperandRef *target = call.args.at(Target).as<OperandRef>(), *source = call.args.at(Source).as<OperandRef>();
  if (target && source && p.info(target->operand).dtype != p.info(source->operand).dtype) return false;
  return part_by_part<Target, Source>(p, call);
}

using PairRules = std::map<std::string, PairRule, std::less<>>;

// Apply to the parts alike.
// clang-format off
constexpr const char* linear_ops[] = {
    "aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_reshape_alias", "aten::unsqueeze", "aten::squeeze",
    "aten::squeeze.dim", "aten::squeeze.dims", "aten::flatten.using_ints", "aten::unflatten.int", "aten::expand",
    "aten::broadcast_to", "aten::detach", "aten::alias", "aten::permute", "aten::transpose.int", "aten::t",
    "aten::movedim.intlist", "aten::movedim.int", "aten::slice.Tensor", "aten::narrow", "aten::split.Tensor",
    "aten::split_with_sizes", "aten::chunk", "aten::unsafe_split.Tensor", "aten::unbind.int", "aten::diagonal",
    "aten::clone", "aten::contiguous", "aten::lift_fresh_copy", "aten::cat", "aten::stack", "aten::flip", "aten::roll",
    "aten::repeat", "aten::index.Tensor", "aten::_unsafe_index.Tensor", "aten::index_select", "aten::gather",
    "aten::embedding", "aten::tril", "aten::triu", "aten::slice_backward", "aten::select_backward", "aten::sum",
    "aten::sum.dim_IntList", "aten::mean", "aten::mean.dim", "aten::cumsum",
};
// clang-format on

PairRules make_rules() {
  PairRules table{
      {"aten::add.Tensor", sum_of_tensors<false>},
      {"aten::add.Scalar", sum_of_tensors<false>},
      {"aten::sub.Tensor", sum_of_tensors<true>},
      {"aten::sub.Scalar", sum_of_tensors<true>},
      {"aten::mul.Tensor", binary<product>},
      {"aten::mul.Scalar", binary<product>},
      {"aten::div.Tensor", binary<quotient>},
      {"aten::div.Scalar", binary<quotient>},
      {"aten::neg", change_signs<false, true>},
      {"aten::_neg_view", change_signs<false, true>},
      {"aten::_conj", change_signs<true, false>},
      {"aten::_conj_physical", change_signs<true, false>},
      {"aten::conj_physical", change_signs<true, false>},
      {"aten::resolve_conj", change_signs<false, false>},
      {"aten::resolve_neg", change_signs<false, false>},
      {"aten::reciprocal", reciprocal},
      {"aten::pow.Tensor_Scalar", power},
      {"aten::exp", exponential},
      {"aten::abs", absolute},
      {"aten::angle", angle},
      {"aten::sgn", sign},
      {"aten::complex", of_parts},
      {"aten::polar", polar},
      {"aten::view_as_complex", view_as_complex},
      {"aten::view_as_real", view_as_real},
      {"aten::eq.Tensor", compare<true>},
      {"aten::eq.Scalar", compare<true>},
      {"aten::ne.Tensor", compare<false>},
      {"aten::ne.Scalar", compare<false>},
      {"aten::isnan", test_parts<true>},
      {"aten::isinf", test_parts<false>},
      {"aten::_to_copy", cast},
      {"aten::where.self", part_by_part<1, 2>},
      {"aten::masked_fill.Scalar", part_by_part<0, 2>},
      {"aten::masked_fill.Tensor", part_by_part<0, 2>},
      {"aten::index_put", scatter_part_by_part<0, 2>},
      {"aten::_unsafe_index_put", scatter_part_by_part<0, 2>},
      {"aten::index_add", scatter_part_by_part<0, 3>},
      {"aten::scatter_add", scatter_part_by_part<0, 3>},
      {"aten::scatter.src", scatter_part_by_part<0, 3>},
      {"aten::scatter.value", part_by_part<0, 3>},
      {"aten::slice_scatter", part_by_part<0, 1>},
      {"aten::select_scatter", part_by_part<0, 1>},
      {"aten::diagonal_scatter", part_by_part<0, 1>},
      {"aten::copy", part_by_part<0, 1>},
      {"aten::constant_pad_nd", part_by_part<0, 2>},
      {"aten::fill.Scalar", part_by_part<0, 1>},
      {"aten::select.int", [](PairLowering& p, const Call& call) { return select_part(p, call) || part_by_part<0>(p, call); }},
  };
  for (const char* name : {"aten::zeros", "aten::zeros_like", "aten::new_zeros"}) table.emplace(name, zeros);
  for (const char* name : {"aten::ones", "aten::ones_like", "aten::new_ones"}) table.emplace(name, ones);
  table.emplace("aten::full", full<1>);
  table.emplace("aten::full_like", full<1>);
  table.emplace("aten::new_full", full<2>);
  table.emplace("aten::scalar_tensor", full<0>);
  for (const char* name : linear_ops) table.emplace(name, part_by_part<0>);
  return table;
}

constinit MadeOnce<PairRules, ForkLock::Tables> rules;

}  // namespace

const PairRules& pair_rules() { return rules.get(make_rules); }

}  // namespace cxxinductor::frontend

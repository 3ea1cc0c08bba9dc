#include "frontend/complex/lower_complex.h"

#include <algorithm>
#include <complex>

#include "frontend/complex/pairs.h"
#include "frontend/importer.h"
#include "model/effects.h"
#include "support/error.h"

namespace cxxinductor::frontend {
namespace {

bool is_complex_type(DType dtype) { return dtype == DType::C64 || dtype == DType::C128; }

bool is_flagged(const CallValueInfo& info) { return info.conjugate || info.negative; }

// Calls that make it may have a form on pairs.
bool is_paired(const CallValueInfo& info) { return is_complex_value(info) || is_flagged(info); }

// Strides of the (real, imaginary) view of a tensor with these strides.
Sizes interleaved_strides(const Sizes& strides) {
  Sizes doubled;
  for (const sym::Expr& stride : strides) doubled.push_back(stride * 2);
  doubled.push_back(1);
  return doubled;
}

}  // namespace

bool is_complex_value(const CallValueInfo& info) { return info.kind == CallValueInfo::Kind::Tensor && is_complex_type(info.dtype); }

DType component_type(DType complex) {
  if (complex == DType::C64) return DType::F32;
  return complex == DType::C128 ? DType::F64 : complex;
}

bool has_complex(const CallGraph& calls) { return std::any_of(calls.values.begin(), calls.values.end(), is_paired); }

CallGraph lower_complex(CallGraph calls, const model::SchemaSource& schemas) {
  if (!has_complex(calls)) return calls;
  return PairLowering(calls, schemas).run();
}

PairLowering::PairLowering(const CallGraph& calls, const model::SchemaSource& schemas) : calls_(calls), schemas_(schemas), out_(calls) { out_.calls.clear(); }

CallGraph PairLowering::run() {
  for (CallValue input : out_.inputs) {
    if (is_complex_value(info(input))) interleaved_.insert(input);
  }
  for (const Call& call : calls_.calls) {
    origin_ = call.origin;
    lower(call);
  }
  origin_ = OriginId();
  for (const auto& [input, value] : calls_.mutations) pack_all(Arg(OperandRef{value}));
  for (uint32_t position = 0; position < out_.outputs.size(); ++position) {
    const OperandRef* ref = out_.outputs[position].as<OperandRef>();
    if (ref == nullptr) continue;
    // What is saved for a backward graph needs no memory but its own.
    if (is_paired(calls_.values.at(ref->operand)) || !out_.flexible_outputs.contains(position)) out_.outputs[position] = OperandRef{materialize(ref->operand)};
  }
  return std::move(out_);
}

// ---- Memory as in eager -------------------------------------------------------------------------------------------

void PairLowering::remember_views(const Call& call) {
  const auto schema = schemas_.find(call.callee, call.overload);
  if (!schema) return;
  const model::CallEffects effects = model::effects_of_call(call.args, call.kwargs, *schema, call.results.size());
  for (CallValue written : effects.mutated_operands) {
    overwritten_.insert(written);
    for (auto view = views_.find(written); view != views_.end(); view = views_.find(view->second.operand)) overwritten_.insert(view->second.operand);
  }
  for (size_t r = 0; r < call.results.size() && effects.mutated_operands.empty(); ++r)
    if (effects.alias_of[r] >= 0) views_[call.results[r]] = {&call, static_cast<CallValue>(effects.alias_of[r])};
}

bool PairLowering::is_live_view(CallValue id) const {
  auto view = views_.find(id);
  if (view == views_.end()) return false;
  for (; view != views_.end(); view = views_.find(view->second.operand))
    if (overwritten_.contains(view->second.operand)) return false;
  return true;
}

CallValue PairLowering::materialize(CallValue id) {
  if (is_interleaved_as_declared(id)) return id;
  const auto [found, fresh] = materialized_.try_emplace(id);
  if (fresh) found->second = with_bits(memory_of(id), calls_.values.at(id));
  return found->second;
}

bool PairLowering::is_interleaved_as_declared(CallValue id) const {
  const CallValueInfo& declared = calls_.values.at(id);
  return interleaved_.contains(id) && info(id).conjugate == declared.conjugate && info(id).negative == declared.negative;
}

CallValue PairLowering::memory_of(CallValue id) {
  if (const auto known = memory_.find(id); known != memory_.end()) return known->second;
  if (is_live_view(id)) {
    view_memory(views_.at(id), id);
  } else if (is_flagged(calls_.values.at(id))) {
    memory_[id] = without_bits(id);
  } else {
    if (is_complex_value(info(id))) pack(id);
    memory_[id] = id;
  }
  return memory_.at(id);
}

// Bits do not change what a view has in memory. Below a pair that was packed is the tensor that view_as_real gives.
void PairLowering::view_memory(const View& view, CallValue id) {
  const CallValue base = memory_of(view.operand);
  Call call = *view.call;
  const auto both = packed_.find(base);
  if (call.callee == "aten::_conj" || call.callee == "aten::_neg_view") {
    memory_[id] = base;
  } else if (kept_.contains(id) && base == view.operand) {
    memory_[id] = id;
  } else if (call.callee == "aten::view_as_real" && both != packed_.end()) {
    memory_[id] = both->second;
  } else {
    for (Arg& arg : call.args)
      if (arg == Arg(OperandRef{view.operand})) arg = OperandRef{base};
    for (CallValue& result : call.results) {
      CallValueInfo plain = calls_.values.at(result);
      const bool complex = is_complex_value(plain), own = complex && !is_flagged(plain);
      plain.conjugate = plain.negative = false;
      const CallValue viewed = own ? result : new_value(plain);
      if (complex) interleaved_.insert(viewed);
      out_.values[viewed].storage = plain.storage;
      out_.values[viewed].storage_offset = plain.storage_offset;
      memory_[result] = viewed;
      result = viewed;
    }
    out_.calls.push_back(std::move(call));
  }
}

// A value that is not a view, in memory that undoes its bits.
CallValue PairLowering::without_bits(CallValue id) {
  CallValueInfo declared = calls_.values.at(id), plain = declared;
  plain.conjugate = plain.negative = false;
  if (is_interleaved_as_declared(id)) return with_bits(id, declared);  // an input, or a call made it: toggles them
  const CallValue undone = new_value(plain);
  if (is_complex_value(declared)) {
    const Pair pair = pairs_.at(id);
    const auto negated = [&](const Arg& part, bool negate) { return negate ? neg(part, plain) : part; };
    set_pair(undone, {negated(pair.re, declared.negative), negated(pair.im, declared.negative != declared.conjugate)});
    pack(undone);
  } else {
    define(undone, "aten::neg", "", {Arg(OperandRef{id})});
  }
  return undone;
}

// The tensor of this memory, seen through the bits of `declared`.
CallValue PairLowering::with_bits(CallValue memory, const CallValueInfo& declared) {
  const auto toggled = [&](const char* view, bool CallValueInfo::*bit) {
    if (!(declared.*bit)) return;
    CallValueInfo next = info(memory);
    next.*bit = !(next.*bit);
    const CallValue viewed = new_value(next);
    define(viewed, view, "", {Arg(OperandRef{memory})});
    memory = viewed;
  };
  toggled("aten::_conj", &CallValueInfo::conjugate);
  toggled("aten::_neg_view", &CallValueInfo::negative);
  return memory;
}

bool PairLowering::is_complex(const Arg& arg) const {
  const OperandRef* ref = arg.as<OperandRef>();
  return ref != nullptr && is_complex_value(info(ref->operand));
}

bool PairLowering::holds_complex(const Arg& arg) const {
  const ArgList* list = arg.as<ArgList>();
  if (list != nullptr) return std::any_of(list->begin(), list->end(), [this](const Arg& a) { return holds_complex(a); });
  return is_complex(arg) || arg.as<std::complex<double>>() != nullptr;
}

// ---- Calls --------------------------------------------------------------------------------------------------------

void PairLowering::lower(const Call& call) {
  bool complex = std::any_of(call.args.begin(), call.args.end(), [this](const Arg& arg) { return holds_complex(arg); });
  for (const auto& [name, arg] : call.kwargs) complex = complex || holds_complex(arg);
  for (CallValue result : call.results) complex = complex || is_paired(info(result));
  // A select may take a part of what view_as_real made, and the negative of a tensor with the bit has none: no complex value.
  const auto row = pair_rules().find(full_name(call));
  const bool has_row = row != pair_rules().end() && !holds_half_complex(call) && (complex || call.callee == "aten::select" || call.callee == "aten::_neg_view");
  if (!has_row || !row->second(*this, call)) keep(call);
  remember_views(call);
}

// Components of 16 bits are no dtype of pairs: ATen rounds results to them, not what is between.
bool PairLowering::holds_half_complex(const Call& call) const {
  bool found = false;
  const auto look = [&](CallValue id) { found |= info(id).kind == CallValueInfo::Kind::Tensor && info(id).dtype == DType::C32; };
  for (const Arg& arg : call.args) for_each_operand_ref(arg, [&](OperandRef ref) { look(ref.operand); });
  for (const auto& [name, arg] : call.kwargs) for_each_operand_ref(arg, [&](OperandRef ref) { look(ref.operand); });
  for (CallValue result : call.results) look(result);
  return found;
}

// The call as it was recorded, on interleaved operands.
void PairLowering::keep(const Call& call) {
  for (const Arg& arg : call.args) pack_all(arg);
  for (const auto& [name, arg] : call.kwargs) pack_all(arg);
  out_.calls.push_back(call);
  for (CallValue result : call.results) {
    kept_.insert(result);
    if (is_complex_value(info(result))) interleaved_.insert(result);
  }
}

CallValue PairLowering::new_value(CallValueInfo info) {
  const auto id = static_cast<CallValue>(out_.values.size());
  info.name = "part_" + std::to_string(id);
  info.storage = 0;
  info.storage_offset = 0;
  out_.values.push_back(std::move(info));
  return id;
}

CallValueInfo PairLowering::real_like(const CallValueInfo& like) const {
  CallValueInfo real = like;
  real.dtype = component_type(like.dtype);
  real.conjugate = real.negative = false;
  return real;
}

void PairLowering::define(CallValue result, std::string_view callee, std::string_view overload, std::vector<Arg> args,
                          std::vector<std::pair<std::string, Arg>> kwargs) {
  Call call;
  call.callee = callee;
  call.overload = overload;
  call.args = std::move(args);
  call.kwargs = std::move(kwargs);
  call.results = {result};
  call.origin = origin_;
  out_.calls.push_back(std::move(call));
}

void PairLowering::define_as(CallValue result, const Arg& part) {
  const CallValueInfo like = info(result);
  const OperandRef* ref = part.as<OperandRef>();
  if (ref == nullptr)
    return define(result, "aten::full", "", {Arg(ArgList(like.sizes.begin(), like.sizes.end())), part},
                  {{"dtype", Arg(like.dtype)}, {"device", Arg(like.device)}});
  if (info(ref->operand).dtype != like.dtype) return define(result, "aten::_to_copy", "", {part}, {{"dtype", Arg(like.dtype)}});
  define(result, "aten::alias", "", {part});
}

Arg PairLowering::call(std::string_view callee, std::string_view overload, std::vector<Arg> args, const CallValueInfo& like,
                       std::vector<std::pair<std::string, Arg>> kwargs) {
  const CallValue result = new_value(real_like(like));
  define(result, callee, overload, std::move(args), std::move(kwargs));
  return OperandRef{result};
}

namespace {

const double* scalar_arg_of(const Arg& arg) { return arg.as<double>(); }

}  // namespace

// As in eager, operands take the type of the result before the op. One of them has its sizes.
Arg PairLowering::binary(std::string_view callee, const Arg& a, const Arg& b, const CallValueInfo& like) {
  const OperandRef* other = b.as<OperandRef>();
  const bool sized = other != nullptr && info(other->operand).sizes == like.sizes;
  return call(callee, "Tensor", {sized ? cast(a, like) : tensor(a, like), cast(b, like)}, like);
}

Arg PairLowering::add(const Arg& a, const Arg& b, const CallValueInfo& like) {
  if (scalar_arg_of(a) && scalar_arg_of(b)) return *scalar_arg_of(a) + *scalar_arg_of(b);
  return scalar_arg_of(a) ? binary("aten::add", b, a, like) : binary("aten::add", a, b, like);
}

Arg PairLowering::sub(const Arg& a, const Arg& b, const CallValueInfo& like) {
  if (scalar_arg_of(a) && scalar_arg_of(b)) return *scalar_arg_of(a) - *scalar_arg_of(b);
  if (scalar_arg_of(a)) return call("aten::rsub", "Scalar", {tensor(b, like), a}, like);
  return binary("aten::sub", a, b, like);
}

Arg PairLowering::mul(const Arg& a, const Arg& b, const CallValueInfo& like) {
  if (scalar_arg_of(a) && scalar_arg_of(b)) return *scalar_arg_of(a) * *scalar_arg_of(b);
  return scalar_arg_of(a) ? binary("aten::mul", b, a, like) : binary("aten::mul", a, b, like);
}

Arg PairLowering::div(const Arg& a, const Arg& b, const CallValueInfo& like) {
  if (scalar_arg_of(a) && scalar_arg_of(b)) return *scalar_arg_of(a) / *scalar_arg_of(b);
  return binary("aten::div", scalar_arg_of(a) ? tensor(a, like) : a, b, like);
}

Arg PairLowering::neg(const Arg& a, const CallValueInfo& like) {
  return scalar_arg_of(a) ? Arg(-*scalar_arg_of(a)) : call("aten::neg", "", {tensor(a, like)}, like);
}

Arg PairLowering::select(const Arg& condition, const Arg& yes, const Arg& no, const CallValueInfo& like) {
  const CallValueInfo real = real_like(like);
  return call("aten::where", "self", {condition, fit(yes, real), fit(no, real)}, like);
}

Arg PairLowering::full(const Arg& number, const CallValueInfo& like) {
  const DType dtype = component_type(like.dtype);
  return call("aten::full", "", {Arg(ArgList(like.sizes.begin(), like.sizes.end())), number}, like, {{"dtype", Arg(dtype)}, {"device", Arg(like.device)}});
}

// ---- Parts --------------------------------------------------------------------------------------------------------

// The part in the target's component type and sizes, as a tensor.
Arg PairLowering::fit(const Arg& part, const CallValueInfo& target) {
  const OperandRef* ref = part.as<OperandRef>();
  if (ref == nullptr) return full(part, target);
  const Arg converted = cast(part, target);
  if (info(ref->operand).sizes == target.sizes) return converted;
  return call("aten::expand", "", {converted, Arg(ArgList(target.sizes.begin(), target.sizes.end()))}, target);
}

// The part in the component type of `like`, in its own sizes. Numbers have no type.
Arg PairLowering::cast(const Arg& part, const CallValueInfo& like) {
  const OperandRef* ref = part.as<OperandRef>();
  const DType dtype = component_type(like.dtype);
  if (ref == nullptr || info(ref->operand).dtype == dtype) return part;
  CallValueInfo own = info(ref->operand);
  own.dtype = dtype;
  return call("aten::_to_copy", "", {part}, own, {{"dtype", Arg(dtype)}});
}

void PairLowering::set_pair(CallValue result, Pair pair) {
  const CallValueInfo target = real_like(info(result));
  Pair fitted{fit(pair.re, target), fit(pair.im, target)};
  pairs_[result] = std::move(fitted);
}

std::optional<Pair> PairLowering::pair_of(const Arg& arg) {
  if (const auto* z = arg.as<std::complex<double>>()) return Pair{z->real(), z->imag()};
  if (const auto number = to_scalar_arg(arg)) {
    const auto real = constant_real(*number);
    return real ? std::optional(Pair{*real, 0.0}) : std::nullopt;
  }
  const OperandRef* ref = arg.as<OperandRef>();
  if (ref == nullptr || info(ref->operand).kind != CallValueInfo::Kind::Tensor) return std::nullopt;
  if (!is_complex_value(info(ref->operand))) return Pair{arg, 0.0};
  unpack(ref->operand);
  return pairs_.at(ref->operand);
}

const Pair* PairLowering::stacked(CallValue value) const {
  const auto found = stacked_.find(value);
  return found == stacked_.end() ? nullptr : &found->second;
}

void PairLowering::unpack(CallValue id) {
  if (pairs_.contains(id)) return;
  CXXI_CHECK(interleaved_.contains(id), "the complex value %{} is read before it is written", info(id).name);
  const CallValueInfo whole = info(id);
  Arg resolved = OperandRef{id};
  if (whole.conjugate) {
    CallValueInfo plain = whole;
    plain.conjugate = false;
    resolved = OperandRef{new_value(plain)};
    define(resolved.as<OperandRef>()->operand, "aten::_conj", "", {Arg(OperandRef{id})});
  }
  CallValueInfo stacked = whole;
  stacked.sizes.push_back(2);
  stacked.strides = interleaved_strides(whole.strides);
  const Arg both = call("aten::view_as_real", "", {resolved}, stacked);
  CallValueInfo part = real_like(whole);
  part.strides = stacked.strides;
  part.strides.pop_back();
  const Arg last(static_cast<int64_t>(whole.sizes.size()));
  const Arg re = call("aten::select", "int", {both, last, Arg(int64_t{0})}, part);
  const Arg im = call("aten::select", "int", {both, last, Arg(int64_t{1})}, part);
  pairs_[id] = {re, whole.conjugate ? neg(im, part) : im};
}

void PairLowering::pack(CallValue id) {
  if (interleaved_.contains(id)) return;
  if (!is_flagged(info(id)) && is_live_view(id)) {
    const CallValue viewed = memory_of(id);
    if (interleaved_.insert(id).second) define(id, "aten::alias", "", {Arg(OperandRef{viewed})});
    return;
  }
  interleaved_.insert(id);
  const Pair& pair = pairs_.at(id);
  CallValueInfo stacked = info(id);
  const auto last = static_cast<int64_t>(stacked.sizes.size());
  stacked.sizes.push_back(2);
  stacked.strides = interleaved_strides(stacked.strides);
  const Arg both = call("aten::stack", "", {Arg(ArgList{pair.re, pair.im}), Arg(last)}, stacked);
  out_.values[id].conjugate = out_.values[id].negative = false;
  packed_[id] = both.as<OperandRef>()->operand;
  define(id, "aten::view_as_complex", "", {both});
}

void PairLowering::pack_all(const Arg& arg) {
  if (is_complex(arg)) pack(arg.as<OperandRef>()->operand);
  if (const ArgList* list = arg.as<ArgList>())
    for (const Arg& item : *list) pack_all(item);
}

Arg PairLowering::part_of(const Arg& arg, const Call& call, bool imaginary) {
  if (const ArgList* list = arg.as<ArgList>()) {
    ArgList parts;
    for (const Arg& item : *list) parts.push_back(part_of(item, call, imaginary));
    return parts;
  }
  const auto pair = pair_of(arg);
  if (!pair) return arg;
  const OperandRef* ref = arg.as<OperandRef>();
  if (ref == nullptr) return imaginary ? pair->im : pair->re;
  CallValueInfo target = info(ref->operand);
  target.dtype = component_type(info(call.results.at(0)).dtype);
  return fit(imaginary ? pair->im : pair->re, target);
}

std::vector<CallValue> PairLowering::call_on_part(const Call& call, std::initializer_list<size_t> data, bool imaginary) {
  Call part = call;
  for (size_t position : data) {
    if (position < part.args.size()) part.args[position] = part_of(call.args[position], call, imaginary);
  }
  for (auto& [name, arg] : part.kwargs) {
    if (const auto* dtype = arg.as<DType>()) arg = component_type(*dtype);
  }
  for (CallValue& result : part.results) result = new_value(real_like(info(result)));
  std::vector<CallValue> results = part.results;
  out_.calls.push_back(std::move(part));
  return results;
}

}  // namespace cxxinductor::frontend

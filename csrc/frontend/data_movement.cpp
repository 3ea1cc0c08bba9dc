// Copies, casts, concatenation, padding and repetition.
#include <algorithm>

#include "frontend/aten_table.h"
#include "frontend/externs.h"
#include "frontend/promotion.h"
#include "frontend/slices.h"
#include "ir/device_types.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

// A copy of a number, as tracing makes of torch.tensor(number), is the number.
Results import_copy(CallContext& context) {
  if (const auto number = context.scalar_constant_on_result_device(context.tensor(0, "self"))) return std::vector{*number};
  return std::vector{context.build.elementwise(ScalarOp::Identity, {context.tensor(0, "self")})};
}

// _to_copy and similar ops: a cast, or a copy if the dtype stays. Moves between devices are calls, except of generated values:
// that is computed again where it goes. Floats outside the range of integers convert differently on each device.
Results import_to_copy(CallContext& context) {
  const ValueId self = context.tensor(0, "self");
  const DType dtype = context.result().dtype;
  const bool moves = context.value(self).device != context.result().device && context.rank(self) > 0;
  if (moves && is_float(context.dtype(self)) && is_integer(dtype)) return std::nullopt;
  const auto x = context.on_device_of_result(self);
  if (!x) return std::nullopt;
  if (context.dtype(*x) != dtype) return std::vector{context.build.cast(*x, dtype)};
  return moves ? std::vector{*x} : import_copy(context);
}

// prims::convert_element_type: no copy where the dtype stays.
Results import_convert(CallContext& context) { return std::vector{context.build.cast(context.tensor(0, "self"), context.result().dtype)}; }

// copy(self, src): src in the dtype and sizes of self, on its device; converted, as by eager, before it moves.
Results import_functional_copy(CallContext& context) {
  const ValueId given = context.tensor(1, "src");
  const DType dtype = context.result().dtype;
  const auto here = context.on_device_of_result(given);
  const bool converts_on_host = !here && in_host_memory(context.value(given).device) && context.dtype(given) != dtype;
  if (converts_on_host && !context.cpu_kernels()) return std::nullopt;
  ValueId source = context.build.cast(here.value_or(given), dtype);
  if (!here) source = copied_to_device(context.build, source, context.result().device);
  const ValueId spread = context.build.expand(source, context.result().sizes);
  return std::vector{context.build.elementwise(ScalarOp::Identity, {spread})};
}

bool is_legacy_empty(const CallContext& context, ValueId x) { return context.rank(x) == 1 && context.value(x).sizes.front().is_constant(0); }

// cat promotes among all its tensors; a tensor of size [0] may join others of any sizes.
Results import_cat(CallContext& context) {
  std::vector<ValueId> tensors = context.tensors(0, "tensors");
  const CallValueInfo& result = context.result();
  const auto rank = static_cast<int>(result.sizes.size());
  if (rank != 1) std::erase_if(tensors, [&](ValueId x) { return is_legacy_empty(context, x); });
  if (tensors.empty() || rank == 0) return std::nullopt;
  for (ValueId& x : tensors) x = context.build.cast(x, result.dtype);
  const int dim = context.dim(1, "dim", 0, rank);
  if (tensors.size() == 1) return std::vector{context.build.elementwise(ScalarOp::Identity, {tensors.front()})};
  return std::vector{context.build.cat(std::move(tensors), dim)};
}

Results import_stack(CallContext& context) {
  std::vector<ValueId> tensors = context.tensors(0, "tensors");
  const CallValueInfo& result = context.result();
  const auto rank = static_cast<int>(result.sizes.size());
  const int dim = context.dim(1, "dim", 0, rank);
  for (ValueId& x : tensors) {
    Sizes sizes = context.value(x).sizes;
    sizes.insert(sizes.begin() + dim, sym::Expr(1));
    x = context.build.reshape(context.build.cast(x, result.dtype), sizes);
  }
  if (tensors.size() == 1) return std::vector{context.build.elementwise(ScalarOp::Identity, {tensors.front()})};
  return std::vector{context.build.cat(std::move(tensors), dim)};
}

// constant_pad_nd(self, pad, value): pairs (before, after) from the last dimension on.
Results import_pad(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const Sizes amounts = context.exprs(1, "pad");
  const auto value = context.scalar_arg(2, "value");
  const DType dtype = context.dtype(x);
  const auto fill = value ? constant_real(*value) : std::optional(0.0);
  if (!fill || (value && !may_fill(dtype, *value)) || amounts.size() % 2 != 0) return std::nullopt;
  const auto rank = static_cast<size_t>(context.rank(x));
  if (amounts.size() / 2 > rank) return std::nullopt;
  Sizes low(rank, sym::Expr(0));
  for (size_t i = 0; i < amounts.size() / 2; ++i) low[rank - 1 - i] = amounts[2 * i];
  return std::vector{context.build.pad(x, low, context.result().sizes, Scalar::from_real(dtype, *fill))};
}

// x as the part of zeros that begins at `start` of `dim`: what slices and selections send back.
ValueId surrounded_by_zeros(CallContext& context, ValueId x, int dim, sym::Expr start) {
  Sizes low(context.result().sizes.size(), sym::Expr(0));
  low[static_cast<size_t>(dim)] = start;
  return context.build.pad(x, low, context.result().sizes, Scalar::from_real(context.dtype(x), 0));
}

// slice_backward(grad_output, input_sizes, dim, start, end, step)
Results import_slice_backward(CallContext& context) {
  const ValueId gradient = context.tensor(0, "grad_output");
  const auto rank = static_cast<int>(context.result().sizes.size());
  const int dim = context.dim(2, "dim", 0, rank);
  const auto start = wrapped_start(context, context.expr(3, "start", 0), context.result().sizes[static_cast<size_t>(dim)]);
  if (!start || !context.expr(5, "step", 1).is_constant(1)) return std::nullopt;
  return std::vector{surrounded_by_zeros(context, gradient, dim, *start)};
}

// select_backward(grad_output, input_sizes, dim, index)
Results import_select_backward(CallContext& context) {
  const ValueId gradient = context.tensor(0, "grad_output");
  const CallValueInfo& result = context.result();
  const auto rank = static_cast<int>(result.sizes.size());
  const int dim = context.dim(2, "dim", 0, rank);
  const auto index = wrapped_start(context, context.expr(3, "index", 0), result.sizes[static_cast<size_t>(dim)]);
  if (!index) return std::nullopt;
  Sizes sizes = result.sizes;
  sizes[static_cast<size_t>(dim)] = 1;
  return std::vector{surrounded_by_zeros(context, context.build.reshape(gradient, sizes), dim, *index)};
}

// repeat: [1, s0, 1, s1] -> [r0, s0, r1, s1] -> [r0 * s0, r1 * s1].
Results import_repeat(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const Sizes repeats = context.exprs(1, "repeats");
  const Sizes& sizes = context.value(x).sizes;
  if (repeats.size() < sizes.size()) return std::nullopt;
  const size_t missing = repeats.size() - sizes.size();
  Sizes narrow, wide;
  for (size_t d = 0; d < repeats.size(); ++d) {
    const sym::Expr size = d < missing ? sym::Expr(1) : sizes[d - missing];
    narrow.insert(narrow.end(), {sym::Expr(1), size});
    wide.insert(wide.end(), {repeats[d], size});
  }
  const ValueId spread = context.build.expand(context.build.reshape(x, narrow), wide);
  const ValueId shaped = context.build.reshape(spread, context.result().sizes);
  return std::vector{context.build.elementwise(ScalarOp::Identity, {shaped})};
}

Results import_flip(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  if (context.rank(x) == 0) return import_copy(context);
  const ValueId flipped = context.build.flip(x, context.dims(1, "dims", context.rank(x)));
  return std::vector{context.build.elementwise(ScalarOp::Identity, {flipped})};
}

// x with the last `shift` of its elements along a dimension moved to the front.
ValueId rolled(CallContext& context, ValueId x, int dim, int64_t shift, int64_t size) {
  shift = size == 0 ? 0 : ((shift % size) + size) % size;
  if (shift == 0) return x;
  const ValueId tail = context.build.slice(x, dim, size - shift, shift, 1);
  const ValueId head = context.build.slice(x, dim, 0, size - shift, 1);
  return context.build.cat({tail, head}, dim);
}

// roll(self, shifts, dims) by constants; without dims it rolls the flattened tensor.
Results import_roll(CallContext& context) {
  ValueId x = context.tensor(0, "self");
  const Sizes shifts = context.exprs(1, "shifts"), sizes = context.value(x).sizes;
  const std::vector<int> dims = context.dims(2, "dims", context.rank(x));
  for (sym::Expr e : shifts) {
    if (!e.is_constant()) return std::nullopt;
  }
  for (sym::Expr size : sizes) {
    if (!size.is_constant()) return std::nullopt;
  }
  if (shifts.size() != std::max<size_t>(dims.size(), 1)) return std::nullopt;
  if (dims.empty()) {
    const int64_t count = graph::element_count(sizes).constant();
    x = rolled(context, context.build.reshape(x, {count}), 0, shifts.front().constant(), count);
    x = context.build.reshape(x, sizes);
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    x = rolled(context, x, dims[i], shifts[i].constant(), sizes[static_cast<size_t>(dims[i])].constant());
  }
  return std::vector{context.build.elementwise(ScalarOp::Identity, {x})};
}

// tril and triu: columns up to, or from, the row's number plus the diagonal.
Results import_triangle(CallContext& context, bool lower) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  if (context.rank(x) < 2) return std::nullopt;
  const Sizes& sizes = context.value(x).sizes;
  const sym::Expr rows = sizes[sizes.size() - 2], columns = sizes.back();
  const sym::Expr diagonal = context.expr(1, "diagonal", 0);
  const Device device = context.result().device;
  const ValueId row = build.reshape(build.iota(diagonal, 1, rows, DType::I64, device), {rows, 1});
  const ValueId column = build.iota(0, 1, columns, DType::I64, device);
  const ValueId keep = build.elementwise(lower ? ScalarOp::Le : ScalarOp::Ge, {column, row});
  const DType compute = compute_type(context.dtype(x));
  return std::vector{build.elementwise(ScalarOp::Where, {keep, x, Operand(Scalar::from_integer(compute, 0))})};
}

}  // namespace

void add_data_movement_rows(ImportTable& table) {
  const auto add = [&table](std::initializer_list<const char*> names, const Importer& importer) {
    for (const char* name : names) table.emplace(name, ImportRow{importer, Accepts::Copies});
  };
  add({"aten::clone", "aten::lift_fresh_copy", "aten::alias_copy", "aten::contiguous"}, import_copy);
  table.emplace("aten::_to_copy", ImportRow{.importer = import_to_copy, .accepts = Accepts::Copies, .host_constants = true});
  add({"prims::convert_element_type"}, import_convert);
  table.emplace("aten::copy", ImportRow{.importer = import_functional_copy, .accepts = Accepts::Copies, .any_device = true});
  add({"aten::cat"}, import_cat);
  add({"aten::stack"}, import_stack);
  add({"aten::constant_pad_nd"}, import_pad);
  add({"aten::slice_backward"}, import_slice_backward);
  add({"aten::select_backward"}, import_select_backward);
  add({"aten::repeat"}, import_repeat);
  add({"aten::flip"}, import_flip);
  add({"aten::roll"}, import_roll);
  add({"aten::tril"}, [](CallContext& c) { return import_triangle(c, true); });
  add({"aten::triu"}, [](CallContext& c) { return import_triangle(c, false); });
}

}  // namespace cxxinductor::frontend

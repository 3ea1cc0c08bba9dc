// Writes at given positions: slices, and positions given by index tensors. Here each makes a new tensor; the pass
// graph-reinplace decides which write in place.
//
// On CUDA, elements with equal indices are summed by atomics, in an order that changes from run to run, as in eager's
// scatter_add, scatter_reduce and index_add. Eager's index_put(accumulate=True) and embedding_dense_backward sort their indices
// and give the same bits each time, on which training relies. They become sums over all rows (row_sums.h) where those are small, and stay
// calls otherwise unless numerics=fast, where sums may be taken in any order. Under torch.use_deterministic_algorithms all scatters that race stay calls.
#include <algorithm>

#include "frontend/aten_table.h"
#include "frontend/indices.h"
#include "frontend/promotion.h"
#include "frontend/row_sums.h"
#include "frontend/slices.h"
#include "ir/device_types.h"
#include "ir/graph/infer.h"
#include "ir/scalar_statements.h"
#include "ir/strides.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

using graph::Scatter;

// ---- Races ------------------------------------------------------------------------------------------------------

bool changes_with_order(Combine combine, DType dtype) { return combine == Combine::Overwrite || (counts_repeats(combine) && is_float(dtype)); }

// Scatters whose result depends on the order of conflicting writes, where that order must be eager's.
bool must_be_a_call(const CallContext& context, Combine combine, DType dtype, bool eager_is_reproducible) {
  if (!context.simt() || !changes_with_order(combine, dtype)) return false;
  const bool in_order = info(context.result().device.type).scatters_in_order;  // eager's are
  const bool must = context.deterministic() || ((eager_is_reproducible || in_order) && !context.any_order());
  if (must) context.decline("its writes conflict, in an order that must be eager's");
  return must;
}

// Mean of rows for an expanded index.
bool divides_in_compute_type(const CallContext& context, ValueId index, DType dtype) {
  if (!context.eager().divides_expanded_means_wide || compute_type(dtype) == dtype) return false;
  const auto& value = context.value(index);
  return std::any_of(value.layout.strides.begin(), value.layout.strides.end(), [](sym::Expr stride) { return stride.is_constant(0); });
}

// Scatters along a dimension combine 16-bit floats in the compute type and round once, or, by atomics, round at each step.
ValueId scattered_wide(CallContext& context, ValueId base, ValueId source, std::vector<ValueId> indices, Scatter scatter) {
  graph::Builder& build = context.build;
  const DType dtype = context.dtype(base), wide = compute_type(dtype);
  if (!context.eager().scatters_in_compute_type || wide == dtype || scatter.combine == Combine::Overwrite)
    return build.scatter(base, source, std::move(indices), std::move(scatter));
  const ValueId wide_base = build.cast(base, wide), wide_source = build.cast(source, wide);
  const ValueId sum = build.scatter(wide_base, wide_source, std::move(indices), std::move(scatter));
  return build.cast(sum, dtype);
}

// ---- Shared by all scatters -------------------------------------------------------------------------------------

std::optional<ValueId> scalar_tensor(CallContext& context, size_t position, std::string_view name, const Sizes& sizes) {
  const auto number = context.scalar_arg(position, name);
  const DType dtype = context.result().dtype;
  if (!number || !may_fill(dtype, *number)) return std::nullopt;
  if (const auto* e = std::get_if<sym::Expr>(&*number)) return context.build.full(*e, dtype, context.result().device, sizes);
  const auto real = constant_real(*number);
  if (!is_float(dtype) && std::holds_alternative<double>(*number)) return std::nullopt;
  const auto* integer = std::get_if<int64_t>(&*number);
  if (!is_float(dtype) && !immediate(*number, dtype)) return std::nullopt;  // eager raises
  const Scalar scalar = integer ? Scalar::from_integer(dtype, *integer) : Scalar::from_real(dtype, *real);
  return context.build.full(scalar, dtype, context.result().device, sizes);
}

ValueId full_like(CallContext& context, double number, const Sizes& sizes) {
  const DType dtype = context.result().dtype;
  return context.build.full(Scalar::from_real(compute_type(dtype), number), dtype, context.result().device, sizes);
}

// The part of `source` that an index of smaller sizes reaches.
ValueId part_for(CallContext& context, ValueId source, const Sizes& sizes) {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!graph::same_sizes(context.assumptions(), {context.value(source).sizes[d]}, {sizes[d]}))
      source = context.build.slice(source, static_cast<int>(d), 0, sizes[d], 1);
  return source;
}

// Along `dim`, element s goes to index[s]; its other coordinates stay.
Scatter along_dim(int rank, int dim) {
  Scatter scatter;
  scatter.wrap = false;
  for (int d = 0; d < rank; ++d) {
    scatter.target.push_back(d == dim ? -1 : d);
    scatter.index_dims.push_back(d);
  }
  return scatter;
}

// Whole slices of `dim` go to the positions of a 1-d index.
Scatter by_slices(int rank, int dim) {
  Scatter scatter;
  scatter.wrap = false;
  for (int d = 0; d < rank; ++d) scatter.target.push_back(d == dim ? -1 : d);
  scatter.index_dims = {dim};
  return scatter;
}

// ---- scatter ----------------------------------------------------------------------------------------------------

struct ScatterCall {
  ValueId base, index;
  int dim = 0;
};

std::optional<ScatterCall> scatter_call(const CallContext& context) {
  ScatterCall call{context.tensor(0, "self"), context.tensor(2, "index"), 0};
  const int rank = context.rank(call.base);
  if (rank == 0 || context.rank(call.index) == 0) return context.decline_rank_0();
  if (context.rank(call.index) != rank) return context.decline("its index is empty and has another rank");
  if (!is_index(context, call.index)) return std::nullopt;
  call.dim = context.dim(1, "dim", 0, rank);
  return call;
}

Results scatter_source(CallContext& context, Combine combine) {
  const auto call = scatter_call(context);
  const ValueId source = context.tensor(3, "src");
  const DType dtype = context.result().dtype;
  if (!call || context.rank(source) != context.rank(call->base) || context.dtype(source) != dtype) return std::nullopt;
  if (must_be_a_call(context, combine, dtype, false) || !accepts(combine, dtype)) return std::nullopt;
  Scatter scatter = along_dim(context.rank(call->base), call->dim);
  scatter.combine = combine;
  const ValueId part = part_for(context, source, context.value(call->index).sizes);
  return std::vector{scattered_wide(context, call->base, part, {call->index}, std::move(scatter))};
}

Results scatter_scalar(CallContext& context, Combine combine) {
  const auto call = scatter_call(context);
  if (!call || !accepts(combine, context.result().dtype)) return std::nullopt;
  if (combine != Combine::Overwrite && must_be_a_call(context, combine, context.result().dtype, false)) return std::nullopt;
  const auto source = scalar_tensor(context, 3, "value", context.value(call->index).sizes);
  if (!source) return std::nullopt;
  Scatter scatter = along_dim(context.rank(call->base), call->dim);
  scatter.combine = combine;
  scatter.unique_indices = combine == Combine::Overwrite;  // what meets is equal
  return std::vector{scattered_wide(context, call->base, *source, {call->index}, std::move(scatter))};
}

// How elements that meet are combined, by the word that scatter takes.
std::optional<Combine> named_combine(const CallContext& context) {
  const auto word = context.one_of(4, "reduce", {"", "add", "multiply"});
  if (!word || word->empty()) return std::nullopt;
  return *word == "add" ? Combine::Add : Combine::Mul;
}

Results import_scatter_named(CallContext& context, bool number) {
  const auto combine = named_combine(context);
  if (!combine) return std::nullopt;
  return number ? scatter_scalar(context, *combine) : scatter_source(context, *combine);
}

// A word of scatter_reduce.
struct ReduceOf {
  Combine combine;  // of elements that meet; a mean is divided afterwards
  Scalar neutral;   // what positions that receive elements start with where the base's value does not count
};
std::optional<ReduceOf> reduce_of(std::string_view word, DType dtype) {
  const auto number = [&](int64_t value) { return Scalar::from_integer(dtype, value); };
  if (word == "sum" || word == "mean") return ReduceOf{Combine::Add, number(0)};
  if (word == "prod") return ReduceOf{Combine::Mul, number(1)};
  if (word == "amax") return ReduceOf{Combine::Max, lowest_value(dtype)};
  if (word == "amin") return ReduceOf{Combine::Min, highest_value(dtype)};
  return std::nullopt;
}

// scatter_reduce(self, dim, index, src, reduce, *, include_self=True), in ATen's steps.
Results import_scatter_reduce(CallContext& context) {
  const auto call = scatter_call(context);
  const auto word = context.one_of(4, "reduce", {"", "sum", "prod", "mean", "amax", "amin"});
  const DType dtype = context.result().dtype;
  const auto reduce = word ? reduce_of(*word, dtype) : std::nullopt;
  const ValueId source = context.tensor(3, "src");
  if (!call || !reduce || context.rank(source) != context.rank(call->base) || context.dtype(source) != dtype) return std::nullopt;
  if (must_be_a_call(context, reduce->combine, dtype, false) || !accepts(reduce->combine, dtype)) return std::nullopt;
  if (*word == "mean" && divides_in_compute_type(context, call->index, dtype)) return context.decline("ATen divides before it rounds");
  const bool include_self = context.boolean(5, "include_self", true), mean = *word == "mean";
  if (!include_self && info(dtype).dtype_class == DTypeClass::Unsigned && byte_size(dtype) > 1) return context.decline("ATen has no such kernel");
  graph::Builder& build = context.build;
  const Sizes sizes = context.value(call->index).sizes;
  const Scatter places = along_dim(context.rank(call->base), call->dim);
  ValueId base = call->base;
  if (!include_self) {
    Scatter clear = places;
    clear.unique_indices = true;
    base = build.scatter(base, build.full(cast(reduce->neutral, compute_type(dtype)), dtype, context.result().device, sizes), {call->index}, std::move(clear));
  }
  Scatter meet = places;
  meet.combine = reduce->combine;
  const ValueId total = scattered_wide(context, base, part_for(context, source, sizes), {call->index}, meet);
  if (!mean) return std::vector{total};
  const ValueId start = full_like(context, include_self ? 1 : 0, context.result().sizes);
  ValueId count = scattered_wide(context, start, full_like(context, 1, sizes), {call->index}, meet);
  const Operand one = Scalar::from_integer(compute_type(dtype), 1), zero = Scalar::from_integer(compute_type(dtype), 0);
  count = build.elementwise(ScalarOp::Where, {build.elementwise(ScalarOp::Eq, {count, zero}), one, count});
  return std::vector{build.elementwise(is_float(dtype) ? ScalarOp::Div : ScalarOp::FloorDiv, {total, count})};
}

// ---- index_put, index_add, index_copy, index_fill ---------------------------------------------------------------

// x[mask] = one value: a select at every element.
Results import_mask_put(CallContext& context, ValueId x, ValueId values) {
  const Arg* arg = context.find(1, "indices");
  const ArgList* list = arg == nullptr ? nullptr : arg->as<ArgList>();
  if (list == nullptr || list->size() != 1 || context.boolean(3, "accumulate", false)) return std::nullopt;
  const auto mask = context.as_tensor(list->front());
  if (!mask || context.dtype(*mask) != DType::Bool || context.rank(*mask) > context.rank(x)) return std::nullopt;
  if (!graph::element_count(context.value(values).sizes).is_constant(1)) return std::nullopt;
  Sizes sizes = context.value(*mask).sizes;
  const Sizes& whole = context.value(x).sizes;
  if (!graph::same_sizes(context.assumptions(), sizes, {whole.begin(), whole.begin() + context.rank(*mask)})) return std::nullopt;
  sizes.resize(whole.size(), sym::Expr(1));
  graph::Builder& build = context.build;
  return std::vector{build.elementwise(ScalarOp::Where, {build.reshape(*mask, sizes), build.expand(build.reshape(values, {}), context.result().sizes), x})};
}

// Values that are added to zeros by one index, the gradient of x[:, index]: rows of values, their number first, then the sizes of one.
std::optional<Sizes> rows_into_zeros(const CallContext& context, ValueId x, const IndexedDims& dims) {
  const DType dtype = context.dtype(x);
  const bool is_sorted = context.eager().sums_by_sorted_index && is_float(dtype) && compute_type(dtype) == dtype;
  if (!is_sorted || dims.indices.size() != 1 || !is_zeros(context.build.graph(), x)) return std::nullopt;
  const Sizes& base = context.value(x).sizes;
  Sizes rows{graph::element_count(context.value(dims.indices[0]).sizes)};
  for (size_t d = 0; d < base.size(); ++d)
    if (dims.source[d] >= 0) rows.push_back(base[d]);
  return rows;
}

ValueId put_into_zeros(CallContext& context, ValueId values, const IndexedDims& dims, const Sizes& rows, sym::Expr places) {
  graph::Builder& build = context.build;
  std::vector<int> order = dims.index_dims, back;
  for (const int dim : dims.source) {
    // The sum has the indexed dimension first.
    back.push_back(dim < 0 ? 0 : static_cast<int>(order.size() - dims.index_dims.size()) + 1);
    if (dim >= 0) order.push_back(dim);
  }
  const ValueId index = build.reshape(dims.indices[0], {rows[0]});
  return build.permute(sum_all_rows(context, build.reshape(build.permute(values, order), rows), index, places, true), back);
}

// index_put(self, indices, values, accumulate=False)
Results import_index_put(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const auto given = context.on_device_of_result(context.tensor(2, "values"));
  if (!given || context.dtype(*given) != context.dtype(x)) return std::nullopt;
  if (Results chosen = import_mask_put(context, x, *given)) return chosen;
  const Combine combine = context.boolean(3, "accumulate", false) ? Combine::Add : Combine::Overwrite;
  if (!accepts(combine, context.dtype(x))) return std::nullopt;
  auto dims = indexed_dims(context, x);
  if (!dims) return std::nullopt;
  ValueId values = *given;
  const Sizes& sizes = context.value(values).sizes;
  // More dimensions than the indexed positions: leading ones of size 1.
  if (sizes.size() > dims->sizes.size()) {
    const auto extra = static_cast<std::ptrdiff_t>(sizes.size() - dims->sizes.size());
    if (!std::all_of(sizes.begin(), sizes.begin() + extra, [](sym::Expr size) { return size.is_constant(1); })) return std::nullopt;
    values = context.build.reshape(values, {sizes.begin() + extra, sizes.end()});
  }
  if (!graph::same_sizes(context.assumptions(), context.value(values).sizes, dims->sizes)) values = context.build.expand(values, dims->sizes);
  const sym::Expr places = context.value(x).sizes[static_cast<size_t>(std::ranges::find(dims->source, -1) - dims->source.begin())];
  if (const auto rows = rows_into_zeros(context, x, *dims); combine == Combine::Add && rows && may_sum_all_rows(*rows, places))
    return std::vector{put_into_zeros(context, values, *dims, *rows, places)};
  if (must_be_a_call(context, combine, context.dtype(x), combine == Combine::Add)) return std::nullopt;
  Scatter scatter;
  scatter.target = std::move(dims->source);
  scatter.index_dims = std::move(dims->index_dims);
  scatter.combine = combine;
  scatter.unique_indices = combine == Combine::Overwrite && context.rank(*given) == 0;  // what meets is equal
  return std::vector{context.build.scatter(x, values, std::move(dims->indices), std::move(scatter))};
}

struct SliceCall {
  ValueId base, index;
  int dim = 0;
};

// (self, dim, index, ...) with an index of slices.
std::optional<SliceCall> slice_call(CallContext& context) {
  SliceCall call{context.tensor(0, "self"), context.tensor(2, "index"), 0};
  const int rank = context.rank(call.base);
  if (rank == 0) return context.decline_rank_0();
  if (context.rank(call.index) > 1 || !is_index(context, call.index)) return std::nullopt;
  if (context.rank(call.index) == 0) call.index = context.build.reshape(call.index, {1});
  call.dim = context.dim(1, "dim", 0, rank);
  return call;
}

// Whether there is provably one slice of the base's sizes per index.
bool has_slices(const CallContext& context, const SliceCall& call, ValueId source) {
  Sizes sizes = context.value(call.base).sizes;
  sizes[static_cast<size_t>(call.dim)] = context.value(call.index).sizes[0];
  return graph::same_sizes(context.assumptions(), sizes, context.value(source).sizes);
}

// ATen's index_add along the first or last dimension is its scatter_add on the CPU; others add slice by slice.
bool is_scatter_add(const CallContext& context, const SliceCall& call) {
  const int rank = context.rank(call.base);
  return rank > 1 && (call.dim == 0 || call.dim == rank - 1) && context.dtype(call.index) == DType::I64;
}

// index_add(self, dim, index, source, *, alpha=1), index_copy(self, dim, index, source)
Results import_index_slices(CallContext& context, Combine combine) {
  const DType dtype = context.result().dtype;
  const ValueId source = context.tensor(3, "source");
  if (must_be_a_call(context, combine, dtype, false) || !accepts(combine, dtype)) return std::nullopt;
  if (context.rank(context.tensor(0, "self")) == 0) return context.decline_rank_0();
  if (context.dtype(source) != dtype || context.rank(source) != context.rank(context.tensor(0, "self"))) return std::nullopt;
  // ATen's alpha * source + self is one kernel that rounds once.
  const auto alpha = combine == Combine::Add ? context.scalar_arg(4, "alpha") : std::nullopt;
  if (alpha && constant_real(*alpha) != 1.0) return context.decline("ATen scales and adds in one kernel, which rounds once");
  const auto call = slice_call(context);
  if (!call || !has_slices(context, *call, source)) return std::nullopt;
  Scatter scatter = by_slices(context.rank(call->base), call->dim);
  scatter.combine = combine;
  return std::vector{is_scatter_add(context, *call) ? scattered_wide(context, call->base, source, {call->index}, std::move(scatter))
                                                    : context.build.scatter(call->base, source, {call->index}, std::move(scatter))};
}

// index_fill(self, dim, index, value), of a number or a rank-0 tensor
Results import_index_fill(CallContext& context, bool of_tensor) {
  const DType dtype = context.result().dtype;
  std::optional<ValueId> value = of_tensor ? context.on_device_of_result(context.tensor(3, "value")) : scalar_tensor(context, 3, "value", {});
  const auto call = slice_call(context);
  if (!value || !call || context.rank(*value) != 0) return std::nullopt;
  Sizes sizes = context.value(call->base).sizes;
  sizes[static_cast<size_t>(call->dim)] = context.value(call->index).sizes[0];
  Scatter scatter = by_slices(context.rank(call->base), call->dim);
  scatter.wrap = true;
  scatter.unique_indices = true;  // what meets is equal
  const ValueId source = context.build.expand(context.build.cast(*value, dtype), sizes);
  return std::vector{context.build.scatter(call->base, source, {call->index}, std::move(scatter))};
}

// ---- Slices -----------------------------------------------------------------------------------------------------

// x with `source` instead of the elements start, start + step ... of `dim`.
ValueId spliced(CallContext& context, ValueId x, ValueId source, int dim, sym::Expr start, sym::Expr step) {
  graph::Builder& build = context.build;
  const auto d = static_cast<size_t>(dim);
  const auto& sizes = context.value(x).sizes;
  source = build.cast(source, context.dtype(x));
  const bool all = start.is_constant(0) && step.is_constant(1) && graph::same_sizes(context.assumptions(), context.value(source).sizes, sizes);
  if (all) return build.elementwise(ScalarOp::Identity, {source});
  Scatter scatter;
  scatter.start.assign(sizes.size(), 0);
  scatter.step.assign(sizes.size(), 1);
  for (int i = 0; i < context.rank(x); ++i) scatter.target.push_back(i);
  scatter.start[d] = start;
  scatter.step[d] = step;
  return build.scatter(x, source, {}, std::move(scatter));
}

// slice_scatter(self, src, dim, start, end, step)
Results import_slice_scatter(CallContext& context) {
  const ValueId x = context.tensor(0, "self"), source = context.tensor(1, "src");
  if (context.rank(x) == 0 || context.rank(source) != context.rank(x)) return std::nullopt;
  const int dim = context.dim(2, "dim", 0, context.rank(x));
  const sym::Expr size = context.value(x).sizes[static_cast<size_t>(dim)];
  const auto start = wrapped_start(context, context.expr(3, "start", 0), size);
  if (!start) return std::nullopt;
  return std::vector{spliced(context, x, source, dim, *start, context.expr(5, "step", 1))};
}

// select_scatter(self, src, dim, index)
Results import_select_scatter(CallContext& context) {
  const ValueId x = context.tensor(0, "self"), source = context.tensor(1, "src");
  const int dim = context.dim(2, "dim", 0, context.rank(x));
  Sizes sizes = context.value(x).sizes;
  const auto index = wrapped_start(context, context.expr(3, "index", 0), sizes[static_cast<size_t>(dim)]);
  if (!index) return std::nullopt;
  sizes[static_cast<size_t>(dim)] = 1;
  return std::vector{spliced(context, x, context.build.reshape(source, sizes), dim, *index, 1)};
}

// diagonal_scatter(self, src, offset, dim1, dim2): both dimensions count along the source's last.
Results import_diagonal_scatter(CallContext& context) {
  const ValueId x = context.tensor(0, "self"), source = context.tensor(1, "src");
  const int rank = context.rank(x);
  if (rank < 2 || context.rank(source) != rank - 1) return std::nullopt;
  const sym::Expr offset = context.expr(2, "offset", 0);
  const int row = context.dim(3, "dim1", 0, rank), column = context.dim(4, "dim2", 1, rank);
  const sym::Expr length = context.value(source).sizes.back();
  const Device device = context.result().device;
  const auto count = [&](sym::Expr start) { return context.build.iota(start, 1, length, DType::I64, device); };
  const ValueId rows = count(sym::max(sym::Expr(0) - offset, 0)), columns = count(sym::max(offset, 0));
  Scatter scatter;
  scatter.index_dims = {rank - 2};
  scatter.wrap = scatter.check = false;
  scatter.unique_indices = true;
  int next = 0;
  for (int d = 0; d < rank; ++d) scatter.target.push_back(d == row ? -1 : d == column ? -2 : next++);
  return std::vector{context.build.scatter(x, context.build.cast(source, context.dtype(x)), {rows, columns}, std::move(scatter))};
}

// The number of each element of a window of these strides, from `offset` on.
ValueId positions(CallContext& context, const Sizes& sizes, const Sizes& strides, sym::Expr offset) {
  graph::Builder& build = context.build;
  const Device device = context.result().device;
  ValueId index = build.full(offset, DType::I64, device, sizes);
  for (size_t d = 0; d < sizes.size(); ++d) {
    Sizes along(sizes.size(), sym::Expr(1));
    along[d] = sizes[d];
    const ValueId steps = build.reshape(build.iota(0, strides[d], sizes[d], DType::I64, device), along);
    index = build.elementwise(ScalarOp::Add, {index, steps});
  }
  return index;
}

// The tensor must begin where its storage begins, which is not known of inputs.
bool begins_storage(const graph::Graph& graph, ValueId id) {
  while (graph.values[id].producer.valid()) {
    const graph::Node& node = graph.nodes[graph.values[id].producer];
    if (const auto* callee = node.as<graph::Extern>()) return callee->alias_of[graph.values[id].result_index] < 0;
    if (!graph::is_view(node.kind)) return true;
    if (!node.as<graph::Reshape>()) return false;
    id = std::get<ValueId>(node.operands[0]);
  }
  return false;
}

// as_strided_scatter(self, src, size, stride, storage_offset) into a contiguous tensor, at places that do not overlap.
Results import_as_strided_scatter(CallContext& context) {
  const ValueId x = context.tensor(0, "self"), source = context.tensor(1, "src");
  const graph::Value value = context.value(x);
  const Sizes sizes = context.exprs(2, "size"), strides = context.exprs(3, "stride");
  const bool elsewhere = context.has(4, "storage_offset") && !begins_storage(context.build.graph(), x);
  if (elsewhere || sizes.size() != strides.size() || !context.is_contiguous(value.sizes, value.layout.strides)) return std::nullopt;
  const sym::Expr offset = context.expr(4, "storage_offset", 0), count = graph::element_count(value.sizes);
  const bool range = context.is_contiguous(sizes, strides);
  sym::Expr end = offset + 1;
  for (size_t d = 0; d < sizes.size(); ++d) end = end + strides[d] * (sizes[d] - 1);
  if (sym::bounds(count - end, context.assumptions()).low < 0) return std::nullopt;
  if (range ? sym::bounds(offset, context.assumptions()).low < 0 : !offset.is_constant() || !are_distinct(sizes, strides, context.assumptions()))
    return std::nullopt;
  graph::Builder& build = context.build;
  const ValueId flat = build.reshape(x, {count});
  ValueId written;
  if (range) {
    written = spliced(context, flat, build.reshape(source, {graph::element_count(sizes)}), 0, offset, 1);
  } else {
    Scatter scatter;
    scatter.target = {-1};
    for (size_t d = 0; d < sizes.size(); ++d) scatter.index_dims.push_back(static_cast<int>(d));
    scatter.wrap = scatter.check = false;
    scatter.unique_indices = true;
    const ValueId index = positions(context, sizes, strides, offset);
    written = build.scatter(flat, build.cast(source, value.dtype), {index}, std::move(scatter));
  }
  return std::vector{build.elementwise(ScalarOp::Identity, {build.reshape(written, value.sizes)})};
}

// ---- Embedding --------------------------------------------------------------------------------------------------

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Results import_embedding_backward(CallContext& context) {
  ValueId gradient = context.tensor(0, "grad_output");
  const ValueId indices = context.tensor(1, "indices");
  const DType dtype = context.dtype(gradient);
  const int rank = context.rank(indices);
  if (!is_index(context, indices) || context.rank(gradient) != rank + 1 || context.boolean(4, "scale_grad_by_freq", false)) return std::nullopt;
  const Sizes& rows = context.value(gradient).sizes;
  if (!graph::same_sizes(context.assumptions(), context.value(indices).sizes, {rows.begin(), rows.end() - 1})) return std::nullopt;
  const sym::Expr places = context.result().sizes[0], count = graph::element_count(context.value(indices).sizes);
  const bool sums_all = context.eager().sums_by_sorted_index && is_float(dtype) && may_sum_all_rows({count, rows.back()}, places);
  if (!sums_all && must_be_a_call(context, Combine::Add, dtype, true)) return std::nullopt;
  graph::Builder& build = context.build;
  const sym::Expr padding = context.expr(3, "padding_idx", -1);
  if (!padding.is_constant()) return std::nullopt;
  if (padding.constant() >= 0) {
    Sizes sizes = context.value(indices).sizes;
    const ValueId is_padding = build.elementwise(ScalarOp::Eq, {build.cast(indices, DType::I64), Scalar::from_integer(DType::I64, padding.constant())});
    sizes.push_back(1);
    gradient = build.elementwise(ScalarOp::Where, {build.reshape(is_padding, sizes), Scalar::from_integer(compute_type(dtype), 0), gradient});
  }
  const DType sum = context.eager().adds_gradients_in_compute_type ? compute_type(dtype) : dtype;
  if (sums_all) {
    const ValueId all = build.reshape(build.cast(gradient, sum), {count, rows.back()});
    return std::vector{build.cast(sum_all_rows(context, all, build.reshape(indices, {count}), places, false), dtype)};
  }
  const ValueId zeros = build.full(Scalar::from_integer(compute_type(dtype), 0), sum, context.result().device, context.result().sizes);
  Scatter scatter;
  scatter.target = {-1, rank};
  for (int d = 0; d < rank; ++d) scatter.index_dims.push_back(d);
  scatter.wrap = false;
  scatter.combine = Combine::Add;
  return std::vector{build.cast(build.scatter(zeros, build.cast(gradient, sum), {indices}, std::move(scatter)), dtype)};
}

}  // namespace

void add_scatter_rows(ImportTable& table) {
  const auto add = [&table](const char* name, const Importer& importer, Accepts accepts = Accepts::Copies) {
    table.emplace(name, ImportRow{importer, accepts});
  };
  add("aten::scatter.src", [](CallContext& c) { return scatter_source(c, Combine::Overwrite); });
  add("aten::scatter.value", [](CallContext& c) { return scatter_scalar(c, Combine::Overwrite); });
  add(
      "aten::scatter.reduce", [](CallContext& c) { return import_scatter_named(c, false); }, Accepts::Arithmetic);
  add(
      "aten::scatter.value_reduce", [](CallContext& c) { return import_scatter_named(c, true); }, Accepts::Arithmetic);
  add(
      "aten::scatter_add", [](CallContext& c) { return scatter_source(c, Combine::Add); }, Accepts::Arithmetic);
  add("aten::scatter_reduce.two", import_scatter_reduce, Accepts::Arithmetic);
  // Arithmetic: a constant of the CPU may be the value of a CUDA call.
  add("aten::index_put", import_index_put, Accepts::Arithmetic);
  add("aten::_unsafe_index_put", import_index_put, Accepts::Arithmetic);
  add(
      "aten::index_add", [](CallContext& c) { return import_index_slices(c, Combine::Add); }, Accepts::Arithmetic);
  add("aten::index_copy", [](CallContext& c) { return import_index_slices(c, Combine::Overwrite); });
  add("aten::index_fill.int_Scalar", [](CallContext& c) { return import_index_fill(c, false); });
  add(
      "aten::index_fill.int_Tensor", [](CallContext& c) { return import_index_fill(c, true); }, Accepts::Arithmetic);
  add("aten::slice_scatter", import_slice_scatter);
  add("aten::select_scatter", import_select_scatter);
  add("aten::diagonal_scatter", import_diagonal_scatter);
  add("aten::as_strided_scatter", import_as_strided_scatter);
  add("aten::embedding_dense_backward", import_embedding_backward, Accepts::Arithmetic);
}

}  // namespace cxxinductor::frontend

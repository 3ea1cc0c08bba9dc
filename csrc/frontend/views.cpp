// Views as index maps. Result sizes come from the reader; strides are checked nowhere, because an index map does not
// depend on them.
#include <algorithm>

#include "frontend/aten_table.h"
#include "frontend/slices.h"
#include "ir/graph/infer.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {

std::optional<sym::Expr> wrapped_start(const CallContext& context, sym::Expr start, sym::Expr size) {
  const sym::Assumptions& assumptions = context.assumptions();
  const auto negative = sym::prove_less(start, 0, assumptions);
  if (!negative) return std::nullopt;
  if (*negative) start = start + size;
  if (sym::prove_less(start, 0, assumptions) != false) start = sym::max(start, 0);
  if (sym::prove_less(size, start, assumptions) != false) start = sym::min(start, size);
  return sym::simplify(start, assumptions);
}

namespace {

Results import_reshape(CallContext& context) { return std::vector{context.build.reshape(context.tensor(0, "self"), context.result().sizes)}; }

Results import_expand(CallContext& context) { return std::vector{context.build.expand(context.tensor(0, "self"), context.result().sizes)}; }

Results import_same(CallContext& context) { return std::vector{context.tensor(0, "self")}; }

Results import_permute(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  return std::vector{context.build.permute(x, context.dims(1, "dims", context.rank(x)))};
}

ValueId swap_dims(CallContext& context, ValueId x, int a, int b) {
  std::vector<int> order;
  for (int d = 0; d < context.rank(x); ++d) order.push_back(d == a ? b : d == b ? a : d);
  return context.build.permute(x, order);
}

Results import_transpose(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  if (context.rank(x) == 0) return std::vector{x};
  return std::vector{swap_dims(context, x, context.dim(1, "dim0", 0, context.rank(x)), context.dim(2, "dim1", 0, context.rank(x)))};
}

Results import_t(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  return std::vector{context.rank(x) < 2 ? x : swap_dims(context, x, 0, 1)};
}

Results import_movedim(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const std::vector<int> from = context.dims(1, "source", context.rank(x)), to = context.dims(2, "destination", context.rank(x));
  if (from.size() != to.size()) return std::nullopt;
  std::vector<int> order(static_cast<size_t>(context.rank(x)), -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  int next = 0;
  for (int& source : order) {
    if (source >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    source = next++;
  }
  return std::vector{context.build.permute(x, order)};
}

Results import_slice(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  if (context.rank(x) == 0) return std::nullopt;
  const int dim = context.dim(1, "dim", 0, context.rank(x));
  const sym::Expr size = context.value(x).sizes[static_cast<size_t>(dim)];
  const sym::Expr step = context.expr(4, "step", 1), length = context.result().sizes[static_cast<size_t>(dim)];
  const auto start = wrapped_start(context, context.expr(2, "start", 0), size);
  if (!start) return std::nullopt;
  if (start->is_constant(0) && step.is_constant(1) && sym::prove_equal(length, size, context.assumptions())) return std::vector{x};
  return std::vector{context.build.slice(x, dim, *start, length, step)};
}

Results import_narrow(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const int dim = context.dim(1, "dim", 0, context.rank(x));
  const sym::Expr given = context.expr(2, "start", 0);
  if (sym::prove_less(given, 0, context.assumptions()) != false) return std::nullopt;
  return std::vector{context.build.slice(x, dim, given, context.result().sizes[static_cast<size_t>(dim)], 1)};
}

ValueId select_at(CallContext& context, ValueId x, int dim, sym::Expr index) {
  const ValueId one = context.build.slice(x, dim, index, 1, 1);
  Sizes sizes = context.value(one).sizes;
  sizes.erase(sizes.begin() + dim);
  return context.build.reshape(one, sizes);
}

Results import_select(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const int dim = context.dim(1, "dim", 0, context.rank(x));
  sym::Expr index = context.expr(2, "index", 0);
  const auto negative = sym::prove_less(index, 0, context.assumptions());
  if (!negative) return std::nullopt;
  if (*negative) index = sym::simplify(index + context.value(x).sizes[static_cast<size_t>(dim)], context.assumptions());
  return std::vector{select_at(context, x, dim, index)};
}

// split, chunk and similar ops: consecutive slices, whose sizes the reader knows.
Results import_split(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const int dim = context.dim(2, "dim", 0, context.rank(x));
  std::vector<ValueId> parts;
  sym::Expr start = 0;
  for (size_t i = 0; i < context.result_count(); ++i) {
    const sym::Expr length = context.result(i).sizes[static_cast<size_t>(dim)];
    parts.push_back(context.build.slice(x, dim, start, length, 1));
    start = sym::simplify(start + length, context.assumptions());
  }
  return parts;
}

Results import_unbind(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const int dim = context.dim(1, "dim", 0, context.rank(x));
  std::vector<ValueId> parts;
  for (size_t i = 0; i < context.result_count(); ++i) {
    parts.push_back(select_at(context, x, dim, sym::Expr(static_cast<int64_t>(i))));
  }
  return parts;
}

// as_strided that only restates a tensor: the same sizes and strides (where a dimension has more than one element they
// matter), or a contiguous tensor under other contiguous sizes. Other uses stay calls.
Results import_as_strided(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const graph::Value& value = context.value(x);
  const CallValueInfo& result = context.result();
  const sym::Assumptions& assumptions = context.assumptions();
  if (!value.producer.valid() || !sym::prove_equal(context.expr(3, "storage_offset", 0), 0, assumptions))
    return context.decline("a view of memory that has no form in the IRs");
  const auto restates = [&assumptions](const Sizes& sizes, const Sizes& a, const Sizes& b) {
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!sizes[d].is_constant(1) && !sym::prove_equal(a[d], b[d], assumptions)) return false;
    }
    return true;
  };
  const Sizes& strides = value.layout.strides;
  if (graph::same_sizes(assumptions, value.sizes, result.sizes)) {
    if (restates(value.sizes, strides, result.strides)) return std::vector{x};
    return context.decline("a view of memory that has no form in the IRs");
  }
  const bool dense = restates(value.sizes, strides, graph::contiguous_strides(value.sizes)) &&
                     restates(result.sizes, result.strides, graph::contiguous_strides(result.sizes)) &&
                     sym::prove_equal(graph::element_count(value.sizes), graph::element_count(result.sizes), assumptions);
  if (!dense) return context.decline("a view of memory that has no form in the IRs");
  return std::vector{context.build.reshape(x, result.sizes)};
}

}  // namespace

void add_view_rows(ImportTable& table) {
  const auto add = [&table](std::initializer_list<const char*> names, const Importer& importer) {
    for (const char* name : names) table.emplace(name, ImportRow{importer, Accepts::Any});
  };
  add({"aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_reshape_alias", "aten::unsqueeze", "aten::squeeze", "aten::squeeze.dim",
       "aten::squeeze.dims", "aten::flatten.using_ints", "aten::unflatten.int", "aten::view_as"},
      import_reshape);
  add({"aten::expand", "aten::expand_as", "aten::broadcast_to"}, import_expand);
  add({"aten::detach", "aten::alias"}, import_same);
  add({"aten::permute"}, import_permute);
  add({"aten::transpose.int"}, import_transpose);
  add({"aten::t"}, import_t);
  add({"aten::movedim.intlist", "aten::movedim.int"}, import_movedim);
  add({"aten::slice.Tensor"}, import_slice);
  add({"aten::narrow"}, import_narrow);
  add({"aten::select.int"}, import_select);
  add({"aten::split.Tensor", "aten::split_with_sizes", "aten::chunk", "aten::split.sizes", "aten::unsafe_split.Tensor", "aten::unsafe_split_with_sizes",
       "aten::unsafe_chunk"},
      import_split);
  add({"aten::unbind.int"}, import_unbind);
  add({"aten::as_strided"}, import_as_strided);
}

}  // namespace cxxinductor::frontend

// Views: sizes, strides and storage offset over the memory of their argument.
#include <algorithm>

#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {
namespace {

// The same memory, without a name.
CallValueInfo view_of(const CallValueInfo& base) {
  CallValueInfo view = base;
  view.name.clear();
  return view;
}

// The sizes for that many elements, with what -1 stands for.
Exprs without_unknown(const InferContext& c, sym::Expr count, Exprs sizes) {
  std::optional<size_t> unknown;
  sym::Expr given = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d].is_constant(-1)) {
      if (unknown) c.reject("expected one size of -1, found {}", print_expr_list(sizes));
      unknown = d;
    } else {
      given = given * sizes[d];
    }
  }
  if (unknown) {
    if (c.is(given, 0)) c.reject("expected sizes that determine -1, found {}", print_expr_list(sizes));
    sizes[*unknown] = c.simplify(sym::floor_div(count, given));
    given = given * sizes[*unknown];
  }
  if (c.differ(count, given)) c.reject("expected sizes for {} elements, found {}", sym::to_string(count), print_expr_list(sizes));
  return sizes;
}

Exprs requested_sizes(const InferContext& c, const CallValueInfo& self) {
  return without_unknown(c, sym::product(self.sizes), c.exprs(c.has("size") ? "size" : "shape"));
}

// Strides of a tensor without elements, which no view gives reason to.
Exprs strides_when_empty(const Exprs& sizes) {
  Exprs strides(sizes.size(), sym::Expr(1));
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = sym::max(sizes[d], 1) * strides[d];
  return strides;
}

// Strides that give a tensor other sizes without a copy: each run of dimensions that lies densely is divided anew.
std::optional<Exprs> reshaped_strides(const InferContext& c, const CallValueInfo& self, const Exprs& sizes) {
  if (self.sizes.empty()) return Exprs(sizes.size(), sym::Expr(1));
  if (c.is_empty(self.sizes)) {
    const bool are_same = self.sizes.size() == sizes.size() && std::equal(sizes.begin(), sizes.end(), self.sizes.begin());
    return are_same ? self.strides : strides_when_empty(sizes);
  }
  Exprs strides(sizes.size());
  size_t left = sizes.size();
  sym::Expr base = self.strides.back(), run = 1, covered = 1;
  for (size_t d = self.sizes.size(); d-- > 0;) {
    run = run * self.sizes[d];
    const bool ends = d == 0 || (!c.is(self.sizes[d - 1], 1) && !c.is(self.strides[d - 1], run * base));
    if (!ends) continue;
    while (left > 0 && (!c.is(covered, run) || c.is(sizes[left - 1], 1))) {
      --left;
      strides[left] = covered * base;
      covered = covered * sizes[left];
    }
    if (!c.is(covered, run)) return std::nullopt;
    if (d > 0) base = self.strides[d - 1];
    run = covered = 1;
  }
  return left == 0 ? std::optional(strides) : std::nullopt;
}

std::optional<CallValueInfo> find_view(const InferContext& c, const CallValueInfo& self, Exprs sizes) {
  const auto strides = reshaped_strides(c, self, sizes);
  if (!strides) return std::nullopt;
  CallValueInfo view = view_of(self);
  view.sizes = std::move(sizes);
  view.strides = *strides;
  return view;
}

InferredResults viewed(const InferContext& c, const CallValueInfo& self, const Exprs& sizes) {
  auto view = find_view(c, self, sizes);
  if (!view) c.reject("sizes {} with strides {} have no view of sizes {}", print_expr_list(self.sizes), print_expr_list(self.strides), print_expr_list(sizes));
  return one_result(std::move(*view));
}

// The view, or else a copy.
InferredResults reshaped(const InferContext& c, const CallValueInfo& self, const Exprs& sizes) {
  return one_result(find_view(c, self, sizes).value_or(contiguous_like(self, sizes)));
}

InferredResults infer_view(InferContext& c) { return viewed(c, c.tensor("self"), requested_sizes(c, c.tensor("self"))); }
InferredResults infer_reshape(InferContext& c) { return reshaped(c, c.tensor("self"), requested_sizes(c, c.tensor("self"))); }

InferredResults infer_view_as(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &other = c.tensor("other");
  return viewed(c, self, without_unknown(c, sym::product(self.sizes), other.sizes));
}

InferredResults infer_flatten(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const int start = c.dim("start_dim", self.sizes.size()), end = c.dim("end_dim", self.sizes.size());
  if (start > end) c.reject("expected a first dimension of at most {}, found {}", end, start);
  if (self.sizes.empty()) return reshaped(c, self, {1});
  if (start == end) return one_result(view_of(self));
  const auto first = self.sizes.begin() + start, last = self.sizes.begin() + end + 1;
  Exprs sizes(self.sizes.begin(), first);
  sizes.push_back(sym::product(Exprs(first, last)));
  sizes.insert(sizes.end(), last, self.sizes.end());
  return reshaped(c, self, sizes);
}

InferredResults infer_unflatten(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const int dim = c.dim("dim", self.sizes.size());
  const Exprs parts = without_unknown(c, self.sizes[static_cast<size_t>(dim)], c.exprs("sizes"));
  Exprs sizes = self.sizes;
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  return viewed(c, self, sizes);
}

InferredResults infer_contiguous(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const MemoryFormat format = c.memory_format("memory_format").value_or(MemoryFormat::Contiguous);
  if (format == MemoryFormat::Preserve) c.reject("expected a memory format, found that of the tensor");
  const bool is_already = format == MemoryFormat::Contiguous ? is_contiguous(self, c.sizes) : is_channels_last_contiguous(self, c.sizes);
  return one_result(is_already ? view_of(self) : empty_like(self, format, c.sizes));
}

InferredResults infer_view_dtype(InferContext& c) {
  const auto dtype = c.dtype("dtype");
  if (!dtype) return std::nullopt;
  CallValueInfo view = view_of(c.tensor("self"));
  const int before = byte_size(view.dtype), after = byte_size(*dtype);
  view.dtype = *dtype;
  if (before == after) return one_result(std::move(view));
  if (view.sizes.empty()) c.reject("expected a tensor with dimensions");
  const size_t last = view.sizes.size() - 1;
  // Strides count elements, of another size now; the last dimension is dense.
  const auto in_new_elements = [&](sym::Expr e) { return before > after ? e * (before / after) : c.simplify(sym::floor_div(e, after / before)); };
  for (size_t d = 0; d < last; ++d) view.strides[d] = in_new_elements(view.strides[d]);
  view.strides[last] = 1;
  view.sizes[last] = in_new_elements(view.sizes[last]);
  view.storage_offset = in_new_elements(view.storage_offset);
  return one_result(std::move(view));
}

InferredResults expanded(const InferContext& c, CallValueInfo view, const Exprs& sizes) {
  if (sizes.size() < view.sizes.size()) c.reject("expected at least {} sizes, found {}", view.sizes.size(), print_expr_list(sizes));
  const size_t more = sizes.size() - view.sizes.size();
  Exprs strides(sizes.size(), sym::Expr(0)), all = sizes;
  for (size_t d = more; d < sizes.size(); ++d) {
    const sym::Expr size = view.sizes[d - more];
    if (sizes[d].is_constant(-1) || c.is(sizes[d], size) || !c.is(size, 1)) {
      if (!sizes[d].is_constant(-1)) c.require_equal(size, sizes[d], "expanded size");
      all[d] = size;
      strides[d] = view.strides[d - more];
    }
  }
  for (sym::Expr size : all)
    if (size.is_constant(-1)) c.reject("expected sizes of new dimensions, found {}", print_expr_list(sizes));
  view.sizes = all;
  view.strides = strides;
  return one_result(std::move(view));
}

InferredResults infer_expand(InferContext& c) { return expanded(c, view_of(c.tensor("self")), c.exprs("size")); }
InferredResults infer_expand_as(InferContext& c) { return expanded(c, view_of(c.tensor("self")), c.tensor("other").sizes); }

CallValueInfo permuted(const CallValueInfo& self, const std::vector<int>& order) {
  CallValueInfo view = view_of(self);
  for (size_t d = 0; d < order.size(); ++d) {
    view.sizes[d] = self.sizes[static_cast<size_t>(order[d])];
    view.strides[d] = self.strides[static_cast<size_t>(order[d])];
  }
  return view;
}

InferredResults infer_permute(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const std::vector<int> order = c.dims("dims", self.sizes.size());
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  const bool repeats = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  if (order.size() != self.sizes.size() || repeats)
    c.reject("expected each of {} dimensions once, found {}", self.sizes.size(), print_expr_list(c.exprs("dims")));
  return one_result(permuted(self, order));
}

// Dimensions without a place given keep their order.
InferredResults infer_movedim(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const size_t rank = self.sizes.size();
  const std::vector<int> from = c.dims("source", rank), to = c.dims("destination", rank);
  std::vector<int> order(rank, -1);
  std::vector<bool> is_moved(rank);
  for (size_t i = 0; i < from.size() && rank > 0; ++i) {
    const auto source = static_cast<size_t>(from[i]);
    if (i >= to.size() || is_moved[source] || order[static_cast<size_t>(to[i])] >= 0)
      c.reject("expected a place for each dimension, found {} and {}", print_expr_list(c.exprs("source")), print_expr_list(c.exprs("destination")));
    order[static_cast<size_t>(to[i])] = from[i];
    is_moved[source] = true;
  }
  size_t next = 0;
  for (int& dim : order) {
    if (dim >= 0) continue;
    while (is_moved[next]) ++next;
    dim = static_cast<int>(next++);
  }
  return one_result(permuted(self, order));
}

InferredResults infer_transpose(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  const auto a = static_cast<size_t>(c.dim("dim0", view.sizes.size())), b = static_cast<size_t>(c.dim("dim1", view.sizes.size()));
  if (a == b) return one_result(std::move(view));
  std::swap(view.sizes[a], view.sizes[b]);
  std::swap(view.strides[a], view.strides[b]);
  return one_result(std::move(view));
}

InferredResults infer_t(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.size() > 2) c.reject("expected at most 2 dimensions, found {}", self.sizes.size());
  return one_result(self.sizes.size() < 2 ? view_of(self) : permuted(self, {1, 0}));
}

InferredResults infer_squeeze(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const bool all = !c.has("dim");
  const std::vector<int> dims = c.dims("dim", self.sizes.size());
  CallValueInfo view = view_of(self);
  view.sizes.clear();
  view.strides.clear();
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    const bool chosen = all || std::find(dims.begin(), dims.end(), static_cast<int>(d)) != dims.end();
    if (chosen && c.is(self.sizes[d], 1)) continue;
    view.sizes.push_back(self.sizes[d]);
    view.strides.push_back(self.strides[d]);
  }
  return one_result(std::move(view));
}

InferredResults infer_unsqueeze(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  const size_t rank = view.sizes.size();
  const int dim = c.dim("dim", rank + 1);
  const auto at = static_cast<size_t>(dim);
  view.strides.insert(view.strides.begin() + dim, at < rank ? view.sizes[at] * view.strides[at] : sym::Expr(1));
  view.sizes.insert(view.sizes.begin() + dim, sym::Expr(1));
  return one_result(std::move(view));
}

InferredResults infer_select(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  if (view.sizes.empty()) c.reject("expected a tensor with dimensions");
  const int dim = c.dim("dim", view.sizes.size());
  const auto at = static_cast<size_t>(dim);
  const sym::Expr given = c.expr("index");
  const sym::Expr index = c.sizes.is_less(given, 0) ? given + view.sizes[at] : given;
  if (c.sizes.is_less(index, 0) || c.sizes.is_less(view.sizes[at], index + 1))
    c.reject("expected an index in a dimension of {}, found {}", sym::to_string(view.sizes[at]), sym::to_string(given));
  view.storage_offset = view.storage_offset + index * view.strides[at];
  view.sizes.erase(view.sizes.begin() + dim);
  view.strides.erase(view.strides.begin() + dim);
  return one_result(std::move(view));
}

// The number, or the bound that it exceeds.
sym::Expr at_most(const InferContext& c, sym::Expr e, sym::Expr bound) {
  if (c.sizes.is_less(bound, e)) return bound;
  return c.sizes.is_less(e, bound + 1) ? e : c.simplify(sym::min(e, bound));
}
sym::Expr at_least(const InferContext& c, sym::Expr e, sym::Expr bound) {
  if (c.sizes.is_less(e, bound)) return bound;
  return c.sizes.is_less(bound, e + 1) ? e : c.simplify(sym::max(e, bound));
}

CallValueInfo sliced(const CallValueInfo& self, size_t at, sym::Expr start, sym::Expr length, sym::Expr step = 1) {
  CallValueInfo view = view_of(self);
  view.storage_offset = view.storage_offset + start * view.strides[at];
  view.sizes[at] = length;
  view.strides[at] = view.strides[at] * step;
  return view;
}

InferredResults infer_slice(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const auto at = static_cast<size_t>(c.dim("dim", self.sizes.size()));
  const sym::Expr size = self.sizes[at], step = c.expr("step");
  if (c.sizes.is_less(step, 1)) c.reject("expected a positive step, found {}", sym::to_string(step));
  // Numbers beyond every size stand for an end.
  constexpr int64_t beyond = int64_t{1} << 62;
  const auto from_front = [&](sym::Expr e) {
    if (e.is_constant() && e.constant() >= beyond) return size;
    if (e.is_constant() && e.constant() <= -beyond) return sym::Expr(0);
    return c.sizes.is_less(e, 0) ? e + size : e;
  };
  const sym::Expr start = at_most(c, at_least(c, from_front(c.has("start") ? c.expr("start") : sym::Expr(0)), 0), size);
  const sym::Expr end = c.has("end") ? at_most(c, at_least(c, from_front(c.expr("end")), start), size) : size;
  return one_result(sliced(self, at, start, c.simplify(sym::ceil_div(end - start, step)), step));
}

InferredResults infer_narrow(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const auto at = static_cast<size_t>(c.dim("dim", self.sizes.size()));
  const sym::Expr given = c.expr("start");
  return one_result(sliced(self, at, c.sizes.is_less(given, 0) ? given + self.sizes[at] : given, c.expr("length")));
}

InferredResults parts(const CallValueInfo& self, size_t at, const Exprs& lengths) {
  std::vector<CallValueInfo> views;
  sym::Expr start = 0;
  for (sym::Expr length : lengths) {
    views.push_back(sliced(self, at, start, length));
    start = start + length;
  }
  return views;
}

InferredResults parts_of_length(const InferContext& c, const CallValueInfo& self, size_t at, sym::Expr length) {
  const sym::Expr size = self.sizes[at];
  if (c.is(length, 0) || c.is(size, 0)) {
    if (!c.is(size, 0)) c.reject("expected parts of at least 1 element, found 0");
    return parts(self, at, {size});
  }
  const sym::Expr found = c.simplify(sym::ceil_div(size, length));
  if (!found.is_constant() && c.known_results() == 0) return std::nullopt;
  const auto count = found.is_constant() ? static_cast<size_t>(found.constant()) : c.known_results();
  Exprs lengths(count, length);
  lengths.back() = c.simplify(size - length * static_cast<int64_t>(count - 1));
  return parts(self, at, lengths);
}

InferredResults infer_split(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  return parts_of_length(c, self, static_cast<size_t>(c.dim("dim", self.sizes.size())), c.expr("split_size"));
}

InferredResults infer_chunk(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const auto at = static_cast<size_t>(c.dim("dim", self.sizes.size()));
  const int64_t chunks = c.integer("chunks");
  if (chunks < 1) c.reject("expected at least 1 chunk, found {}", chunks);
  if (c.is(self.sizes[at], 0)) return parts(self, at, Exprs(static_cast<size_t>(chunks), sym::Expr(0)));
  return parts_of_length(c, self, at, c.simplify(sym::ceil_div(self.sizes[at], chunks)));
}

InferredResults infer_split_with_sizes(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const auto at = static_cast<size_t>(c.dim("dim", self.sizes.size()));
  const Exprs lengths = c.exprs(c.has("split_sizes") ? "split_sizes" : "split_size");
  c.require_equal(self.sizes[at], sym::sum(lengths), "sum of the parts' sizes");
  return parts(self, at, lengths);
}

InferredResults infer_unbind(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const int dim = c.dim("dim", self.sizes.size());
  const auto at = static_cast<size_t>(dim);
  if (!self.sizes[at].is_constant() && c.known_results() == 0) return std::nullopt;
  const auto count = self.sizes[at].is_constant() ? self.sizes[at].constant() : static_cast<int64_t>(c.known_results());
  std::vector<CallValueInfo> views;
  for (int64_t i = 0; i < count; ++i) {
    CallValueInfo& view = views.emplace_back(sliced(self, at, i, 1));
    view.sizes.erase(view.sizes.begin() + dim);
    view.strides.erase(view.strides.begin() + dim);
  }
  return views;
}

InferredResults infer_diagonal(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  const int a = c.dim("dim1", view.sizes.size()), b = c.dim("dim2", view.sizes.size());
  if (a == b) c.reject("expected two dimensions, found {} twice", a);
  const auto row = static_cast<size_t>(a), column = static_cast<size_t>(b);
  const int64_t offset = c.integer("offset");
  const sym::Expr rows = view.sizes[row] + std::min<int64_t>(offset, 0), columns = view.sizes[column] - std::max<int64_t>(offset, 0);
  const sym::Expr shorter = at_most(c, rows, columns);
  const sym::Expr size = at_least(c, shorter, 0);
  if (!c.is(size, 0)) view.storage_offset = view.storage_offset + (offset >= 0 ? view.strides[column] * offset : view.strides[row] * -offset);
  const sym::Expr stride = view.strides[row] + view.strides[column];
  for (int dim : {std::max(a, b), std::min(a, b)}) {
    view.sizes.erase(view.sizes.begin() + dim);
    view.strides.erase(view.strides.begin() + dim);
  }
  view.sizes.push_back(size);
  view.strides.push_back(stride);
  return one_result(std::move(view));
}

InferredResults infer_as_strided(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  view.sizes = c.exprs("size");
  view.strides = c.exprs("stride");
  if (c.has("storage_offset")) view.storage_offset = c.expr("storage_offset");
  if (view.sizes.size() != view.strides.size()) c.reject("expected {} strides, found {}", view.sizes.size(), view.strides.size());
  return one_result(std::move(view));
}

InferredResults infer_unfold(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  const size_t rank = view.sizes.size();
  const auto at = static_cast<size_t>(c.dim("dimension", rank));
  const sym::Expr size = c.expr("size"), step = c.expr("step");
  if (rank == 0) {
    view.sizes.push_back(size);
    view.strides.push_back(1);
    return one_result(std::move(view));
  }
  if (c.sizes.is_less(view.sizes[at], size)) c.reject("expected windows of at most {}, found {}", sym::to_string(view.sizes[at]), sym::to_string(size));
  view.sizes.push_back(size);
  view.strides.push_back(view.strides[at]);
  view.sizes[at] = c.simplify(sym::floor_div(view.sizes[at] - size, step) + 1);
  view.strides[at] = view.strides[at] * step;
  return one_result(std::move(view));
}

InferredResults infer_resize(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const Exprs sizes = c.has("the_template") ? c.tensor("the_template").sizes : c.exprs("size");
  const bool is_unchanged =
      sizes.size() == self.sizes.size() && std::equal(sizes.begin(), sizes.end(), self.sizes.begin(), [&](sym::Expr a, sym::Expr b) { return c.is(a, b); });
  CallValueInfo view = view_of(self);
  if (c.has("memory_format")) return std::nullopt;
  if (is_unchanged) return one_result(std::move(view));
  const CallValueInfo dense = contiguous_like(self, sizes);
  view.sizes = dense.sizes;
  view.strides = dense.strides;
  return one_result(std::move(view));
}

InferredResults infer_same(InferContext& c) { return one_result(view_of(c.tensor("self"))); }

InferredResults infer_conj(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  view.conjugate = is_complex(view.dtype) && !view.conjugate;
  return one_result(std::move(view));
}

InferredResults infer_neg_view(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  view.negative = !view.negative;
  return one_result(std::move(view));
}

InferredResults infer_view_as_real(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  if (!is_complex(view.dtype)) c.reject("expected a complex tensor, found {}", to_string(view.dtype));
  view.dtype = real_of(view.dtype);
  for (sym::Expr& stride : view.strides) stride = stride * 2;
  view.storage_offset = view.storage_offset * 2;
  view.sizes.push_back(2);
  view.strides.push_back(1);
  return one_result(std::move(view));
}

InferredResults infer_view_as_complex(InferContext& c) {
  CallValueInfo view = view_of(c.tensor("self"));
  if (!is_float(view.dtype) || view.sizes.empty()) c.reject("expected real and imaginary parts, found {}", to_string(view.dtype));
  c.require_equal(2, view.sizes.back(), "size of the last dimension");
  view.dtype = complex_of(view.dtype);
  view.sizes.pop_back();
  view.strides.pop_back();
  for (sym::Expr& stride : view.strides) stride = c.simplify(sym::floor_div(stride, 2));
  view.storage_offset = c.simplify(sym::floor_div(view.storage_offset, 2));
  return one_result(std::move(view));
}

// A view's values in a contiguous tensor of their own.
Rule copied(const Rule& view) {
  return [view](InferContext& c) {
    InferredResults results = view(c);
    if (results)
      for (CallValueInfo& info : *results) info = contiguous_like(info, info.sizes);
    return results;
  };
}

}  // namespace

void add_view_rules(RuleTable& table) {
  const std::initializer_list<std::pair<const char*, Rule>> with_copies = {
      {"view", infer_view},
      {"view.dtype", infer_view_dtype},
      {"expand", infer_expand},
      {"permute", infer_permute},
      {"transpose.int", infer_transpose},
      {"t", infer_t},
      {"squeeze", infer_squeeze},
      {"squeeze.dim", infer_squeeze},
      {"squeeze.dims", infer_squeeze},
      {"unsqueeze", infer_unsqueeze},
      {"select.int", infer_select},
      {"slice.Tensor", infer_slice},
      {"split.Tensor", infer_split},
      {"split_with_sizes", infer_split_with_sizes},
      {"unbind.int", infer_unbind},
      {"diagonal", infer_diagonal},
      {"as_strided", infer_as_strided},
      {"unfold", infer_unfold},
      {"alias", infer_same},
      {"detach", infer_same},
      {"lift_fresh", infer_same},
      {"view_as_real", infer_view_as_real},
      {"view_as_complex", infer_view_as_complex},
      {"_reshape_alias", infer_as_strided},
  };
  for (const auto& [name, rule] : with_copies) {
    const std::string text = name, op = text.substr(0, text.find('.')), overload = text.substr(op.size());
    table.emplace("aten::" + text, rule);
    table.emplace("aten::" + op + "_copy" + overload, copied(op == "view" && overload.empty() ? Rule(infer_reshape) : rule));
  }
  // In place: the metadata of the argument changes.
  add_rules(table, {"aten::squeeze_", "aten::squeeze_.dim", "aten::squeeze_.dims"}, infer_squeeze);
  add_rules(table, {"aten::unsqueeze_"}, infer_unsqueeze);
  add_rules(table, {"aten::transpose_"}, infer_transpose);
  add_rules(table, {"aten::t_"}, infer_t);
  add_rules(table, {"aten::as_strided_"}, infer_as_strided);
  add_rules(table, {"aten::resize_", "aten::resize_as_"}, infer_resize);
  add_rules(table, {"aten::_unsafe_view"}, infer_view);
  add_rules(table, {"aten::reshape"}, infer_reshape);
  add_rules(table, {"aten::view_as"}, infer_view_as);
  add_rules(table, {"aten::flatten.using_ints"}, infer_flatten);
  add_rules(table, {"aten::unflatten.int"}, infer_unflatten);
  add_rules(table, {"aten::contiguous"}, infer_contiguous);
  add_rules(table, {"aten::broadcast_to"}, infer_expand);
  add_rules(table, {"aten::expand_as"}, infer_expand_as);
  add_rules(table, {"aten::movedim.int", "aten::movedim.intlist"}, infer_movedim);
  add_rules(table, {"aten::chunk", "aten::unsafe_chunk"}, infer_chunk);
  add_rules(table, {"aten::narrow"}, infer_narrow);
  add_rules(table, {"aten::narrow_copy"}, copied(infer_narrow));
  add_rules(table, {"aten::unsafe_split.Tensor"}, infer_split);
  add_rules(table, {"aten::unsafe_split_with_sizes", "aten::split.sizes"}, infer_split_with_sizes);
  add_rules(table, {"aten::lift"}, infer_same);
  add_rules(table, {"aten::_conj"}, infer_conj);
  add_rules(table, {"aten::_neg_view"}, infer_neg_view);
}

}  // namespace cxxinductor::model

// Reads and writes at indices. What depends on the number of true elements of a mask has no rule.
#include <algorithm>

#include "ir/device_types.h"
#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {
namespace {

// Of an argument whose elements are positions.
const CallValueInfo& index_of(const InferContext& c, const char* name) {
  const CallValueInfo& index = c.tensor(name);
  if (index.dtype != DType::I64 && index.dtype != DType::I32) c.reject("expected '{}' of i64 or i32, found {}", name, to_string(index.dtype));
  return index;
}

bool is_mask(const CallValueInfo& index) { return index.dtype == DType::Bool || index.dtype == DType::U8; }

// self[indices]: the indices broadcast to one block of dimensions, where they are if they are neighbours, else in
// front. The result's strides are those of a pointwise op over self, read with stride 0 in the block, and the indices.
InferredResults infer_index(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  std::vector<const CallValueInfo*> indices = c.tensors("indices");
  if (indices.size() > self.sizes.size()) c.reject("expected at most {} indices, found {}", self.sizes.size(), indices.size());
  Exprs block;
  std::vector<size_t> indexed, others;
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    const CallValueInfo* index = d < indices.size() ? indices[d] : nullptr;
    if (index != nullptr && is_mask(*index)) return std::nullopt;
    (index != nullptr ? indexed : others).push_back(d);
    if (index != nullptr) block = c.broadcast(block, index->sizes);
  }
  if (indexed.empty()) return std::nullopt;
  const bool are_neighbours = indexed.back() - indexed.front() + 1 == indexed.size();
  const size_t before = are_neighbours ? indexed.front() : 0;
  CallValueInfo source = self;
  source.sizes.clear();
  source.strides.clear();
  const auto take_other = [&](size_t d) {
    source.sizes.push_back(self.sizes[d]);
    source.strides.push_back(self.strides[d]);
  };
  for (size_t i = 0; i < before; ++i) take_other(others[i]);
  source.sizes.insert(source.sizes.end(), block.begin(), block.end());
  source.strides.insert(source.strides.end(), block.size(), sym::Expr(0));
  for (size_t i = before; i < others.size(); ++i) take_other(others[i]);

  std::vector<CallValueInfo> operands{source};
  for (size_t d : indexed) {
    CallValueInfo index = contiguous_like(*indices[d], block);
    for (size_t b = 0; b < block.size(); ++b) {
      const size_t rank = indices[d]->sizes.size();
      const bool is_repeated = b + rank < block.size() || (c.is(indices[d]->sizes[b + rank - block.size()], 1) && !c.is(block[b], 1));
      index.strides[b] = is_repeated ? sym::Expr(0) : indices[d]->strides[b + rank - block.size()];
    }
    index.sizes.insert(index.sizes.begin(), before, sym::Expr(1));
    index.strides.insert(index.strides.begin(), before, sym::Expr(0));
    index.sizes.insert(index.sizes.end(), others.size() - before, sym::Expr(1));
    index.strides.insert(index.strides.end(), others.size() - before, sym::Expr(0));
    operands.push_back(std::move(index));
  }
  std::vector<const CallValueInfo*> pointers;
  for (const CallValueInfo& operand : operands) pointers.push_back(&operand);
  return one_result(new_tensor(self.dtype, self.device, source.sizes, pointwise_strides(source.sizes, pointers, false, c.sizes)));
}

InferredResults infer_index_select(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &index = index_of(c, "index");
  if (index.sizes.size() > 1) c.reject("expected an index of at most 1 dimension, found {}", index.sizes.size());
  Exprs sizes = self.sizes;
  const auto dim = static_cast<size_t>(c.dim("dim", sizes.size()));
  if (!sizes.empty()) sizes[dim] = index.sizes.empty() ? sym::Expr(1) : index.sizes[0];
  return one_result(contiguous_like(self, sizes));
}

InferredResults infer_gather(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &index = index_of(c, "index");
  c.dim("dim", self.sizes.size());
  if (std::max<size_t>(self.sizes.size(), 1) != std::max<size_t>(index.sizes.size(), 1) && !c.is_empty(index.sizes))
    c.reject("expected an index of {} dimensions, found {}", self.sizes.size(), index.sizes.size());
  return one_result(contiguous_like(self, index.sizes));
}

InferredResults infer_take(InferContext& c) { return one_result(contiguous_like(c.tensor("self"), index_of(c, "index").sizes)); }

// self with elements of `src` at the positions that `index` gives along a dimension.
InferredResults infer_scatter(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &index = index_of(c, "index");
  const auto dim = static_cast<size_t>(c.dim("dim", self.sizes.size()));
  if (c.is_empty(index.sizes)) return one_result(contiguous_like(self, self.sizes));
  const auto require_covered = [&](const CallValueInfo& by, const char* what, bool along_dim) {
    if (std::max<size_t>(by.sizes.size(), 1) != std::max<size_t>(index.sizes.size(), 1))
      c.reject("expected an index of as many dimensions as '{}', {}, found {}", what, by.sizes.size(), index.sizes.size());
    for (size_t d = 0; d < std::min(by.sizes.size(), index.sizes.size()); ++d)
      if ((along_dim || d != dim) && c.sizes.is_less(by.sizes[d], index.sizes[d]))
        c.reject("expected an index within the sizes {} of '{}', found {}", print_expr_list(by.sizes), what, print_expr_list(index.sizes));
  };
  require_covered(self, "self", false);
  if (const CallValueInfo* source = c.optional_tensor("src")) {
    require_covered(*source, "src", true);
    if (source->dtype != self.dtype) c.reject("expected 'src' of {}, found {}", to_string(self.dtype), to_string(source->dtype));
  }
  return one_result(contiguous_like(self, self.sizes));
}

// self with slices of `source` added, or copied, at the positions that a vector gives along a dimension.
InferredResults infer_index_add(InferContext& c) {
  const CallValueInfo &self = c.tensor("self"), &index = index_of(c, "index"), &source = c.tensor("source");
  const auto dim = static_cast<size_t>(c.dim("dim", self.sizes.size()));
  if (index.sizes.size() > 1) c.reject("expected an index of at most 1 dimension, found {}", index.sizes.size());
  if (source.dtype != self.dtype) c.reject("expected 'source' of {}, found {}", to_string(self.dtype), to_string(source.dtype));
  Exprs sizes = self.sizes;
  if (!sizes.empty()) sizes[dim] = index.sizes.empty() ? sym::Expr(1) : index.sizes[0];
  if (source.sizes.size() == sizes.size())
    for (size_t d = 0; d < sizes.size(); ++d) c.require_equal(sizes[d], source.sizes[d], "size of 'source'");
  return one_result(contiguous_like(self, self.sizes));
}

InferredResults infer_embedding(InferContext& c) {
  const CallValueInfo& weight = c.tensor("weight");
  c.require_rank(weight, 2, "weight");
  Exprs sizes = index_of(c, "indices").sizes;
  sizes.push_back(weight.sizes[1]);
  return one_result(contiguous_like(weight, sizes));
}

InferredResults infer_embedding_backward(InferContext& c) {
  const CallValueInfo& grad = c.tensor("grad_output");
  if (grad.sizes.empty()) c.reject("expected a gradient with dimensions");
  return one_result(contiguous_like(grad, {c.expr("num_weights"), grad.sizes.back()}));
}

// Sums, means or maxima of embeddings by bag; then what the gradient needs: each index's bag, and the bags' sizes and
// maxima.
InferredResults embedding_bag(const InferContext& c, bool forward_only) {
  constexpr int64_t sum_mode = 0, max_mode = 2;
  const CallValueInfo &weight = c.tensor("weight"), &indices = c.tensor("indices"), &offsets = c.tensor("offsets");
  c.require_rank(weight, 2, "weight");
  c.require_rank(indices, 1, "indices");
  c.require_rank(offsets, 1, "offsets");
  const sym::Expr given = offsets.sizes[0], bags = c.boolean("include_last_offset") ? given - 1 : given;
  const int64_t mode = c.integer("mode");
  const CallValueInfo result = contiguous_like(weight, {bags, weight.sizes[1]});
  const auto promoted = promote_types(indices.dtype, offsets.dtype);
  if (!promoted) return std::nullopt;
  const auto of_indices = [&](Exprs sizes) { return contiguous(*promoted, weight.device, std::move(sizes)); };
  const CallValueInfo maxima = of_indices({bags, weight.sizes[1]});
  if (eager(weight.device).embedding_bag_always_saves)
    return std::vector{result, of_indices(indices.sizes), of_indices(offsets.sizes), mode == max_mode ? maxima : of_indices({0})};
  // Sums of dense rows know the bags by the offsets alone.
  const CallValueInfo* scale = c.optional_tensor("per_sample_weights");
  const bool has_kernel = weight.dtype == DType::F32 || weight.dtype == DType::F16 || weight.dtype == DType::BF16;
  const bool is_fast =
      mode == sum_mode && has_kernel && c.is(weight.strides[1], 1) && c.integer("padding_idx") < 0 && (scale == nullptr || c.is(scale->strides[0], 1));
  const CallValueInfo by_bag = of_indices({forward_only && mode == sum_mode ? given : bags});
  return std::vector{result, of_indices(is_fast ? Exprs{0} : indices.sizes), by_bag, mode == max_mode ? maxima : by_bag};
}

// The gradient of a view: zeros of its base's sizes, written in part.
Rule of_sizes(const char* like, const char* sizes) {
  return [=](InferContext& c) { return one_result(contiguous_like(c.tensor(like), c.exprs(sizes))); };
}

// A copy of the tensor's whole memory, gaps included; of its elements where it repeats some.
InferredResults infer_copy_of_memory(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  for (size_t d = 0; d < self.sizes.size(); ++d)
    if (c.is(self.strides[d], 0) && c.sizes.is_less(1, self.sizes[d])) return one_result(empty_like(self, MemoryFormat::Preserve, c.sizes));
  CallValueInfo info = new_tensor(self.dtype, self.device, self.sizes, self.strides);
  info.storage_offset = self.storage_offset;
  return one_result(std::move(info));
}

InferredResults infer_nonzero_static(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return one_result(contiguous(DType::I64, self.device, {c.expr("size"), static_cast<int64_t>(self.sizes.size())}));
}

InferredResults infer_masked_scatter(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return one_result(contiguous_like(self, c.broadcast(self.sizes, c.tensor("mask").sizes)));
}

InferredResults infer_search(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return one_result(contiguous(c.boolean("out_int32") ? DType::I32 : DType::I64, self.device, self.sizes));
}

}  // namespace

void add_indexing_rules(RuleTable& table) {
  add_rules(table, {"aten::index.Tensor", "aten::_unsafe_index.Tensor", "aten::_unsafe_masked_index"}, infer_index);
  add_rules(table, {"aten::index_select"}, infer_index_select);
  add_rules(table, {"aten::gather"}, infer_gather);
  add_rules(table, {"aten::take"}, infer_take);
  add_rules(table, {"aten::embedding"}, infer_embedding);
  add_rules(table, {"aten::embedding_dense_backward"}, infer_embedding_backward);
  add_rules(table, {"aten::_embedding_bag"}, [](InferContext& c) { return embedding_bag(c, false); });
  add_rules(table, {"aten::_embedding_bag_forward_only"}, [](InferContext& c) { return embedding_bag(c, true); });
  add_rules(table, {"aten::_embedding_bag_dense_backward"}, [](InferContext& c) -> InferredResults {
    const CallValueInfo& grad = c.tensor("grad");
    return one_result(contiguous_like(grad, {c.expr("num_weights"), grad.sizes.back()}));
  });
  add_rules(table, {"aten::_embedding_bag_per_sample_weights_backward"},
            [](InferContext& c) -> InferredResults { return one_result(contiguous_like(c.tensor("grad"), c.tensor("indices").sizes)); });
  add_rules(table,
            {"aten::scatter.src", "aten::scatter.value", "aten::scatter.reduce", "aten::scatter.value_reduce", "aten::scatter_add", "aten::scatter_reduce.two"},
            infer_scatter);
  add_rules(table, {"aten::index_add", "aten::index_copy", "aten::index_reduce"}, infer_index_add);
  add_rules(table,
            {"aten::index_put", "aten::_unsafe_index_put", "aten::index_fill.int_Scalar", "aten::index_fill.int_Tensor", "aten::put",
             "aten::_unsafe_masked_index_put_accumulate"},
            formatted_as("self"));
  add_rules(table, {"aten::select_scatter", "aten::slice_scatter", "aten::diagonal_scatter", "aten::as_strided_scatter", "aten::copy"}, infer_copy_of_memory);
  add_rules(table, {"aten::masked_scatter_backward"}, of_sizes("grad_output", "sizes"));
  add_rules(table, {"aten::nonzero_static"}, infer_nonzero_static);
  add_rules(table, {"aten::masked_scatter"}, infer_masked_scatter);
  add_rules(table, {"aten::select_backward", "aten::slice_backward", "aten::diagonal_backward"}, of_sizes("grad_output", "input_sizes"));
  add_rules(table, {"aten::index_select_backward"}, of_sizes("grad", "self_sizes"));
  add_rules(table, {"aten::unfold_backward"}, of_sizes("grad_in", "input_sizes"));
  add_rules(table, {"aten::bucketize.Tensor", "aten::searchsorted.Tensor"}, infer_search);
  add_rules(table, {"aten::isin.Tensor_Tensor", "aten::isin.Tensor_Scalar"}, [](InferContext& c) -> InferredResults {
    const CallValueInfo& elements = c.tensor("elements");
    return one_result(contiguous(DType::Bool, elements.device, elements.sizes));
  });
}

}  // namespace cxxinductor::model

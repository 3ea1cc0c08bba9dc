// Concatenations, paddings, and other copies in another order.
#include <algorithm>

#include "ir/device_types.h"
#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {
namespace {

std::optional<DType> promoted(const std::vector<const CallValueInfo*>& tensors) {
  std::vector<PromotedOperand> operands;
  for (const CallValueInfo* x : tensors) operands.push_back({x->dtype, x->sizes.empty() ? OperandKind::ZeroDimensional : OperandKind::Dimensioned});
  return common_dtype(operands);
}

// The format that all suggest, if it is one.
MemoryFormat common_format(const InferContext& c, const std::vector<const CallValueInfo*>& tensors) {
  const MemoryFormat format = suggested_format(*tensors.front(), c.sizes);
  const bool agree = std::all_of(tensors.begin(), tensors.end(), [&](const CallValueInfo* x) { return suggested_format(*x, c.sizes) == format; });
  return agree ? format : MemoryFormat::Contiguous;
}

InferredResults concatenated(const InferContext& c, const std::vector<const CallValueInfo*>& tensors, int64_t given_dim) {
  const auto dtype = promoted(tensors);
  if (!dtype) return std::nullopt;
  // Tensors of sizes [0] do not count, whatever the others' rank.
  const auto counts = [&](const CallValueInfo* x) { return x->sizes.size() != 1 || !c.is(x->sizes[0], 0); };
  const auto first = std::find_if(tensors.begin(), tensors.end(), counts);
  if (first == tensors.end()) return one_result(contiguous(*dtype, tensors.front()->device, {0}));
  Exprs sizes = (*first)->sizes;
  if (sizes.empty()) c.reject("expected tensors with dimensions");
  const auto dim = static_cast<size_t>(c.wrap(given_dim, sizes.size()));
  sizes[dim] = 0;
  for (const CallValueInfo* x : tensors) {
    if (!counts(x)) continue;
    c.require_rank(*x, sizes.size(), "concatenated tensor");
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != dim) c.require_equal(sizes[d], x->sizes[d], "size of a concatenated tensor");
    sizes[dim] = sizes[dim] + x->sizes[dim];
  }
  return one_result(in_format(*dtype, (*first)->device, sizes, common_format(c, tensors)));
}

std::vector<const CallValueInfo*> operands(const InferContext& c) {
  auto tensors = c.tensors("tensors");
  if (tensors.empty() || std::find(tensors.begin(), tensors.end(), nullptr) != tensors.end()) c.reject("expected a list of tensors");
  return tensors;
}

InferredResults infer_cat(InferContext& c) { return concatenated(c, operands(c), c.integer("dim")); }

// A concatenation along the dimension, which is divided then; along a new last dimension, one of tensors with that.
InferredResults infer_stack(InferContext& c) {
  const auto tensors = operands(c);
  const Exprs sizes = tensors.front()->sizes;
  const int dim = c.dim("dim", sizes.size() + 1);
  const auto at = static_cast<size_t>(dim);
  for (const CallValueInfo* x : tensors) {
    c.require_rank(*x, sizes.size(), "stacked tensor");
    for (size_t d = 0; d < sizes.size(); ++d) c.require_equal(sizes[d], x->sizes[d], "size of a stacked tensor");
  }
  const auto count = static_cast<int64_t>(tensors.size());
  if (at < sizes.size()) {
    auto results = concatenated(c, tensors, dim);
    if (!results) return results;
    CallValueInfo& info = results->front();
    if (info.sizes.size() != sizes.size()) return std::nullopt;
    info.sizes[at] = sizes[at];
    const sym::Expr stride = info.strides[at] * sizes[at];
    info.sizes.insert(info.sizes.begin() + dim, sym::Expr(count));
    info.strides.insert(info.strides.begin() + dim, stride);
    return results;
  }
  std::vector<CallValueInfo> wide;
  for (const CallValueInfo* x : tensors) {
    wide.push_back(*x);
    wide.back().sizes.push_back(1);
    wide.back().strides.push_back(1);
  }
  std::vector<const CallValueInfo*> pointers;
  for (const CallValueInfo& x : wide) pointers.push_back(&x);
  return concatenated(c, pointers, dim);
}

InferredResults infer_repeat(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  Exprs sizes = c.exprs("repeats");
  if (sizes.size() < self.sizes.size()) c.reject("expected at least {} repeats, found {}", self.sizes.size(), sizes.size());
  const size_t more = sizes.size() - self.sizes.size();
  for (size_t d = 0; d < self.sizes.size(); ++d) sizes[more + d] = sizes[more + d] * self.sizes[d];
  return one_result(contiguous_like(self, sizes));
}

// pad: in front of and behind the last dimension, then of the one before it, and so on.
Exprs padded_sizes(const InferContext& c, const CallValueInfo& self, const Exprs& pad) {
  if (pad.size() % 2 != 0 || pad.size() / 2 > self.sizes.size())
    c.reject("expected two paddings of at most {} dimensions, found {}", self.sizes.size(), print_expr_list(pad));
  Exprs sizes = self.sizes;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    sym::Expr& size = sizes[sizes.size() - 1 - i];
    size = c.simplify(size + pad[2 * i] + pad[2 * i + 1]);
    if (c.sizes.is_less(size, 0)) c.reject("expected sizes of at least 0, found {}", print_expr_list(sizes));
  }
  return sizes;
}

InferredResults infer_constant_pad(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const Exprs pad = c.exprs("pad"), sizes = padded_sizes(c, self, pad);
  if (std::all_of(pad.begin(), pad.end(), [&](sym::Expr e) { return c.sizes.is_less(e, 1); })) {  // a copy of a view
    CallValueInfo part = self;
    part.sizes = sizes;
    return one_result(empty_like(part, MemoryFormat::Preserve, c.sizes));
  }
  return one_result(in_format(self.dtype, self.device, sizes, suggested_format(self, c.sizes)));
}

Rule padding(size_t spatial) {
  return [spatial](InferContext& c) -> InferredResults {
    const CallValueInfo& self = c.tensor("self");
    if (self.sizes.size() != spatial + 1 && self.sizes.size() != spatial + 2)
      c.reject("expected {} or {} dimensions, found {}", spatial + 1, spatial + 2, self.sizes.size());
    const MemoryFormat format = suggested_format(self, c.sizes);
    return one_result(in_format(self.dtype, self.device, padded_sizes(c, self, c.exprs("padding")), format));
  };
}

InferredResults infer_roll(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return one_result(empty_like(self, eager(self.device).roll_channels_last ? suggested_format(self, c.sizes) : MemoryFormat::Contiguous, c.sizes));
}

// A flip, and for odd numbers of turns a transposition of that.
InferredResults infer_rot90(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const std::vector<int> dims = c.dims("dims", self.sizes.size());
  if (dims.size() != 2 || dims[0] == dims[1]) c.reject("expected two dimensions, found {}", print_expr_list(c.exprs("dims")));
  const int64_t turns = c.integer("k");
  CallValueInfo info = empty_like(self, turns % 4 == 0 ? MemoryFormat::Contiguous : MemoryFormat::Preserve, c.sizes);
  if (turns % 2 != 0) {
    const auto a = static_cast<size_t>(dims[0]), b = static_cast<size_t>(dims[1]);
    std::swap(info.sizes[a], info.sizes[b]);
    std::swap(info.strides[a], info.strides[b]);
  }
  return one_result(std::move(info));
}

InferredResults infer_block_diag(InferContext& c) {
  sym::Expr rows = 0, columns = 0;
  const auto tensors = operands(c);
  for (const CallValueInfo* x : tensors) {
    const Exprs& sizes = x->sizes;
    if (sizes.size() > 2) c.reject("expected at most 2 dimensions, found {}", sizes.size());
    rows = rows + (sizes.size() == 2 ? sizes[0] : sym::Expr(1));
    columns = columns + (sizes.empty() ? sym::Expr(1) : sizes.back());
  }
  const auto dtype = promoted(tensors);
  if (!dtype) return std::nullopt;
  return one_result(contiguous(*dtype, tensors.front()->device, {rows, columns}));
}

// Positions that windows take in one dimension.
sym::Expr windows_in(const InferContext& c, sym::Expr size, size_t d) {
  const sym::Expr reach = c.exprs("dilation")[d] * (c.exprs("kernel_size")[d] - 1);
  return sym::floor_div(size + c.exprs("padding")[d] * 2 - reach - 1, c.exprs("stride")[d]) + 1;
}

InferredResults infer_im2col(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const size_t rank = self.sizes.size();
  if (rank != 3 && rank != 4) c.reject("expected 3 or 4 dimensions, found {}", rank);
  Exprs sizes(self.sizes.begin(), self.sizes.end() - 2);
  sizes.back() = sizes.back() * sym::product(c.exprs("kernel_size"));
  sizes.push_back(c.simplify(windows_in(c, self.sizes[rank - 2], 0) * windows_in(c, self.sizes[rank - 1], 1)));
  return one_result(contiguous_like(self, sizes));
}

InferredResults infer_col2im(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  const size_t rank = self.sizes.size();
  if (rank != 2 && rank != 3) c.reject("expected 2 or 3 dimensions, found {}", rank);
  Exprs sizes(self.sizes.begin(), self.sizes.end() - 1);
  sizes.back() = c.simplify(sym::floor_div(sizes.back(), sym::product(c.exprs("kernel_size"))));
  for (sym::Expr size : c.exprs("output_size")) sizes.push_back(size);
  return one_result(contiguous_like(self, sizes));
}

InferredResults infer_diag_embed(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (self.sizes.empty()) c.reject("expected a tensor with dimensions");
  const size_t rank = self.sizes.size() + 1;
  const int a = c.dim("dim1", rank), b = c.dim("dim2", rank);
  if (a == b) c.reject("expected two dimensions, found {} twice", a);
  const int64_t offset = c.integer("offset");
  const sym::Expr length = self.sizes.back() + (offset < 0 ? -offset : offset);
  // Zeros of the matrices' sizes, of which a diagonal is written.
  Exprs sizes(self.sizes.begin(), self.sizes.end() - 1);
  sizes.insert(sizes.begin() + std::min(a, b), length);
  sizes.insert(sizes.begin() + std::max(a, b), length);
  return one_result(contiguous_like(self, sizes));
}

}  // namespace

void add_movement_rules(RuleTable& table) {
  add_rules(table, {"aten::cat"}, infer_cat);
  add_rules(table, {"aten::stack"}, infer_stack);
  add_rules(table, {"aten::repeat"}, infer_repeat);
  add_rules(table, {"aten::constant_pad_nd"}, infer_constant_pad);
  add_rules(table, {"aten::flip"}, formatted_as("self"));
  add_rules(table, {"aten::roll"}, infer_roll);
  add_rules(table, {"aten::diag_embed"}, infer_diag_embed);
  add_rules(table, {"aten::renorm"}, [](InferContext& c) {
    if (c.tensor("self").sizes.size() < 2) c.reject("expected at least 2 dimensions, found {}", c.tensor("self").sizes.size());
    return contiguous_as("self")(c);
  });
  add_rules(table, {"aten::rot90"}, infer_rot90);
  add_rules(table, {"aten::block_diag"}, infer_block_diag);
  add_rules(table, {"aten::im2col"}, infer_im2col);
  add_rules(table, {"aten::col2im"}, infer_col2im);
  const std::pair<const char*, size_t> paddings[] = {{"1d", 1}, {"2d", 2}, {"3d", 3}};
  for (const auto& [suffix, spatial] : paddings) {
    for (const char* kind : {"reflection", "replication"}) {
      table.emplace(fmt::format("aten::{}_pad{}", kind, suffix), padding(spatial));
      table.emplace(fmt::format("aten::{}_pad{}_backward", kind, suffix), suggested_as("self"));
    }
  }
}

}  // namespace cxxinductor::model

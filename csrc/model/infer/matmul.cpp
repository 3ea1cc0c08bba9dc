// Products of matrices and vectors; most of their results are contiguous.
#include "model/infer/pointwise.h"

namespace cxxinductor::model {
namespace {

// [..., m, k] by [..., k, n]; no result where sizes cannot be multiplied.
Exprs product_sizes(const InferContext& c, const CallValueInfo& a, const CallValueInfo& b, size_t rank) {
  c.require_rank(a, rank, "first matrix");
  c.require_rank(b, rank, "second matrix");
  if (rank == 3) c.require_equal(a.sizes[0], b.sizes[0], "batch of the second matrix");
  c.require_equal(a.sizes[rank - 1], b.sizes[rank - 2], "rows of the second matrix");
  if (a.dtype != b.dtype) c.reject("expected matrices of one dtype, found {} and {}", to_string(a.dtype), to_string(b.dtype));
  Exprs sizes(a.sizes.begin(), a.sizes.end() - 1);
  sizes.push_back(b.sizes[rank - 1]);
  return sizes;
}

struct ProductArguments {
  const char *first, *second;
  size_t rank;
  bool adds = false;  // argument "self" is added, and broadcasts
};

Rule product(const ProductArguments& names) {
  return [names](InferContext& c) -> InferredResults {
    const CallValueInfo& a = c.tensor(names.first);
    Exprs sizes = product_sizes(c, a, c.tensor(names.second), names.rank);
    if (names.adds) {
      const Exprs all = c.broadcast(sizes, c.tensor("self").sizes);
      if (all.size() != sizes.size())
        c.reject("expected 'self' that broadcasts to {}, found {}", print_expr_list(sizes), print_expr_list(c.tensor("self").sizes));
      for (size_t d = 0; d < sizes.size(); ++d) c.require_equal(sizes[d], all[d], "size of 'self'");
    }
    return std::vector{contiguous(c.dtype("out_dtype").value_or(a.dtype), a.device, std::move(sizes))};
  };
}

Rule matrix_by_vector(const char* matrix, const char* vector) {
  return [=](InferContext& c) -> InferredResults {
    const CallValueInfo &a = c.tensor(matrix), &x = c.tensor(vector);
    c.require_rank(a, 2, "matrix");
    c.require_rank(x, 1, "vector");
    c.require_equal(a.sizes[1], x.sizes[0], "size of the vector");
    return std::vector{contiguous_like(a, {a.sizes[0]})};
  };
}

Rule dot(const char* second) {
  return [second](InferContext& c) -> InferredResults {
    const CallValueInfo &a = c.tensor("self"), &b = c.tensor(second);
    c.require_rank(a, 1, "first vector");
    c.require_rank(b, 1, "second vector");
    c.require_equal(a.sizes[0], b.sizes[0], "size of the second vector");
    return std::vector{contiguous_like(a, {})};
  };
}

// A pointwise op on self, the first vector as a column, and the second one.
InferredResults infer_addr(InferContext& c) {
  CallValueInfo column = c.tensor("vec1");
  c.require_rank(column, 1, "first vector");
  c.require_rank(c.tensor("vec2"), 1, "second vector");
  column.sizes.push_back(1);
  column.strides.push_back(1);
  PointwiseOperands operands;
  operands.add(c.tensor("self"));
  operands.add(column);
  operands.add(c.tensor("vec2"));
  return infer_pointwise(c, operands, ResultType::Common);
}

InferredResults infer_addbmm(InferContext& c) {
  Exprs sizes = product_sizes(c, c.tensor("batch1"), c.tensor("batch2"), 3);
  sizes.erase(sizes.begin());
  return std::vector{contiguous_like(c.tensor("batch1"), std::move(sizes))};
}

InferredResults infer_int_mm(InferContext& c) {
  const CallValueInfo& a = c.tensor("self");
  return std::vector{contiguous(DType::I32, a.device, product_sizes(c, a, c.tensor("mat2"), 2))};
}

}  // namespace

void add_matmul_rules(RuleTable& table) {
  add_rules(table, {"aten::mm", "aten::mm.dtype"}, product({"self", "mat2", 2}));
  add_rules(table, {"aten::addmm", "aten::addmm.dtype", "aten::_addmm_activation"}, product({"mat1", "mat2", 2, true}));
  add_rules(table, {"aten::bmm", "aten::bmm.dtype"}, product({"self", "mat2", 3}));
  add_rules(table, {"aten::baddbmm", "aten::baddbmm.dtype"}, product({"batch1", "batch2", 3, true}));
  add_rules(table, {"aten::addbmm"}, infer_addbmm);
  add_rules(table, {"aten::_int_mm"}, infer_int_mm);
  add_rules(table, {"aten::mv"}, matrix_by_vector("self", "vec"));
  add_rules(table, {"aten::addmv"}, matrix_by_vector("mat", "vec"));
  add_rules(table, {"aten::dot"}, dot("tensor"));
  add_rules(table, {"aten::vdot"}, dot("other"));
  add_rules(table, {"aten::addr"}, infer_addr);
}

}  // namespace cxxinductor::model

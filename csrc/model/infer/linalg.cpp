// Factorizations and solutions of square matrices; LAPACK's results are by columns.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

void require_square(const InferContext& c, const CallValueInfo& matrix) {
  const Exprs& sizes = matrix.sizes;
  if (sizes.size() < 2) c.reject("expected a matrix, found {}", to_string(sizes));
  c.require_equal(sizes[sizes.size() - 2], sizes.back(), "columns of a square matrix");
}

CallValueInfo by_columns(const CallValueInfo& like, const Exprs& sizes) {
  Exprs turned = sizes;
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  CallValueInfo info = contiguous_like(like, turned);
  info.sizes = sizes;
  std::swap(info.strides[sizes.size() - 1], info.strides[sizes.size() - 2]);
  return info;
}

// What LAPACK reports of each matrix.
CallValueInfo status(const CallValueInfo& matrix) {
  return contiguous(DType::I32, matrix.device, {matrix.sizes.begin(), matrix.sizes.end() - 2});
}

Rule factorization(const char* name) {
  return [name](InferContext& c) -> InferredResults {
    const CallValueInfo& matrix = c.tensor(name);
    require_square(c, matrix);
    return std::vector{by_columns(matrix, matrix.sizes), status(matrix)};
  };
}

}  // namespace

void add_linalg_rules(RuleTable& table) {
  add_rules(table, {"aten::linalg_inv_ex"}, factorization("A"));
  add_rules(table, {"aten::linalg_cholesky_ex"}, factorization("self"));
}

}  // namespace cxxinductor::model

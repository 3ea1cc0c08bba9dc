// Factorizations, solutions and eigenvalues of matrices; most of LAPACK's results are by columns.
#include <algorithm>

#include "ir/device_types.h"
#include "model/infer/table.h"
#include "model/promotion.h"

namespace cxxinductor::model {
namespace {

void require_square(const InferContext& c, const CallValueInfo& matrix) {
  const Exprs& sizes = matrix.sizes;
  if (sizes.size() < 2) c.reject("expected a matrix, found {}", print_expr_list(sizes));
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
CallValueInfo status(const CallValueInfo& matrix) { return contiguous(DType::I32, matrix.device, {matrix.sizes.begin(), matrix.sizes.end() - 2}); }

Rule factorization(const char* name) {
  return [name](InferContext& c) -> InferredResults {
    const CallValueInfo& matrix = c.tensor(name);
    require_square(c, matrix);
    return std::vector{by_columns(matrix, matrix.sizes), status(matrix)};
  };
}

// Leading dimensions, and the rows and columns of the matrices.
struct MatrixSizes {
  Exprs batch;
  sym::Expr rows, columns, least;
};

MatrixSizes sizes_of(const InferContext& c, const CallValueInfo& matrix) {
  if (matrix.sizes.size() < 2) c.reject("expected a matrix, found {}", print_expr_list(matrix.sizes));
  const sym::Expr rows = matrix.sizes[matrix.sizes.size() - 2], columns = matrix.sizes.back();
  return {{matrix.sizes.begin(), matrix.sizes.end() - 2}, rows, columns, c.simplify(sym::min(rows, columns))};
}

Exprs with(Exprs sizes, std::initializer_list<sym::Expr> last) {
  sizes.insert(sizes.end(), last);
  return sizes;
}

CallValueInfo pivots_of(const CallValueInfo& matrix, const MatrixSizes& sizes) {
  return contiguous(DType::I32, matrix.device, with(sizes.batch, {sizes.least}));
}

CallValueInfo empty_of(const CallValueInfo& like) { return contiguous_like(like, {0}); }

// Rules of what LAPACK computes: the libraries of GPUs lay results out otherwise.
Rule by_lapack(const char* name, InferredResults (*rule)(InferContext&, const CallValueInfo&, const MatrixSizes&)) {
  return [name, rule](InferContext& c) -> InferredResults {
    const CallValueInfo& matrix = c.tensor(name);
    if (!eager(matrix.device).lapack) return std::nullopt;
    return rule(c, matrix, sizes_of(c, matrix));
  };
}

Rule by_columns_like(const char* name) {
  return by_lapack(
      name, [](InferContext&, const CallValueInfo& matrix, const MatrixSizes&) -> InferredResults { return std::vector{by_columns(matrix, matrix.sizes)}; });
}

InferredResults infer_det(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  return std::vector{contiguous_like(a, sizes.batch), by_columns(a, a.sizes), pivots_of(a, sizes)};
}

InferredResults infer_slogdet(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  InferredResults results = infer_det(c, a, sizes);
  results->insert(results->begin() + 1, contiguous(real_of(a.dtype), a.device, sizes.batch));
  return results;
}

InferredResults infer_eigh(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  return std::vector{contiguous(real_of(a.dtype), a.device, with(sizes.batch, {sizes.rows})), c.boolean("compute_v") ? by_columns(a, a.sizes) : empty_of(a)};
}

InferredResults infer_eig(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  CallValueInfo vectors = by_columns(a, a.sizes);
  vectors.dtype = complex_of(a.dtype);
  return std::vector{contiguous(vectors.dtype, a.device, with(sizes.batch, {sizes.rows})), vectors};
}

InferredResults infer_eigvals(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  InferredResults results = infer_eig(c, a, sizes);
  results->pop_back();
  return results;
}

InferredResults infer_svd(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  const bool full = c.boolean("full_matrices");
  const CallValueInfo values = contiguous(real_of(a.dtype), a.device, with(sizes.batch, {sizes.least}));
  if (!c.boolean("compute_uv")) return std::vector{empty_of(a), values, empty_of(a)};
  return std::vector{by_columns(a, with(sizes.batch, {sizes.rows, full ? sizes.rows : sizes.least})), values,
                     by_columns(a, with(sizes.batch, {full ? sizes.columns : sizes.least, sizes.columns}))};
}

InferredResults infer_lu(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  const Exprs permutation = with(sizes.batch, {sizes.rows, sizes.rows});
  return std::vector{c.boolean("pivot") ? contiguous_like(a, permutation) : empty_of(a), contiguous_like(a, with(sizes.batch, {sizes.rows, sizes.least})),
                     contiguous_like(a, with(sizes.batch, {sizes.least, sizes.columns}))};
}

InferredResults infer_lu_unpack(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  const bool data = c.boolean("unpack_data");
  const Exprs permutation = with(sizes.batch, {sizes.rows, sizes.rows});
  return std::vector{c.boolean("unpack_pivots") ? contiguous_like(a, permutation) : empty_of(a),
                     data ? contiguous_like(a, with(sizes.batch, {sizes.rows, sizes.least})) : empty_of(a),
                     data ? contiguous_like(a, with(sizes.batch, {sizes.least, sizes.columns})) : empty_of(a)};
}

InferredResults infer_lu_factor(InferContext&, const CallValueInfo& a, const MatrixSizes& sizes) {
  return std::vector{by_columns(a, a.sizes), pivots_of(a, sizes), status(a)};
}

// The right side's sizes with the leading dimensions of both.
Exprs broadcast_right(InferContext& c, const MatrixSizes& a, const CallValueInfo& b) {
  const MatrixSizes right = sizes_of(c, b);
  return with(c.broadcast(a.batch, right.batch), {right.rows, right.columns});
}

CallValueInfo by_side(const CallValueInfo& like, const Exprs& sizes, bool left) { return left ? by_columns(like, sizes) : contiguous_like(like, sizes); }

InferredResults infer_lu_solve(InferContext& c, const CallValueInfo&, const MatrixSizes& sizes) {
  const CallValueInfo& b = c.tensor("B");
  return std::vector{by_side(b, broadcast_right(c, sizes, b), c.boolean("left"))};
}

// One right side of each matrix where B is a vector, or a stack of them.
InferredResults infer_solve(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  const CallValueInfo& b = c.tensor("B");
  const bool of_vectors = b.sizes.size() == 1 || (b.sizes.size() + 1 == a.sizes.size() && std::equal(b.sizes.begin(), b.sizes.end(), a.sizes.begin(),
                                                                                                     [&](sym::Expr x, sym::Expr y) { return c.is(x, y); }));
  CallValueInfo right = b;
  if (of_vectors) right.sizes.emplace_back(1);
  CallValueInfo result = by_side(b, broadcast_right(c, sizes, right), c.boolean("left"));
  if (of_vectors) {
    result.sizes.pop_back();
    result.strides.pop_back();
  }
  return std::vector{result, by_columns(a, a.sizes), pivots_of(a, sizes), status(a)};
}

InferredResults infer_solve_triangular(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  const CallValueInfo& b = c.tensor("B");
  return std::vector{by_columns(b, broadcast_right(c, sizes, b))};
}

// triangular_solve(B, A): also a copy of A.
InferredResults infer_triangular_solve(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  const CallValueInfo& b = c.tensor("self");
  const Exprs solved = broadcast_right(c, sizes, b);
  return std::vector{by_columns(b, solved), by_columns(a, with({solved.begin(), solved.end() - 2}, {sizes.rows, sizes.columns}))};
}

InferredResults infer_cholesky_solve(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  const CallValueInfo& b = c.tensor("self");
  return std::vector{by_columns(b, broadcast_right(c, sizes, b))};
}

InferredResults infer_qr(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  const std::string mode = c.text("mode").empty() ? "reduced" : c.text("mode");
  const sym::Expr inner = mode == "complete" ? sizes.rows : sizes.least;
  return std::vector{mode == "r" ? empty_of(a) : by_columns(a, with(sizes.batch, {sizes.rows, inner})),
                     by_columns(a, with(sizes.batch, {inner, sizes.columns}))};
}

InferredResults infer_geqrf(InferContext&, const CallValueInfo& a, const MatrixSizes& sizes) {
  return std::vector{by_columns(a, a.sizes), contiguous_like(a, with(sizes.batch, {sizes.least}))};
}

InferredResults infer_ldl_factor(InferContext& c, const CallValueInfo& a, const MatrixSizes& sizes) {
  require_square(c, a);
  return std::vector{by_columns(a, a.sizes), pivots_of(a, sizes), status(a)};
}

}  // namespace

void add_linalg_rules(RuleTable& table) {
  add_rules(table, {"aten::linalg_inv_ex"}, factorization("A"));
  add_rules(table, {"aten::linalg_cholesky_ex"}, factorization("self"));
  add_rules(table, {"aten::cholesky", "aten::cholesky_inverse"}, by_columns_like("self"));
  add_rules(table, {"aten::linalg_householder_product"}, by_columns_like("input"));
  add_rules(table, {"aten::ormqr"}, by_columns_like("input3"));
  add_rules(table, {"aten::linalg_matrix_exp"}, contiguous_as("self"));
  add_rules(table, {"aten::_linalg_det"}, by_lapack("A", infer_det));
  add_rules(table, {"aten::_linalg_slogdet"}, by_lapack("A", infer_slogdet));
  add_rules(table, {"aten::_linalg_eigh"}, by_lapack("A", infer_eigh));
  add_rules(table, {"aten::linalg_eig"}, by_lapack("self", infer_eig));
  add_rules(table, {"aten::_linalg_eigvals"}, by_lapack("self", infer_eigvals));
  add_rules(table, {"aten::_linalg_svd"}, by_lapack("A", infer_svd));
  add_rules(table, {"aten::linalg_lu"}, by_lapack("A", infer_lu));
  add_rules(table, {"aten::lu_unpack"}, by_lapack("LU_data", infer_lu_unpack));
  add_rules(table, {"aten::linalg_lu_factor_ex"}, by_lapack("A", infer_lu_factor));
  add_rules(table, {"aten::linalg_lu_solve"}, by_lapack("LU", infer_lu_solve));
  add_rules(table, {"aten::_linalg_solve_ex"}, by_lapack("A", infer_solve));
  add_rules(table, {"aten::linalg_solve_triangular"}, by_lapack("self", infer_solve_triangular));
  add_rules(table, {"aten::triangular_solve"}, by_lapack("A", infer_triangular_solve));
  add_rules(table, {"aten::cholesky_solve"}, by_lapack("input2", infer_cholesky_solve));
  add_rules(table, {"aten::linalg_qr"}, by_lapack("A", infer_qr));
  add_rules(table, {"aten::geqrf"}, by_lapack("self", infer_geqrf));
  add_rules(table, {"aten::linalg_ldl_factor_ex"}, by_lapack("self", infer_ldl_factor));
  add_rules(table, {"aten::linalg_ldl_solve"}, [](InferContext& c) { return InferredResults(std::vector{by_columns(c.tensor("B"), c.tensor("B").sizes)}); });
}

}  // namespace cxxinductor::model

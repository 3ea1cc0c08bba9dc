// New tensors, of given sizes or of those of another tensor.
#include <algorithm>
#include <cmath>

#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

constexpr DType default_float = DType::F32;

Rule of_size(std::optional<DType> default_dtype) {
  return [default_dtype](InferContext& c) -> InferredResults {
    std::optional<DType> dtype = c.dtype("dtype");
    if (!dtype) dtype = default_dtype;
    if (!dtype) dtype = c.dtype_of_number(*c.find("fill_value"));
    if (!dtype) return std::nullopt;
    const MemoryFormat format = c.memory_format("memory_format").value_or(MemoryFormat::Contiguous);
    return one_result(in_format(*dtype, c.device({}), c.exprs("size"), format));
  };
}

InferredResults infer_scalar_tensor(InferContext& c) { return one_result(contiguous(c.dtype("dtype").value_or(default_float), c.device({}), {})); }

InferredResults infer_empty_strided(InferContext& c) {
  return one_result(new_tensor(c.dtype("dtype").value_or(default_float), c.device({}), c.exprs("size"), c.exprs("stride")));
}

InferredResults infer_empty_permuted(InferContext& c) {
  const Exprs sizes = c.exprs("size");
  const std::vector<int> order = c.dims("physical_layout", sizes.size());
  Exprs strides(sizes.size());
  sym::Expr stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = stride;
    stride = stride * sizes[static_cast<size_t>(order[i])];
  }
  return one_result(new_tensor(c.dtype("dtype").value_or(default_float), c.device({}), sizes, strides));
}

// Another tensor's sizes, and in its memory format where none is given.
InferredResults infer_like(InferContext& c) {
  CallValueInfo like = c.tensor("self");
  like.dtype = c.dtype("dtype").value_or(like.dtype);
  like.device = c.device(like.device);
  return one_result(empty_like(like, c.memory_format("memory_format").value_or(MemoryFormat::Preserve), c.sizes));
}

InferredResults infer_new(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return one_result(contiguous(c.dtype("dtype").value_or(self.dtype), c.device(self.device), c.exprs("size")));
}

InferredResults infer_new_strided(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return one_result(new_tensor(c.dtype("dtype").value_or(self.dtype), c.device(self.device), c.exprs("size"), c.exprs("stride")));
}

InferredResults infer_arange(InferContext& c) {
  bool is_integer = true, has_symbols = false;
  for (const char* name : {"start", "end", "step"}) {
    const Arg* arg = c.find(name);
    if (arg == nullptr) continue;
    const auto e = c.as_expr(*arg);
    is_integer = is_integer && e.has_value();
    has_symbols = has_symbols || (e && !e->is_constant());
  }
  const DType dtype = c.dtype("dtype").value_or(is_integer ? DType::I64 : default_float);
  if (is_integer) {
    const sym::Expr start = c.has("start") ? c.expr("start") : sym::Expr(0), step = c.has("step") ? c.expr("step") : sym::Expr(1);
    if (c.is(step, 0)) c.reject("expected a step that is not 0");
    return one_result(contiguous(dtype, c.device({}), {c.simplify(sym::ceil_div(c.expr("end") - start, step))}));
  }
  if (has_symbols) return std::nullopt;
  const auto number = [&](const char* name, double otherwise) {
    const double given = c.has(name) ? c.real(*c.find(name)) : otherwise;
    return dtype == DType::I64 ? std::trunc(given) : given;
  };
  const double length = std::ceil((number("end", 0) - number("start", 0)) / number("step", 1));
  if (!(length >= 0) || length > 0x1p62) c.reject("expected bounds in the direction of the step, found {} elements", length);
  return one_result(contiguous(dtype, c.device({}), {static_cast<int64_t>(length)}));
}

InferredResults infer_linspace(InferContext& c) { return one_result(contiguous(c.dtype("dtype").value_or(default_float), c.device({}), {c.expr("steps")})); }

InferredResults infer_eye(InferContext& c) {
  const sym::Expr rows = c.expr("n");
  return one_result(contiguous(c.dtype("dtype").value_or(default_float), c.device({}), {rows, c.has("m") ? c.expr("m") : rows}));
}

// prims: dtypes are given.
InferredResults infer_convert(InferContext& c) {
  CallValueInfo like = c.tensor("a");
  like.dtype = c.dtype("dtype").value_or(like.dtype);
  return one_result(empty_like(like, MemoryFormat::Preserve, c.sizes));
}

InferredResults infer_iota(InferContext& c) { return one_result(contiguous(c.dtype("dtype").value_or(DType::I64), c.device({}), {c.expr("length")})); }

// Elements of a matrix on and below its diagonal number `offset`: of each row r, r + 1 + offset, but at most all.
int64_t elements_below(int64_t rows, int64_t columns, int64_t offset) {
  const auto triangle = [](int64_t n) { return n > 0 ? n * (n + 1) / 2 : 0; };
  return triangle(rows + offset) - triangle(offset) - triangle(rows + offset - columns) + triangle(offset - columns);
}

Rule triangle_indices(bool lower) {
  return [lower](InferContext& c) -> InferredResults {
    const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = c.integer("offset");
    const int64_t count = lower ? elements_below(rows, columns, offset) : rows * columns - elements_below(rows, columns, offset - 1);
    return one_result(contiguous(c.dtype("dtype").value_or(DType::I64), c.device({}), {2, count}));
  };
}

}  // namespace

void add_creation_rules(RuleTable& table) {
  add_rules(table,
            {"aten::empty.memory_format", "aten::zeros", "aten::ones", "aten::rand", "aten::rand.generator", "aten::randn", "aten::randn.generator",
             "aten::normal.float_float", "aten::_efficientzerotensor"},
            of_size(default_float));
  add_rules(table, {"aten::full"}, of_size(std::nullopt));
  add_rules(table, {"aten::randint", "aten::randint.low", "aten::randint.generator", "aten::randint.low_generator", "aten::randperm"},
            [](InferContext& c) -> InferredResults {
              return one_result(contiguous(c.dtype("dtype").value_or(DType::I64), c.device({}), c.exprs(c.has("size") ? "size" : "n")));
            });
  add_rules(table, {"aten::scalar_tensor"}, infer_scalar_tensor);
  add_rules(table, {"aten::empty_strided"}, infer_empty_strided);
  add_rules(table, {"aten::empty_permuted"}, infer_empty_permuted);
  add_rules(table,
            {"aten::empty_like", "aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::rand_like", "aten::randn_like", "aten::randint_like",
             "aten::randint_like.low_dtype", "aten::randint_like.Tensor", "aten::clone", "aten::_to_copy"},
            infer_like);
  add_rules(table, {"aten::new_empty", "aten::new_zeros", "aten::new_ones", "aten::new_full"}, infer_new);
  add_rules(table, {"aten::new_empty_strided"}, infer_new_strided);
  add_rules(table, {"aten::arange", "aten::arange.start", "aten::arange.start_step"}, infer_arange);
  for (const char* op : {"linspace", "logspace"})
    for (const char* overload : {"", ".Tensor_Tensor", ".Tensor_Scalar", ".Scalar_Tensor"})
      table.emplace(fmt::format("aten::{}{}", op, overload), infer_linspace);
  add_rules(table, {"aten::eye", "aten::eye.m"}, infer_eye);
  add_rules(table, {"aten::tril_indices"}, triangle_indices(true));
  add_rules(table, {"aten::triu_indices"}, triangle_indices(false));
  add_rules(table, {"prims::convert_element_type"}, infer_convert);
  add_rules(table, {"prims::iota"}, infer_iota);
}

}  // namespace cxxinductor::model

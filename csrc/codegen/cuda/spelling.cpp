#include "codegen/cuda/spelling.h"

#include <cmath>

#include "codegen/spelling.h"
#include "support/error.h"

namespace cxxinductor::codegen {

std::string_view cuda_type(DType dtype) {
  const std::string_view type = info(dtype).c;
  if (type.empty()) throw_unsupported("kernels do not compute with dtype {}", to_string(dtype));
  return type;
}

namespace {

std::string real_literal(double value, bool wide) {
  const std::string zero = wide ? "0.0" : "0.0f";
  if (std::isnan(value)) return fmt::format("cxxi_nan({})", zero);
  if (std::isinf(value)) return fmt::format("{}cxxi_infinity({})", value < 0 ? "-" : "", zero);
  // The shortest decimal that reads back to the same bits.
  std::string text = wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return wide ? text : text + "f";
}

}  // namespace

std::string cuda_literal(const Scalar& value) {
  const DType dtype = value.dtype();
  if (dtype == DType::Bool) return value.truth() ? "true" : "false";
  if (is_float(dtype)) {
    const std::string text = real_literal(value.real(), dtype == DType::F64);
    if (compute_type(dtype) == dtype) return text;
    return fmt::format("cxxi_cast<{}>({})", cuda_type(dtype), text);
  }
  if (dtype == DType::U64) return fmt::format("{}ULL", static_cast<uint64_t>(value.integer()));
  if (dtype == DType::U32) return fmt::format("{}u", static_cast<uint32_t>(value.integer()));
  // The smallest i64 and i32 have no literals of their own.
  if (dtype == DType::I64) {
    return value.integer() > INT64_MIN ? fmt::format("{}LL", value.integer()) : fmt::format("({}LL - 1)", INT64_MIN + 1);
  }
  if (dtype == DType::I32) {
    return value.integer() > INT32_MIN ? fmt::format("{}", value.integer()) : fmt::format("({} - 1)", INT32_MIN + 1);
  }
  return fmt::format("static_cast<{}>({})", cuda_type(dtype), value.integer());
}

std::string cuda_apply(const ScalarOpInfo& op, DType dtype, const std::vector<std::string>& operands) {
  return applied_op(op, is_float(dtype) ? op.cuda_real : op.cuda_integer, dtype, cuda_type(dtype), operands);
}

}  // namespace cxxinductor::codegen

#include "frontend/planned_results.h"

#include "ir/device_types.h"
#include "ir/library_ops.h"
#include "ir/strides.h"

namespace cxxinductor::frontend {
namespace {

using model::PlannedForm;

// cuDNN's convolutions write any memory, and so does ATen's kernel for depthwise ones of two dimensions. Transposed
// convolutions, ATen's other kernels, and all on the CPU, have no such form (ATen/native/Convolution.cpp).
bool is_convolution_planned(const CallContext& context) {
  constexpr size_t rank_2d = 4, rank_3d = 5;
  const CallValueInfo& result = context.result();
  if (!context.eager().convolutions_write_given_memory || !is_float(result.dtype) || result.sizes.size() > rank_3d) return false;
  const LibraryOp& op = only_op(OpFamily::Convolution);
  const OpArgument &transposed_argument = *op.find(ArgRole::Transposed), &groups = *op.find(ArgRole::Groups);
  const Arg* transposed = context.find(static_cast<size_t>(transposed_argument.position), transposed_argument.name);
  const bool* is_transposed = transposed ? transposed->as<bool>() : nullptr;
  if (!is_transposed || *is_transposed) return false;
  return result.sizes.size() <= rank_2d || context.expr(static_cast<size_t>(groups.position), groups.name, 1).is_constant(1);
}

// A row per op whose form depends on its backend.
struct BackendRow {
  std::string_view callee;
  bool (*is_planned)(const CallContext&);
};
constexpr BackendRow by_backend[] = {{"aten::convolution", is_convolution_planned}};

}  // namespace

bool is_result_planned(const CallContext& context, const Schema& schema) {
  if (schema.planned_form == PlannedForm::None || context.result_count() != 1) return false;
  const CallValueInfo& result = context.result();
  if (result.kind != CallValueInfo::Kind::Tensor || is_opaque(result.dtype)) return false;
  if (schema.planned_form == PlannedForm::Structured) return context.is_contiguous(result.sizes, result.strides);
  for (const BackendRow& row : by_backend)
    if (context.call().callee == row.callee && context.call().overload.empty()) return row.is_planned(context);
  return false;
}

}  // namespace cxxinductor::frontend

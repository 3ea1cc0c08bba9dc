// Library calls of a call: operands, and what becomes of results.
#include <algorithm>

#include "runtime/call.h"
#include "support/error.h"

namespace cxxinductor::runtime {

// A window of the plan as the host sees it; `to` takes its geometry.
TensorView Call::operand_view(const OperandRecord& from, std::span<int64_t> to) const {
  TensorView view = window(from.geometry, to);
  view.data = element_address(from.buffer, values_[from.offset]);
  view.dtype = from.dtype;
  view.device = tables_.buffers[from.buffer].device;
  view.base = tensors_[from.buffer].owner ? &tensors_[from.buffer] : nullptr;
  view.whole = from.whole && view.base != nullptr;
  return view;
}

size_t Call::gather_operands(const ExternRecord& record) {
  size_t used = 0;
  for (size_t i = 0; i < record.operands.size(); ++i) {
    const OperandRecord& from = record.operands[i];
    Operand& to = operands_[i];
    to = Operand();
    if (!from.is_tensor) {
      to.integer = values_[from.integer];
      continue;
    }
    to.kind = Operand::Kind::Tensor;
    to.tensor = operand_view(from, dims_.subspan(used));
    used += 2 * from.geometry.rank;
  }
  if (!record.planned_out) return used;
  for (size_t i = 0; i < record.results.size(); ++i) {
    const auto buffer = static_cast<uint32_t>(record.results[i]);
    destinations_[i] = buffer_view(buffer, dims_.subspan(used));
    used += 2 * tables_.buffers[buffer].geometry.rank;
  }
  return used;
}

void Call::call_extern(const ExternRecord& record) {
  const size_t used = gather_operands(record);
  const std::span<const Operand> operands = operands_.first(record.operands.size());
  if (record.planned_out) {
    record.callee->call(host_, operands, destinations_.first(record.results.size()), {});
    return;
  }
  std::vector<TensorRef> results(record.results.size());
  record.callee->call(host_, operands, {}, results);
  if (record.moment > 0) define_by_results(record, results);
  for (size_t i = 0; i < results.size(); ++i) {
    if (record.results[i] < 0) continue;
    keep_result(record, i, static_cast<uint32_t>(record.results[i]), results[i], dims_.subspan(used));
  }
}

// Stores what an extern returned, in the layout that the plan declares: kernels were compiled for that one.
void Call::keep_result(const ExternRecord& record, size_t index, uint32_t buffer, TensorRef& result, std::span<int64_t> dims) {
  const BufferRecord& declared = tables_.buffers[buffer];
  const TensorView view = window(declared.geometry, dims);
  const bool elsewhere = result.device != declared.device && !record.result_on_any_device[index];
  // Of no elements, the callee's type is right: no kernel reads any, and recordings may err.
  const bool none = std::ranges::find(view.sizes, 0) != view.sizes.end();
  if (!result.owner || (result.dtype != declared.dtype && !none) || elsewhere || !std::ranges::equal(result.sizes(), view.sizes))
    reject_result(record, index, result, declared, view.sizes, is_data(declared.geometry));
  bool same = true;
  for (uint32_t d = 0; d < result.rank; ++d) same &= result.strides_data[d] == view.strides[d] || view.sizes[d] <= 1;
  if (declared.kind == plan::Buffer::Kind::ExternOwned && (same || none)) [[likely]] {
    addresses_[buffer] = result.data;
    tensors_[buffer] = std::move(result);
    return;
  }
  if (record.result_aliases[index]) reject_strides(record, index, result, view.strides);
  if (declared.kind == plan::Buffer::Kind::ExternOwned) {
    tensors_[buffer] = host_.empty_strided(declared.dtype, declared.device, view.sizes, view.strides);
    addresses_[buffer] = tensors_[buffer].data;
  }
  TensorView to = view;
  to.data = addresses_[buffer];
  to.dtype = declared.dtype;
  to.device = declared.device;
  to.base = tensors_[buffer].owner ? &tensors_[buffer] : nullptr;
  to.whole = to.base != nullptr;
  host_.copy_strided(to, {result.data, result.dtype, result.device, result.sizes(), result.strides(), &result, true});
}

}  // namespace cxxinductor::runtime

// Tensors without memory. Dispatcher calls on them arrive at the Recorder (recorder.h) instead of a kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <vector>

#include "model/call_graph.h"
#include "torch_bridge/record/size_node.h"

namespace cxxinductor::torch_bridge {

// The key whose fallback records. PyTorch made it for tensors without memory of an extension that is gone, and uses it
// for nothing; it lies below autograd and above the kernels of all devices. Should a version of PyTorch delete it, this
// is the one place that names it.
constexpr c10::DispatchKey recording_key = c10::DispatchKey::Fake;

class FakeTensor final : public c10::TensorImpl {
 public:
  // storage: shared by views of one tensor; reading its memory throws.
  FakeTensor(c10::Storage storage, const model::CallValueInfo& info, model::CallValue value, SharedSizes sizes);
  FakeTensor(const FakeTensor& other);  // the same value, without autograd's history

  model::CallValue value() const { return value_; }
  // Shows what the other tensor does, of the same memory: after an op in place that changes sizes.
  void become(const FakeTensor& other);

 protected:
  // Of symbolic sizes. A caller that asks for numbers gets those of the hints, which are right for these sizes alone.
  c10::IntArrayRef sizes_custom() const override;
  c10::IntArrayRef strides_custom() const override;
  int64_t numel_custom() const override;
  int64_t storage_offset_custom() const override;
  c10::SymBool sym_is_contiguous_custom(at::MemoryFormat format) const override;
  bool is_strides_like_custom(at::MemoryFormat format) const override;
  c10::SymBool sym_is_non_overlapping_and_dense_custom() const override;
  // What autograd saves of a result.
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version, bool allow_tensor_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version, bool allow_tensor_metadata_change) const override;
  const char* tensorimpl_type_name() const override { return "cxxinductor::FakeTensor"; }

 private:
  bool is_dense_in(const std::vector<size_t>& order) const;  // of dimensions, the innermost first; proven for all sizes
  c10::intrusive_ptr<FakeTensor> copy(bool allow_tensor_metadata_change) const;
  void set_symbolic_sizes();
  c10::IntArrayRef specialized(const std::vector<sym::Expr>& expressions, std::vector<int64_t>& numbers) const;

  model::CallValue value_;
  SharedSizes sizes_;
  std::vector<sym::Expr> sizes_expr_, strides_expr_;
  sym::Expr offset_expr_;
  mutable std::vector<int64_t> size_numbers_, stride_numbers_;
};

c10::Storage make_fake_storage(Device device);

// Null for other tensors.
FakeTensor* as_fake(const at::Tensor& tensor);

}  // namespace cxxinductor::torch_bridge

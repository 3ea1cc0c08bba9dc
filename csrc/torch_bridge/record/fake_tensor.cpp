#include "torch_bridge/record/fake_tensor.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/strides.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

c10::DispatchKeySet keys_of(const model::CallValueInfo& info) {
  c10::DispatchKeySet keys = dense_keys(to_torch(info.device).type());
  keys = keys.add(recording_key);
  if (info.conjugate) keys = keys.add(c10::DispatchKey::Conjugate);
  if (info.negative) keys = keys.add(c10::DispatchKey::Negative);
  return keys;
}

// Dimensions from the innermost to the outermost, for tensors in that format; none where the rank is another.
std::vector<size_t> order_of(at::MemoryFormat format, size_t rank) {
  if (format == at::MemoryFormat::Contiguous) {
    std::vector<size_t> order(rank);
    std::iota(order.rbegin(), order.rend(), 0);
    return order;
  }
  if (format == at::MemoryFormat::ChannelsLast && rank == 4) return {1, 3, 2, 0};
  if (format == at::MemoryFormat::ChannelsLast3d && rank == 5) return {1, 4, 3, 2, 0};
  return {};
}

}  // namespace

FakeTensor::FakeTensor(c10::Storage storage, const model::CallValueInfo& info, model::CallValue value, SharedSizes sizes)
    : TensorImpl(std::move(storage), keys_of(info), c10::scalarTypeToTypeMeta(to_torch(info.dtype))),
      value_(value),
      sizes_(std::move(sizes)),
      sizes_expr_(info.sizes),
      strides_expr_(info.strides),
      offset_expr_(info.storage_offset) {
  set_symbolic_sizes();
}

FakeTensor::FakeTensor(const FakeTensor& other)
    : TensorImpl(c10::Storage(other.storage_), other.key_set_, other.data_type_),
      value_(other.value_),
      sizes_(other.sizes_),
      sizes_expr_(other.sizes_expr_),
      strides_expr_(other.strides_expr_),
      offset_expr_(other.offset_expr_) {
  set_symbolic_sizes();
}

void FakeTensor::set_symbolic_sizes() {
  set_sizes_and_strides(c10::SymIntArrayRef(to_symints(sizes_expr_, sizes_)), c10::SymIntArrayRef(to_symints(strides_expr_, sizes_)),
                        to_symint(offset_expr_, sizes_));
}

c10::intrusive_ptr<FakeTensor> FakeTensor::copy(bool allow_tensor_metadata_change) const {
  auto made = c10::make_intrusive<FakeTensor>(*this);
  made->set_allow_tensor_metadata_change(allow_tensor_metadata_change);
  if (is_wrapped_number()) made->set_wrapped_number(true);
  return made;
}

c10::intrusive_ptr<c10::TensorImpl> FakeTensor::shallow_copy_and_detach(const c10::VariableVersion& version, bool allow_tensor_metadata_change) const {
  auto made = copy(allow_tensor_metadata_change);
  if (!made->is_inference()) made->set_version_counter(version);
  return made;
}

c10::intrusive_ptr<c10::TensorImpl> FakeTensor::shallow_copy_and_detach(c10::VariableVersion&& version, bool allow_tensor_metadata_change) const {
  auto made = copy(allow_tensor_metadata_change);
  if (!made->is_inference()) made->set_version_counter(std::move(version));
  return made;
}

void FakeTensor::become(const FakeTensor& other) {
  value_ = other.value_;
  sizes_expr_ = other.sizes_expr_;
  strides_expr_ = other.strides_expr_;
  offset_expr_ = other.offset_expr_;
  set_symbolic_sizes();
}

c10::IntArrayRef FakeTensor::specialized(const std::vector<sym::Expr>& expressions, std::vector<int64_t>& numbers) const {
  numbers.clear();
  for (sym::Expr e : expressions) numbers.push_back(sizes_->specialize(e));
  return numbers;
}

c10::IntArrayRef FakeTensor::sizes_custom() const { return specialized(sizes_expr_, size_numbers_); }
c10::IntArrayRef FakeTensor::strides_custom() const { return specialized(strides_expr_, stride_numbers_); }

int64_t FakeTensor::numel_custom() const {
  return std::accumulate(sizes_expr_.begin(), sizes_expr_.end(), int64_t{1}, [this](int64_t product, sym::Expr e) { return product * sizes_->specialize(e); });
}

int64_t FakeTensor::storage_offset_custom() const { return sizes_->specialize(offset_expr_); }

bool FakeTensor::is_dense_in(const std::vector<size_t>& order) const {
  const sym::Assumptions& known = sizes_->assumptions();
  sym::Expr expected = 1;
  for (size_t d : order) {
    if (sym::prove_equal(sizes_expr_[d], 1, known)) continue;
    if (!sym::prove_equal(strides_expr_[d], expected, known)) return false;
    expected = expected * sizes_expr_[d];
  }
  return true;
}

// What is not proven to be contiguous gets a copy, which is right for all sizes.
c10::SymBool FakeTensor::sym_is_contiguous_custom(at::MemoryFormat format) const {
  const std::vector<size_t> order = order_of(format, sizes_expr_.size());
  return order.size() == sizes_expr_.size() && is_dense_in(order);
}

bool FakeTensor::is_strides_like_custom(at::MemoryFormat format) const {
  return format != at::MemoryFormat::Contiguous && sym_is_contiguous_custom(format).guard_bool(__FILE__, __LINE__) &&
         !sym_is_contiguous_custom(at::MemoryFormat::Contiguous).guard_bool(__FILE__, __LINE__);
}

c10::SymBool FakeTensor::sym_is_non_overlapping_and_dense_custom() const {
  std::vector<size_t> order(sizes_expr_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](size_t a, size_t b) { return sizes_->hint(strides_expr_[a]) < sizes_->hint(strides_expr_[b]); });
  return is_dense_in(order);
}

c10::Storage make_fake_storage(Device device) {
  c10::Storage storage(
      c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), c10::SymInt(0), at::DataPtr(nullptr, to_torch(device)), nullptr, false));
  storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_("a tensor without memory has no elements");
  return storage;
}

FakeTensor* as_fake(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.key_set().has(recording_key)) return nullptr;
  return dynamic_cast<FakeTensor*>(tensor.unsafeGetTensorImpl());
}

}  // namespace cxxinductor::torch_bridge

// How ATen lays out new tensors in memory: memory formats, and strides that follow those of operands.
#pragma once

#include <span>
#include <vector>

#include "model/infer/infer.h"

namespace cxxinductor::model {

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };  // as torch numbers them

using Exprs = std::vector<sym::Expr>;

// A new tensor, of its own storage.
CallValueInfo new_tensor(DType dtype, Device device, Exprs sizes, Exprs strides);
CallValueInfo contiguous(DType dtype, Device device, Exprs sizes);
// Device and dtype of another tensor.
CallValueInfo contiguous_like(const CallValueInfo& like, Exprs sizes);
CallValueInfo in_format(DType dtype, Device device, Exprs sizes, MemoryFormat format);
CallValueInfo absent();                           // a result that was not asked for
CallValueInfo size_value(sym::Expr e);            // a SymInt
Exprs channels_last_strides(const Exprs& sizes);  // of four or five

// empty_like: Preserve has the strides of a dense tensor, and those of another one without its gaps.
CallValueInfo empty_like(const CallValueInfo& like, MemoryFormat format, SizeQuestions& questions);

bool is_contiguous(const CallValueInfo& info, SizeQuestions& questions);
bool is_channels_last_contiguous(const CallValueInfo& info, SizeQuestions& questions);
bool is_dense(const CallValueInfo& info, SizeQuestions& questions);  // neither gaps nor overlaps
MemoryFormat suggested_format(const CallValueInfo& info, SizeQuestions& questions);

// Dense strides in the order of the operands', the first of which that tells two dimensions apart decides; a tie is
// decided by sizes. Each operand: its strides in all dimensions of `sizes`, 0 where it is repeated.
Exprs strides_in_order_of(const Exprs& sizes, std::span<const Exprs> operands, SizeQuestions& questions);

// What TensorIterator allocates for a result of broadcast operands. has_numbers: some operands are numbers.
Exprs pointwise_strides(const Exprs& sizes, std::span<const CallValueInfo* const> operands, bool has_numbers, SizeQuestions& questions);

}  // namespace cxxinductor::model

// Enumerations of the archive's schema (they differ from c10's), and tensor metadata.
#pragma once

#include "ir/call_args.h"
#include "ir/dtype.h"
#include "model/call_graph.h"
#include "readers/pt2/json.h"
#include "readers/pt2/symbols.h"

namespace cxxinductor::readers {

// Unsupported: a dtype, device or layout that no tensor of ours has.
DType read_dtype(const Field& scalar_type);
Device read_device(const Field& device);
LayoutArg read_layout(const Field& layout);
MemoryFormatArg read_memory_format(const Field& memory_format);
// A strided tensor with these sizes, strides and offset; without a name.
model::CallValueInfo read_tensor(const Field& meta, Symbols& symbols);

}  // namespace cxxinductor::readers

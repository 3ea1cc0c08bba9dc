// Scalar ops and reductions that a user adds while the process runs (cxxinductor/extend.h): rows like those of ops.def and reductions.def. They import,
// fuse and print like the others; in texts mylib::swish is mylib.swish. A row stays for the life of the process, and info() of it is never moved.
#pragma once

#include <cxxinductor/extend.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/reduction.h"
#include "ir/scalar_op.h"

namespace cxxinductor {

// UserError where a text is not valid, or the overload is registered with another definition. Registering a row again returns the first.
ScalarOp add_scalar_op(const RegisteredOp& row);
Reduction add_reduction(const RegisteredReduction& row);

// Of an op's overload, a default one without its suffix.
std::optional<ScalarOp> find_registered_scalar_op(std::string_view overload);
std::optional<Reduction> find_registered_reduction(std::string_view overload);

// All that a row states, for keys of caches; empty for the rows of ops.def and reductions.def.
std::string_view registered_text(ScalarOp op);
std::string_view registered_text(Reduction reduction);
// Of every registered row.
std::vector<std::string_view> registered_texts();

// Of registered rows alone: whether the results' sizes, dtypes and strides follow from the operands (RegisteredOp::standard_result).
bool has_standard_result(ScalarOp op);
bool has_standard_result(Reduction reduction);

// What info(), form(), find_scalar_op() and find_reduction() read; `index` counts registered rows alone.
const ScalarOpInfo& registered_scalar_op(size_t index);
const ReductionInfo& registered_reduction(size_t index);
const ReductionForm& registered_reduction_form(size_t index);
std::optional<size_t> find_registered_scalar_op_named(std::string_view name);
std::optional<size_t> find_registered_reduction_named(std::string_view name);

}  // namespace cxxinductor

// Scalar operations: one row each in ops.def, from which everything about an op follows.
//
// An op takes operands of one dtype T (unless its row says otherwise), computes in compute_type(T) and rounds once, at
// its result. In the loops IR, ops are applied to compute types only and casts are explicit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/scalar.h"

namespace cxxinductor {

class ScalarStatements;

// Values beyond the last one are registered ops (registered_ops.h).
enum class ScalarOp : uint16_t {
#define OP(name, ...) name,
#include "ir/ops.def"
#undef OP
};

// How operand and result dtypes relate.
enum class TypeRule : uint8_t {
  Same,       // (T, ...) -> T
  Predicate,  // (T, ...) -> bool
  Select,     // (bool, T, T) -> T
  Cast,       // (any) -> any
  Identity,   // (T) -> T, T may be opaque
};

// Dtypes of T that an op accepts.
enum class TypeSet : uint8_t { Floating, Integral, IntegralOrBool, Numeric, Any };

struct OpTraits {
  bool commutative = false;
  bool transcendental = false;  // costs tens of instructions
  bool random = false;          // random words, from the state of a generator in the first operands
};

struct ScalarOpInfo {
  std::string_view name;  // text form, lower_snake_case
  int arity = 1;          // 1 to 5
  TypeRule rule = TypeRule::Same;
  TypeSet types = TypeSet::Any;
  OpTraits traits{};
  // Reference meaning on the compute type. For Float T: operands as doubles (exact values of the compute type), result
  // rounded by the caller to the compute type; f32 rows of eval_real may call float functions. Integers: wrapped by the
  // caller to T's width.
  double (*eval_real)(const double* operands, bool single_precision) = nullptr;
  int64_t (*eval_integer)(const int64_t* operands, DType dtype) = nullptr;
  // Spelling with placeholders {0} {1} ... for operands, {T} for the C type of the compute type, {f} for the suffix "f" in
  // single precision ("expf"/"exp"). Names in spellings that are not C operators are defined in kernels_templates/.
  // Empty: derived from the name as cxxi_<name>({0}, ...). The integer spelling serves every Integral dtype and bool.
  std::string_view cuda_real{};
  std::string_view cuda_integer{};
  std::string_view cpu_real{};
  std::string_view cpu_integer{};
  // On the CPU: the Sleef function base name that the vector form calls ("expf8_u10" is derived from "exp_u10"), empty
  // when the spelling works on vectors as it stands.
  std::string_view sleef{};
  // Of rows of registered_ops.h alone: a target whose spelling is empty does not compute the op, spellings call what the sources define, and
  // `definition` stands for the evaluators, where there is one.
  bool registered = false;
  std::string_view cuda_source{}, cpu_source{};
  const ScalarStatements* definition = nullptr;
  std::string_view aten{};  // "add.Tensor sub.Tensor": overloads whose plain meaning is this op; the front-end's table has the rest
  std::string_view doc{};
};

const ScalarOpInfo& info(ScalarOp op);
std::span<const ScalarOpInfo> scalar_ops();  // of ops.def, in the order of the enum
std::optional<ScalarOp> find_scalar_op(std::string_view name);
bool accepts(TypeSet set, DType dtype);
// Result dtype of op on operands of T; `cast_to` is read for TypeRule::Cast alone.
DType result_dtype(ScalarOp op, DType operand, DType cast_to);
// Whether evaluate gives what kernels compute: of ops of ops.def, and of registered ones with a definition, but for casts that depend on the device.
bool can_evaluate(ScalarOp op, std::span<const Scalar> operands, DType cast_to = DType::F32);
// Applies the row's evaluator to operands already in the compute type (bool for a Select condition).
Scalar evaluate(ScalarOp op, std::span<const Scalar> operands, DType cast_to = DType::F32);

}  // namespace cxxinductor

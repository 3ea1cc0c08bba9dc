#include "torch_bridge/interp_tensors.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>

#include <cstring>

#include "interp/memory.h"
#include "support/error.h"
#include "torch_bridge/call_op.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

// Contiguous memory of these sizes.
interp::MemRef dense_memory(DType dtype, const std::vector<int64_t>& sizes) {
  interp::MemRef memref{nullptr, dtype, 0, sizes, std::vector<int64_t>(sizes.size(), 1)};
  for (size_t d = sizes.size(); d-- > 1;) memref.strides[d - 1] = memref.strides[d] * std::max<int64_t>(sizes[d], 1);
  interp::allocate(memref, "tensor");
  return memref;
}

bool is_written(const c10::Argument& argument) { return argument.alias_info() && argument.alias_info()->isWrite(); }

// A symbol among the operands is a tensor of rank 0; the schema says where a number is meant.
bool takes_number(const c10::FunctionSchema& schema, const std::vector<Arg>& args, uint32_t operand) {
  for (size_t i = 0; i < args.size() && i < schema.arguments().size(); ++i) {
    const auto* ref = args[i].as<OperandRef>();
    if (ref && ref->operand == operand) return schema.arguments()[i].real_type()->kind() != c10::TypeKind::TensorType;
  }
  return false;
}

void append_results(const c10::IValue& value, std::vector<interp::Tensor>& results) {
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) results.push_back(to_interp(tensor));
  else
    results.push_back(to_interp(value));
}

std::vector<interp::Tensor> run_call(const std::string& callee, const std::string& overload, const std::vector<Arg>& args,
                                     const std::vector<interp::Tensor>& operands) {
  const auto op = c10::Dispatcher::singleton().findSchema({callee, overload == "default" ? std::string() : overload});
  if (!op) throw_unsupported("{}.{} is not known to torch's dispatcher", callee, overload);
  std::vector<at::Tensor> tensors;
  for (const interp::Tensor& operand : operands) tensors.push_back(from_interp(operand));
  ArgResolver resolver;
  resolver.operand = [&](uint32_t operand) -> c10::IValue {
    if (takes_number(op->schema(), args, operand)) return tensors.at(operand).item<int64_t>();
    return tensors.at(operand);
  };
  resolver.symbol = [](sym::Expr e) { return c10::SymInt(e.constant()); };
  torch::jit::Stack stack = build_stack(op->schema(), args, {}, resolver);
  const torch::jit::Stack given = stack;
  call_op(*op, stack);
  std::vector<interp::Tensor> results;
  for (const c10::IValue& value : stack) append_results(value, results);
  for (size_t i = 0; i < given.size(); ++i)
    if (is_written(op->schema().arguments()[i])) append_results(given[i], results);
  return results;
}

}  // namespace

interp::Tensor to_interp(const c10::IValue& value) {
  if (value.isNone()) return {DType::I64, {}, {Scalar::from_integer(DType::I64, 0)}};
  if (value.isInt()) return {DType::I64, {}, {Scalar::from_integer(DType::I64, value.toInt())}};
  if (!value.isTensor()) throw_unsupported("a value of type {} cannot be interpreted", value.tagKind());
  const at::Tensor tensor = value.toTensor().detach().cpu().resolve_conj().resolve_neg().contiguous();
  interp::MemRef memref = dense_memory(from_torch(tensor.scalar_type()), tensor.sizes().vec());
  if (is_opaque(memref.dtype))
    throw_unsupported("a tensor of {} cannot be interpreted; the options check=interp and check=eager compare the kernels of such a graph",
                      to_string(memref.dtype));
  if (tensor.numel() > 0) std::memcpy(memref.storage->bytes.data(), tensor.const_data_ptr(), tensor.nbytes());
  return interp::read_tensor(memref);
}

at::Tensor from_interp(const interp::Tensor& tensor) {
  interp::MemRef memref = dense_memory(tensor.dtype, tensor.sizes);
  interp::write_tensor(memref, tensor);
  at::Tensor result = at::empty(tensor.sizes, to_torch(tensor.dtype));
  if (result.numel() > 0) std::memcpy(result.mutable_data_ptr(), memref.storage->bytes.data(), result.nbytes());
  return result;
}

interp::ExternHandler aten_externs(uint64_t seed) {
  at::manual_seed(seed);
  return [](const std::string& callee, const std::string& overload, const std::vector<Arg>& args, const std::vector<interp::Tensor>& operands) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    try {
      return run_call(callee, overload, args, operands);
    } catch (const c10::Error& error) {
      throw_unsupported("{}.{} on the CPU: {}", callee, overload, error.what_without_backtrace());
    }
  };
}

}  // namespace cxxinductor::torch_bridge

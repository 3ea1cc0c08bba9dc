// Every row of ops.def, on every dtype that it accepts, over edge values: a target's compiled kernels against the row's
// evaluator. Shared by the sweeps of all targets.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/scalar_op.h"
#include "runtime/element.h"
#include "unit/catch.h"

namespace cxxinductor::tests {

inline constexpr DType compute_dtypes[] = {DType::F64, DType::F32, DType::I8,  DType::I16, DType::I32, DType::I64,
                                           DType::U8,  DType::U16, DType::U32, DType::U64, DType::Bool};
inline constexpr DType all_dtypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2, DType::I8,  DType::I16,
                                       DType::I32, DType::I64, DType::U8,  DType::U16,  DType::U32,      DType::U64,    DType::Bool};

inline std::vector<Scalar> edge_values(DType dtype) {
  std::vector<Scalar> values;
  if (is_float(dtype)) {
    const double least = dtype == DType::F64 ? std::numeric_limits<double>::denorm_min() : std::numeric_limits<float>::denorm_min();
    const double most = dtype == DType::F64 ? 1.7e308 : 3.3e38;
    for (double v : {0.0,  1.0,  0.5,   2.0,     3.0,     0.3,   6.0,
                     1e-3, 20.5, 88.0,  1000.25, 65504.0, 448.0, 465.0,
                     1e-8, 1e9,  least, most,    2.5,     1.5,   std::numeric_limits<double>::infinity()}) {
      values.push_back(Scalar::from_real(dtype, v));
      values.push_back(Scalar::from_real(dtype, -v));
    }
    values.push_back(Scalar::from_real(dtype, std::numeric_limits<double>::quiet_NaN()));
    return values;
  }
  if (dtype == DType::Bool) return {Scalar::from_integer(dtype, 0), Scalar::from_integer(dtype, 1)};
  std::set<int64_t> numbers;
  for (int64_t v : {0, 1, 2, 3, 5, 7, 8, 31, 63, 64, 100, 127, 128, 255, 1000}) {
    numbers.insert(Scalar::from_integer(dtype, v).integer());
    numbers.insert(Scalar::from_integer(dtype, -v).integer());
  }
  numbers.insert(Scalar::from_integer(dtype, std::numeric_limits<int64_t>::max()).integer());
  const int bits = 8 * byte_size(dtype);
  numbers.insert(Scalar::from_integer(dtype, static_cast<int64_t>(1ULL << (bits - 1))).integer());
  numbers.insert(Scalar::from_integer(dtype, static_cast<int64_t>((1ULL << (bits - 1)) - 1)).integer());
  for (int64_t v : numbers) values.push_back(Scalar::from_integer(dtype, v));
  return values;
}

// All tuples of `arity` values; fewer values for more operands.
inline std::vector<std::vector<Scalar>> operand_tuples(const ScalarOpInfo& op, DType dtype) {
  std::vector<Scalar> values = edge_values(dtype);
  const size_t most = op.arity <= 1 ? 1000 : op.arity == 2 ? 43 : op.arity == 3 ? 15 : 8;
  const size_t stride = (values.size() + most - 1) / most;
  std::vector<Scalar> fewer;
  for (size_t i = 0; i < values.size(); i += stride) fewer.push_back(values[i]);
  if (is_float(dtype) && stride > 1) fewer.push_back(values.back());
  std::vector<std::vector<Scalar>> tuples{{}};
  for (int operand = 0; operand < op.arity; ++operand) {
    const bool condition = op.rule == TypeRule::Select && operand == 0;
    std::vector<std::vector<Scalar>> longer;
    for (const auto& tuple : tuples) {
      for (const Scalar& v : condition ? edge_values(DType::Bool) : fewer) {
        longer.push_back(tuple);
        longer.back().push_back(v);
      }
    }
    tuples = std::move(longer);
  }
  return tuples;
}

// Loads of the operands, the op, a store; one variable of extent n.
inline plan::Kernel one_op_kernel(const std::string& name, const std::vector<DType>& operands, DType result, ScalarOp op, int width) {
  plan::Kernel kernel;
  kernel.name = name;
  kernel.region.name = name;
  kernel.symbols = {"n"};
  loops::Program program;
  loops::RegionBuilder builder(kernel.region);
  const sym::Expr n = sym::Expr::symbol("n"), i = sym::Expr::symbol("i0");
  const loops::VarId var = builder.var("i0", n);
  std::vector<loops::StmtId> loads;
  const auto buffer = [&](DType dtype) {
    loops::Buffer b;
    b.name = "b" + std::to_string(program.buffers.size());
    b.dtype = dtype;
    b.sizes = {n};
    b.strides = {1};
    kernel.params.push_back({dtype, true, true});
    return program.buffers.push_back(b);
  };
  for (DType dtype : operands) loads.push_back(builder.load(program, buffer(dtype), {i}));
  const loops::StmtId value = builder.apply(op, loads, result);
  builder.store(program, buffer(result), {i}, value);
  const size_t count = kernel.region.body.size();
  kernel.offsets = IdVector<plan::StmtId, sym::Expr>(count, i);
  kernel.access = IdVector<plan::StmtId, plan::AccessKind>(count, plan::AccessKind::Vector);
  kernel.memory_spaces = IdVector<plan::StmtId, plan::MemorySpace>(count, plan::MemorySpace::Local);
  plan::Segment segment;
  for (size_t s = 0; s < count; ++s) segment.stmts.emplace_back(s);
  kernel.segments = {segment};
  kernel.mapping.space = {var};
  kernel.mapping.vector_width = width;
  kernel.mapping.shape = plan::CpuPointwise{.chunk = 1024};
  return kernel;
}

inline double ulps_between(DType dtype, double a, double b) {
  if (a == b) return 0;
  const int mantissa = dtype == DType::F64 ? 53 : 24;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(std::max(std::fabs(a), std::fabs(b))) + 1 - mantissa, dtype == DType::F64 ? -1074 : -149));
  return std::fabs(a - b) / unit;
}

// Units in the last place that an op may differ by: 0 where each step is exact or correctly rounded.
inline double tolerance(ScalarOp op) {
  if (info(op).traits.transcendental) return 8;
  switch (op) {
    case ScalarOp::Rsqrt:
    case ScalarOp::Addcmul:  // each target multiplies in the order of its kernels in eager
    case ScalarOp::Addcdiv:
    case ScalarOp::Hardsigmoid:
    case ScalarOp::Hardswish:
    case ScalarOp::HardsigmoidBackward:
    case ScalarOp::HardswishBackward:
    case ScalarOp::Remainder:
      return 2;
    default:
      return 0;
  }
}

inline bool agrees(ScalarOp op, const std::vector<Scalar>& operands, const Scalar& expected, const Scalar& found) {
  if (expected == found) return true;
  if (!is_float(expected.dtype())) return false;
  const double e = expected.real(), f = found.real();
  if (std::isnan(e) || std::isnan(f)) return std::isnan(e) && std::isnan(f);
  if (ulps_between(expected.dtype(), e, f) <= tolerance(op)) return true;
  if (tolerance(op) == 0)
    return e == f && (op == ScalarOp::Maximum || op == ScalarOp::Minimum || op == ScalarOp::Fmax || op == ScalarOp::Fmin || op == ScalarOp::Clamp ||
                      op == ScalarOp::ClampMin || op == ScalarOp::ClampMax || op == ScalarOp::Sign);
  // Sums inside a composed function may cancel: the error is relative to the operands.
  double largest = 0;
  for (const Scalar& s : operands) largest = std::max(largest, std::fabs(s.as_real()));
  const double epsilon = expected.dtype() == DType::F64 ? 0x1p-52 : 0x1p-23;
  return std::isfinite(largest) && std::fabs(e - f) <= 8 * epsilon * largest;
}

// Compiled kernels as the sweeps call them: the kernel's number, its buffers, the count of elements.
using RunKernel = std::function<void(size_t kernel, const std::vector<void*>& buffers, int64_t count)>;

// Every op that accepts the dtype. `compile` gets one kernel an op.
inline void sweep_ops(DType dtype, int width, const std::function<RunKernel(const std::vector<const plan::Kernel*>&)>& compile) {
  std::vector<plan::Kernel> kernels;
  std::vector<ScalarOp> ops;
  for (size_t i = 0; i < scalar_ops().size(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    if (info(op).rule == TypeRule::Cast || !accepts(info(op).types, dtype)) continue;
    std::vector<DType> operands(static_cast<size_t>(info(op).arity), dtype);
    if (info(op).rule == TypeRule::Select) operands[0] = DType::Bool;
    kernels.push_back(one_op_kernel(fmt::format("k_{}_{}", info(op).name, to_string(dtype)), operands, result_dtype(op, dtype, dtype), op, width));
    ops.push_back(op);
  }
  std::vector<const plan::Kernel*> pointers;
  for (const plan::Kernel& kernel : kernels) pointers.push_back(&kernel);
  const RunKernel run = compile(pointers);
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::vector<std::vector<Scalar>> tuples = operand_tuples(info(ops[k]), dtype);
    const plan::Kernel& kernel = kernels[k];
    std::vector<std::vector<std::byte>> memory;
    std::vector<void*> buffers;
    for (const plan::Param& param : kernel.params) {
      memory.emplace_back(tuples.size() * static_cast<size_t>(byte_size(param.dtype)) + 64);
      buffers.push_back(memory.back().data());
    }
    for (size_t t = 0; t < tuples.size(); ++t) {
      for (size_t o = 0; o < tuples[t].size(); ++o) {
        runtime::write_element(tuples[t][o], memory[o].data() + t * static_cast<size_t>(byte_size(kernel.params[o].dtype)));
      }
    }
    const auto count = static_cast<int64_t>(tuples.size());
    run(k, buffers, count);
    const DType result = kernel.params.back().dtype;
    int wrong = 0;
    for (size_t t = 0; t < tuples.size() && wrong < 3; ++t) {
      const Scalar expected = evaluate(ops[k], tuples[t], result);
      const Scalar found = runtime::read_element(result, memory.back().data() + t * static_cast<size_t>(byte_size(result)));
      if (agrees(ops[k], tuples[t], expected, found)) continue;
      std::string operands;
      for (const Scalar& s : tuples[t]) operands += to_string(s) + " ";
      INFO(info(ops[k]).name << " on " << to_string(dtype) << ": " << operands << "at " << t << " of " << tuples.size());
      INFO("expected " << to_string(expected) << ", found " << to_string(found));
      CHECK(false);
      ++wrong;
    }
  }
  SUCCEED();
}

// Every cast between dtypes; every value of the narrow ones.
inline void sweep_casts(const std::function<RunKernel(const std::vector<const plan::Kernel*>&)>& compile) {
  for (DType from : all_dtypes) {
    std::vector<plan::Kernel> kernels;
    for (DType to : all_dtypes) {
      kernels.push_back(one_op_kernel(fmt::format("k_{}_to_{}", to_string(from), to_string(to)), {from}, to, ScalarOp::Cast, 16));
    }
    std::vector<const plan::Kernel*> pointers;
    for (const plan::Kernel& kernel : kernels) pointers.push_back(&kernel);
    const RunKernel run = compile(pointers);
    std::vector<Scalar> values = edge_values(from);
    // Every value of the narrow types.
    if (is_float(from) && byte_size(from) <= 2) {
      values.clear();
      for (uint32_t bits = 0; bits < (1u << (8 * byte_size(from))); ++bits) values.push_back(runtime::read_element(from, &bits));
    }
    const size_t size = static_cast<size_t>(byte_size(from));
    std::vector<std::byte> input(values.size() * size + 8), output(values.size() * 8);
    for (size_t i = 0; i < values.size(); ++i) runtime::write_element(values[i], input.data() + i * size);
    const auto count = static_cast<int64_t>(values.size());
    for (size_t k = 0; k < kernels.size(); ++k) {
      const DType to = all_dtypes[k];
      run(k, {input.data(), output.data()}, count);
      int wrong = 0;
      for (size_t i = 0; i < values.size() && wrong < 3; ++i) {
        // A float that does not fit an integer type has no defined conversion.
        if (is_float(from) && is_integer(to)) {
          const bool is_signed = info(to).dtype_class == DTypeClass::Signed;
          const double limit = std::ldexp(1.0, 8 * byte_size(to) - (is_signed ? 1 : 0));
          const double low = is_signed ? -limit : -0x1p31;  // negative numbers wrap
          if (!(values[i].real() > low - 1 && values[i].real() < limit)) continue;
        }
        const Scalar expected = cast(values[i], to);
        const Scalar found = runtime::read_element(to, output.data() + i * static_cast<size_t>(byte_size(to)));
        if (expected == found || (is_float(to) && std::isnan(expected.real()) && std::isnan(found.real()))) continue;
        INFO(to_string(from) << " to " << to_string(to) << ": " << to_string(values[i]));
        INFO("expected " << to_string(expected) << ", found " << to_string(found));
        CHECK(false);
        ++wrong;
      }
    }
  }
  SUCCEED();
}

}  // namespace cxxinductor::tests

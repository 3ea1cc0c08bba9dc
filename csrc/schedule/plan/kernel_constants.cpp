#include "schedule/plan/kernel_constants.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/region/flat_region.h"
#include "kernels/region/region_edit.h"

namespace cxxinductor::schedule {
namespace {

using kernels::BodyCopier;
using kernels::offset_of;
using loops::Stmt;
using loops::StmtId;

constexpr double smallest = 0x1p-64, largest = 0x1p64;  // so that neither the integer nor its scale is near a limit of f32
constexpr int digits_of_float = 24, digits_of_double = 53;

const loops::Constant* argument_constant(const Stmt& stmt) {
  const auto* constant = stmt.as<loops::Constant>();
  if (!constant || stmt.dtype != DType::F32) return nullptr;
  const double magnitude = std::fabs(constant->value.as_real());
  return magnitude >= smallest && magnitude <= largest ? constant : nullptr;
}

// The exponent of the last binary digit that is not 0.
int last_digit(double value) {
  int exponent = 0;
  auto digits = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), digits_of_float));
  exponent -= digits_of_float;
  for (; digits % 2 == 0; digits /= 2) ++exponent;
  return exponent;
}

}  // namespace

std::vector<double> constants_of(const plan::Kernel& kernel) {
  std::vector<double> found;
  for (const Stmt& stmt : kernel.region.body)
    if (const loops::Constant* constant = argument_constant(stmt)) found.push_back(constant->value.as_real());
  return found;
}

plan::Kernel without_constants(plan::Kernel kernel) {
  for (Stmt& stmt : kernel.region.body)
    if (argument_constant(stmt)) stmt.as<loops::Constant>()->value = Scalar::from_real(stmt.dtype, 1);
  return kernel;
}

std::optional<ScaledIntegers> scaled_integers(const std::vector<double>& values) {
  ScaledIntegers scaled{last_digit(values.front()), {}};
  for (double value : values) scaled.exponent = std::min(scaled.exponent, last_digit(value));
  for (double value : values) {
    const double integer = std::ldexp(value, -scaled.exponent);
    if (std::fabs(integer) >= std::ldexp(1, digits_of_double)) return std::nullopt;
    scaled.integers.push_back(static_cast<int64_t>(integer));
  }
  return scaled;
}

void replace_constants(plan::Kernel& kernel, const std::vector<std::optional<ConstantArgument>>& arguments) {
  BodyCopier copier(kernel.region);
  IdVector<StmtId, std::vector<StmtId>> now(kernel.region.body.size());  // the statements that stand for an old one
  size_t number = 0;
  for (size_t s = 0; s < kernel.region.body.size(); ++s) {
    const StmtId id(s);
    const Stmt& stmt = kernel.region.body[id];
    const std::optional<ConstantArgument>* argument = argument_constant(stmt) ? &arguments.at(number++) : nullptr;
    if (!argument || !*argument) {
      now[id] = {copier.copy(id)};
      continue;
    }
    const auto append = [&](loops::StmtKind kind, DType dtype) {
      now[id].push_back(copier.append({std::move(kind), dtype, {}, stmt.origin}));
      return now[id].back();
    };
    const StmtId integer = append(loops::Index{(*argument)->integer}, DType::I64);
    const StmtId real = append(loops::Apply{ScalarOp::Cast, {integer}}, DType::F32);
    const StmtId scale = append(loops::Constant{Scalar::from_real(DType::F32, std::ldexp(1, (*argument)->exponent))}, DType::F32);
    copier.replace(id, append(loops::Apply{ScalarOp::Mul, {real, scale}}, DType::F32));
  }
  const size_t count = copier.body().size();
  IdVector<StmtId, sym::Expr> offsets(count);
  IdVector<StmtId, plan::AccessKind> access(count, plan::AccessKind::Broadcast);
  IdVector<StmtId, plan::MemorySpace> memory_spaces(count, plan::MemorySpace::Local);
  for (size_t s = 0; s < now.size(); ++s) {
    const StmtId last = now[StmtId(s)].back();
    const Stmt& stmt = copier.body()[last];
    if (stmt.as<loops::Load>() || stmt.as<loops::Store>()) offsets[last] = offset_of(stmt);
    access[last] = kernel.access[StmtId(s)];
    memory_spaces[last] = kernel.memory_spaces[StmtId(s)];
  }
  for (plan::Segment& segment : kernel.segments) {
    std::vector<StmtId> stmts;
    for (StmtId id : segment.stmts) stmts.insert(stmts.end(), now[id].begin(), now[id].end());
    segment.stmts = std::move(stmts);
  }
  for (StmtId& id : kernel.in_blocks) id = now[id].back();
  kernel.region.body = copier.body();
  kernel.offsets = std::move(offsets);
  kernel.access = std::move(access);
  kernel.memory_spaces = std::move(memory_spaces);
}

}  // namespace cxxinductor::schedule

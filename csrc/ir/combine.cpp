#include "ir/combine.h"

#include <array>
#include <utility>

#include "support/error.h"

namespace cxxinductor {
namespace {

constexpr std::array combine_keywords = {std::pair{std::string_view("overwrite"), Combine::Overwrite}, std::pair{std::string_view("add"), Combine::Add},
                                         std::pair{std::string_view("mul"), Combine::Mul}, std::pair{std::string_view("max"), Combine::Max},
                                         std::pair{std::string_view("min"), Combine::Min}};

}  // namespace

std::string_view name_of(Combine combine) {
  for (const auto& [word, value] : combine_keywords)
    if (value == combine) return word;
  throw_internal("no such way to combine");
}

std::optional<Combine> find_combine(std::string_view name) {
  for (const auto& [word, value] : combine_keywords)
    if (word == name) return value;
  return std::nullopt;
}

std::optional<ScalarOp> op_of(Combine combine) {
  switch (combine) {
    case Combine::Overwrite:
      break;
    case Combine::Add:
      return ScalarOp::Add;
    case Combine::Mul:
      return ScalarOp::Mul;
    case Combine::Max:
      return ScalarOp::Maximum;
    case Combine::Min:
      return ScalarOp::Minimum;
  }
  return std::nullopt;
}

bool counts_repeats(Combine combine) { return combine == Combine::Add || combine == Combine::Mul; }

bool accepts(Combine combine, DType dtype) {
  const auto op = op_of(combine);
  if (is_opaque(dtype) || (op && dtype == DType::Bool)) return false;
  return !op || accepts(info(*op).types, compute_type(dtype));
}

Scalar combined(Combine combine, const Scalar& old, const Scalar& value) {
  const auto op = op_of(combine);
  if (!op) return value;
  const DType compute = compute_type(old.dtype());
  const Scalar operands[] = {cast(old, compute), cast(value, compute)};
  return cast(evaluate(*op, operands), old.dtype());
}

}  // namespace cxxinductor

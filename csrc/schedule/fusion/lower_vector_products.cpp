#include "schedule/fusion/lower_vector_products.h"

#include <algorithm>

#include "schedule/fusion/matmul_region.h"

namespace cxxinductor::schedule {
namespace {

using loops::View;

constexpr int64_t vector_bytes = 16;  // of one load

// Whether each row lies in one piece, as whole vectors of loads. along: the dimension of its elements.
bool has_rows(const loops::Program& program, const View& view, size_t along, size_t across) {
  const auto in_vectors = [&](const sym::Expr& elements) {
    return sym::known_divisor(elements, program.assumptions) * byte_size(view.dtype) % vector_bytes == 0;
  };
  return view.strides[along].is_constant(1) && in_vectors(view.sizes[along]) && (view.sizes[across].is_constant(1) || in_vectors(view.strides[across]));
}

bool is_vector_product(const loops::Program& program, const MatmulCall& call) {
  const size_t rank = call.left->sizes.size(), rows = rank - 2, columns = rank - 1;
  return (call.left->sizes[rows].is_constant(1) || call.right->sizes[columns].is_constant(1)) && has_rows(program, *call.left, columns, rows) &&
         has_rows(program, *call.right, rows, columns);
}

}  // namespace

bool lower_vector_products(Dependencies& dependencies, const Targets& targets, FusionLimit& limit) {
  const loops::Program& program = dependencies.program();
  bool lowered = false;
  for (const StepId step : dependencies.order()) {
    const loops::ExternCall* call = dependencies.call(step);
    if (!call) continue;
    const auto product = matmul_call(program, *call, targets);
    if (!product || !is_vector_product(program, *product)) continue;
    auto region = write_matmul_region(program, *product, call->origin);
    if (!region || !limit.accept("makes a region of", step)) continue;
    dependencies.replace(step, std::move(*region));
    lowered = true;
  }
  return lowered;
}

}  // namespace cxxinductor::schedule

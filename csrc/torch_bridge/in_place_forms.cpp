#include "torch_bridge/in_place_forms.h"

#include "torch_bridge/convolve_in_place.h"
#include "torch_bridge/split_product.h"

namespace cxxinductor::torch_bridge {
namespace {

// mm.out(self, mat2, out)
bool multiply_in_parts(const torch::jit::Stack& arguments) {
  const at::Tensor &left = arguments[0].toTensor(), &right = arguments[1].toTensor(), &result = arguments[2].toTensor();
  if (!splits_product(result, left, right)) return false;
  split_product(result, left, right);
  return true;
}

struct Row {
  std::string_view callee;
  InPlaceForm form;
};
constexpr Row rows[] = {{"aten::mm", multiply_in_parts}, {"aten::convolution", convolve_in_place}};

}  // namespace

InPlaceForm find_in_place_form(std::string_view callee) {
  for (const Row& row : rows)
    if (row.callee == callee) return row.form;
  return nullptr;
}

}  // namespace cxxinductor::torch_bridge

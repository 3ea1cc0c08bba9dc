#include "torch_bridge/device/autocast.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

namespace cxxinductor::torch_bridge {

// The lists and macros are PyTorch's; `m` is a name that they need.
void add_autocast(torch::Library& m) {
  using namespace at;            // NOLINT: the macros name members of both
  using namespace at::autocast;  // NOLINT
#define CXXI_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define CXXI_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define CXXI_FP32_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define CXXI_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(CXXI_LOWER_PRECISION)
  AT_FORALL_FP32(CXXI_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(CXXI_FP32_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(CXXI_PROMOTE)
#undef CXXI_LOWER_PRECISION
#undef CXXI_FP32
#undef CXXI_FP32_DTYPE
#undef CXXI_PROMOTE
}

}  // namespace cxxinductor::torch_bridge

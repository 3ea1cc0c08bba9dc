#include "torch_bridge/nvtx.h"

#include <nvtx3/nvToolsExt.h>

namespace cxxinductor::torch_bridge {

NvtxRange::NvtxRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
NvtxRange::~NvtxRange() { nvtxRangePop(); }

}  // namespace cxxinductor::torch_bridge

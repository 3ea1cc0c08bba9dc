// Compiled functions whose results carry gradients: two graphs, and between them a node of autograd.
#pragma once

#include <string>
#include <vector>

#include "support/options.h"
#include "torch_bridge/record/specializations.h"

namespace cxxinductor::torch_bridge {

// requires_gradient: of each argument. For calls with grad mode on; where no result requires gradients, the form is that
// of inference_tracer. Gradients of gradients are not compiled: asking for them is an error.
Tracer gradient_tracer(std::string name, TracedFunction function, std::vector<bool> requires_gradient, Options options);

}  // namespace cxxinductor::torch_bridge

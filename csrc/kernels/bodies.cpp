#include "kernels/bodies.h"

#include <fmt/format.h>

#include "ir/plan/spelling.h"
#include "ir/text_parts.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/verify_body.h"
#include "kernels/family.h"

namespace cxxinductor::kernels {

std::vector<NamedBody> lower_bodies(const plan::Kernel& kernel) {
  const KernelFamily& family = family_of(kernel.mapping);
  if (family.bodies) return family.bodies(kernel);
  std::vector<NamedBody> bodies;
  for (size_t s = 0; s < kernel.segments.size(); ++s)
    bodies.push_back({std::string(plan::keyword_of(plan::segment_keywords, kernel.segments[s].kind)), lower_segment(kernel, s)});
  return bodies;
}

void verify_bodies_or_throw(const plan::Plan& plan, std::string_view after) {
  for (const plan::Kernel& kernel : plan.kernels)
    for (const auto& [name, body] : lower_bodies(kernel))
      require_valid(fmt::format("after {}, the body of {}, {},", after, kernel.name, name), verify_body(kernel, body));
}

}  // namespace cxxinductor::kernels

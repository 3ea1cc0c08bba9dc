#include "ir/loops/region_rewrite.h"
#include "passes/loops/passes.h"

namespace cxxinductor::passes {

bool remove_dead_statements(loops::Program& program, const Options&) {
  bool changed = false;
  for (loops::Step& step : program.steps) {
    auto* region = std::get_if<loops::Region>(&step);
    if (!region) continue;
    const size_t before = region->body.size();
    loops::remove_dead_statements(*region);
    changed = changed || region->body.size() != before;
  }
  return changed;
}

}  // namespace cxxinductor::passes

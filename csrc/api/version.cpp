#include <cxxinductor/cxxinductor.h>

namespace cxxinductor {

const char* version() noexcept { return CXXINDUCTOR_VERSION; }

}  // namespace cxxinductor

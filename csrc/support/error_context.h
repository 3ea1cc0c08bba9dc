// Errors about a text that say whose text it is.
#pragma once

#include <string_view>

#include "support/error.h"

namespace cxxinductor {

// What read() returns; a UserError of it begins with "WHOSE: ".
template <class Read>
auto naming(std::string_view whose, Read read) {
  try {
    return read();
  } catch (const UserError& error) {
    throw_user_error("{}: {}", whose, error.what());
  }
}

}  // namespace cxxinductor

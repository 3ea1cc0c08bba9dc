// The buffers that a text of the loops or plan IR has declared, by name.
#pragma once

#include <fmt/format.h>

#include <string>
#include <unordered_map>

#include "support/text_cursor.h"

namespace cxxinductor {

template <class BufferId>
class DeclaredBuffers {
 public:
  // Fails at `place` where the name is taken.
  void add(const std::string& name, BufferId id, TextCursor place) {
    if (!known_.emplace(name, id).second) place.fail("a new buffer name");
  }
  // "@x"
  BufferId parse(TextCursor& cursor) const {
    TextCursor start = cursor;
    const std::string name = cursor.sigil_name('@', "a buffer");
    const auto found = known_.find(name);
    if (found == known_.end()) start.fail(fmt::format("a declared buffer (there is no @{})", name));
    return found->second;
  }

 private:
  std::unordered_map<std::string, BufferId> known_;
};

}  // namespace cxxinductor

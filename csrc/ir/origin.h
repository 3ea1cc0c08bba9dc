// The origin of a node in the user's model: passed from the front-end to the `#line` of the kernel.
#pragma once

#include <string>
#include <vector>

#include "support/typed_id.h"

namespace cxxinductor {

struct Origin {
  std::string file;  // "model.py"; empty when unknown
  int line = 0;
  std::string module;  // "transformer.h.0.ln_1"
  std::string call;    // "aten.native_layer_norm.default"
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct OriginTag;
using OriginId = Id<OriginTag>;
using OriginTable = IdVector<OriginId, Origin>;

// "aten.gelu.default (model.py:7, h.0.mlp)", for people.
std::string describe(const Origin& origin);

}  // namespace cxxinductor

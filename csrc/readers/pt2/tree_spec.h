// Pytree specifications, which archives hold as JSON text in a JSON text.
#pragma once

#include <optional>

#include "readers/pt2/json.h"
#include "readers/pt2/read_pt2.h"

namespace cxxinductor::readers {

// named_tuples: the archive's treespec_namedtuple_fields.
TreeSpec read_tree_spec(const Field& text, const std::optional<Field>& named_tuples);

}  // namespace cxxinductor::readers

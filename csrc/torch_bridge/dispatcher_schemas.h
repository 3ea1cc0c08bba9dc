// The front-end's questions about schemas, answered by torch's dispatcher.
#pragma once

#include "model/schema.h"

namespace cxxinductor::torch_bridge {

class DispatcherSchemas final : public model::SchemaSource {
 public:
  std::optional<model::Schema> find(std::string_view callee, std::string_view overload) const override;
};

}  // namespace cxxinductor::torch_bridge

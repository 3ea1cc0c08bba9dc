// Dispatcher schemas as the front-end needs them; torch_bridge implements them by c10::FunctionSchema, tests by a table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/call_args.h"

namespace cxxinductor::model {

struct SchemaArgument {
  std::string name;
  std::optional<Arg> default_value;
  bool is_tensor = false;       // Tensor, Tensor?, Tensor[]
  bool is_list = false;
  bool kwarg_only = false;
  bool written = false;         // alias annotation (a!)
  std::string alias;            // alias set name, "" when none
  bool out = false;
};
struct SchemaReturn {
  std::string alias;
  bool written = false;
  bool is_tensor = false;
  bool is_list = false;
};
struct Schema {
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaReturn> returns;
  bool nondeterministic_seeded = false;  // draws random numbers
  bool has_structured_out = false;       // an out= overload that writes without a copy (mm, addmm, bmm, baddbmm)
};

// Its out= form is structured and writes straight into the destination (convolution's copies): mm, addmm, bmm, baddbmm.
bool has_structured_out(std::string_view callee);

class SchemaSource {
 public:
  virtual ~SchemaSource() = default;
  virtual std::optional<Schema> find(std::string_view callee, std::string_view overload) const = 0;
};

}  // namespace cxxinductor::model

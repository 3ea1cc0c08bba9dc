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
  bool is_tensor = false;  // Tensor, Tensor?, Tensor[]
  bool is_list = false;
  bool kwarg_only = false;
  bool written = false;  // alias annotation (a!)
  std::string alias;     // alias set name, "" when none
  bool out = false;
};
struct SchemaReturn {
  std::string alias;
  bool written = false;
  bool is_tensor = false;
  bool is_list = false;
};
// How an op writes its result into memory that the plan provides. Every op with a form has an overload "out", which is always right.
enum class PlannedForm : uint8_t {
  None,        // not at all: its result is memory of ATen's own
  Structured,  // its out= overload is structured and writes contiguous results straight into their places
  ByBackend,   // its out= overload copies; another op writes in place where the call's backend has one (torch_bridge/in_place_forms.h)
};

struct Schema {
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaReturn> returns;
  bool nondeterministic_seeded = false;  // draws random numbers
  PlannedForm planned_form = PlannedForm::None;
};

PlannedForm planned_form(std::string_view callee);

class SchemaSource {
 public:
  virtual ~SchemaSource() = default;
  virtual std::optional<Schema> find(std::string_view callee, std::string_view overload) const = 0;
};

}  // namespace cxxinductor::model

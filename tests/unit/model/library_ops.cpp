// Rows of ir/library_ops.def agree with PyTorch's schemas.
#include "ir/library_ops.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/error.h"
#include "unit/catch.h"
#include "unit/model/aten_schemas.h"

namespace cxxinductor {
namespace {

// The one op that is ours is declared where it is defined.
model::Schema random_state_schema() {
  std::ifstream file(std::string(CXXINDUCTOR_SOURCE_DIR) + "/csrc/torch_bridge/random_state.cpp");
  const std::string source{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = source.find("philox_state(", source.find("library.def(\"philox_state")), end = source.find('"', begin);
  REQUIRE(end != std::string::npos);
  const model::SchemaTable table("cxxinductor::" + source.substr(begin, end - begin) + "\n");
  const auto schema = table.find("cxxinductor::philox_state", "");
  REQUIRE(schema);
  return *schema;
}

model::Schema schema_of(const LibraryOp& op, std::string_view overload) {
  if (op.family == OpFamily::RandomState) return random_state_schema();
  const auto schema = model::aten_schemas().find(op.name, overload);
  INFO(op.name << "." << overload);
  REQUIRE(schema);
  return *schema;
}

bool names_tensor(ArgRole role) {
  static const std::set<ArgRole> tensors{ArgRole::Left, ArgRole::Right,          ArgRole::Addend, ArgRole::Input, ArgRole::Weight,
                                         ArgRole::Bias, ArgRole::OutputGradient, ArgRole::Query,  ArgRole::Key,   ArgRole::Mask};
  return tensors.contains(role);
}

void check(const LibraryOp& op, const model::Schema& schema) {
  std::set<ArgRole> roles;
  for (const OpArgument& argument : op.arguments) {
    if (argument.role == ArgRole::None) continue;
    INFO(op.name << ", " << argument.name);
    CHECK(roles.insert(argument.role).second);
    const auto found = std::ranges::find(schema.arguments, argument.name, &model::SchemaArgument::name);
    REQUIRE(found != schema.arguments.end());
    CHECK(argument.position == (found->kwarg_only ? by_keyword : static_cast<int>(found - schema.arguments.begin())));
    CHECK(found->is_tensor == names_tensor(argument.role));
  }
}

}  // namespace

TEST_CASE("library ops: arguments have the positions and names of the schemas") {
  std::set<std::string_view> names;
  for (const LibraryOp& op : library_ops()) {
    CHECK(names.insert(op.name).second);
    check(op, schema_of(op, ""));
    if (!op.overload.empty()) check(op, schema_of(op, op.overload));
  }
}

TEST_CASE("library ops: calls are found by name and overload") {
  CHECK(library_op("aten::mm", "")->family == OpFamily::Matmul);
  CHECK(library_op("aten::mm", "default") == library_op("aten::mm", "dtype"));
  CHECK(library_op("aten::mm", "out") == nullptr);
  CHECK(library_op("aten::add", "") == nullptr);
  CHECK(only_op(OpFamily::Convolution).name == "aten::convolution");
  CHECK_THROWS_AS(only_op(OpFamily::Matmul), InternalError);
}

TEST_CASE("library ops: arguments by role") {
  Call call{.callee = "aten::addmm", .args = {OperandRef{2}, OperandRef{0}}, .kwargs = {{"alpha", Arg(2.0)}}};
  CHECK(find_operand_ref(call, ArgRole::Addend)->operand == 2);
  CHECK(find_operand_ref(call, ArgRole::Left)->operand == 0);
  CHECK(find_argument(call, ArgRole::Right) == nullptr);
  CHECK(find_argument(call, ArgRole::Bias) == nullptr);
  CHECK(*find_argument(call, ArgRole::ProductScale) == Arg(2.0));
  CHECK(find_argument(call, ArgRole::AddendScale) == nullptr);
  CHECK(find_operand_ref(call, ArgRole::ProductScale) == nullptr);
  set_argument(call, ArgRole::Right, OperandRef{1});
  set_argument(call, ArgRole::AddendScale, 0.5);
  set_argument(call, ArgRole::Addend, None{});
  CHECK(call.args == std::vector<Arg>{None{}, OperandRef{0}, OperandRef{1}});
  CHECK(call.kwargs.back() == std::pair<std::string, Arg>("beta", 0.5));
  Call empty{.callee = "aten::mm"};
  CHECK_THROWS_AS(set_argument(empty, ArgRole::Right, OperandRef{0}), InternalError);
  CHECK_THROWS_AS(set_argument(empty, ArgRole::Bias, OperandRef{0}), InternalError);
}

TEST_CASE("library ops: calls are made by role") {
  const LibraryOp& op = *library_op("aten::bmm", "");
  const Call call = make_call(op, {{ArgRole::Right, OperandRef{1}}, {ArgRole::Left, OperandRef{0}}});
  CHECK(call.callee == "aten::bmm");
  CHECK(call.args == std::vector<Arg>{OperandRef{0}, OperandRef{1}});
  CHECK_THROWS_AS(make_call(op, {{ArgRole::Right, OperandRef{1}}}), InternalError);
  CHECK_THROWS_AS(make_call(op, {{ArgRole::Left, OperandRef{1}}, {ArgRole::Left, OperandRef{1}}}), InternalError);
}

}  // namespace cxxinductor

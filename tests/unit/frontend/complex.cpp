// Calls on complex tensors as calls on pairs of real ones, in text.
#include <algorithm>

#include "frontend/complex/lower_complex.h"
#include "model/schema_text.h"
#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;

// Names of the calls that compute `value`, in order.
std::vector<std::string> lowered(Calls& calls, const Arg& value) {
  calls.output(value);
  const CallGraph graph = lower_complex(calls.graph, model::SchemaTable("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)"));
  std::vector<std::string> names;
  for (const Call& call : graph.calls) names.push_back(call.overload.empty() ? call.callee : call.callee + "." + call.overload);
  return names;
}

size_t count_of(const std::vector<std::string>& names, const std::string& name) { return static_cast<size_t>(std::count(names.begin(), names.end(), name)); }

}  // namespace

TEST_CASE("graphs of real tensors have no complex values") {
  Calls calls;
  calls.output(calls.call("aten::neg", {calls.input("x", {D::F32, {4}})}, {D::F32, {4}}));
  CHECK_FALSE(has_complex(calls.graph));
}

TEST_CASE("a product of complex inputs is unpacked once, computed in parts and packed for the caller") {
  Calls calls;
  const Arg z = calls.input("z", {D::C64, {4}});
  const Arg product = calls.call("aten::mul.Tensor", {z, z}, {D::C64, {4}});
  REQUIRE(has_complex(calls.graph));
  const auto names = lowered(calls, product);
  CHECK(count_of(names, "aten::view_as_real") == 1);
  CHECK(count_of(names, "aten::mul.Tensor") == 4);
  CHECK(count_of(names, "aten::sub.Tensor") == 1);
  CHECK(count_of(names, "aten::add.Tensor") == 1);
  CHECK(names.back() == "aten::view_as_complex");
}

TEST_CASE("a tensor seen as complex and back needs no complex memory") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4, 2}});
  const Arg z = calls.call("aten::view_as_complex", {x}, {D::C64, {4}});
  const Arg turned = calls.call("aten::_conj", {z}, {D::C64, {4}});
  const auto names = lowered(calls, calls.call("aten::view_as_real", {turned}, {D::F32, {4, 2}}));
  CHECK(names == std::vector<std::string>{"aten::select.int", "aten::select.int", "aten::neg", "aten::stack"});
}

TEST_CASE("ops that move elements run once per part") {
  Calls calls;
  const Arg z = calls.call("aten::complex", {calls.input("a", {D::F32, {4, 2}}), calls.input("b", {D::F32, {4, 2}})}, {D::C64, {4, 2}});
  const Arg moved = calls.call("aten::permute", {z, ArgList{int64_t{1}, int64_t{0}}}, {D::C64, {2, 4}, {1, 2}});
  const auto names = lowered(calls, calls.call("aten::abs", {moved}, {D::F32, {2, 4}}));
  CHECK(names == std::vector<std::string>{"aten::permute", "aten::permute", "aten::hypot", "aten::alias"});
}

TEST_CASE("a view of a complex value is a view of the packed value") {
  Calls calls;
  const Arg z = calls.input("z", {D::C64, {4, 2}});
  const Arg product = calls.call("aten::mul.Tensor", {z, z}, {D::C64, {4, 2}});
  const auto names = lowered(calls, calls.call("aten::permute", {product, ArgList{int64_t{1}, int64_t{0}}}, {D::C64, {2, 4}, {1, 2}}));
  CHECK(count_of(names, "aten::stack") == 1);
  CHECK(names.back() == "aten::permute");
}

TEST_CASE("what has no form on pairs runs on interleaved tensors") {
  Calls calls;
  const Arg z = calls.input("z", {D::C64, {4, 4}});
  const Arg sum = calls.call("aten::add.Tensor", {z, std::complex<double>(1, 2)}, {D::C64, {4, 4}});
  const auto names = lowered(calls, calls.call("aten::mm", {sum, z}, {D::C64, {4, 4}}));
  CHECK(names.back() == "aten::mm");
  CHECK(count_of(names, "aten::view_as_complex") == 1);
}

}  // namespace cxxinductor::frontend

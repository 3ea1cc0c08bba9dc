#include "frontend/promotion.h"

#include <set>

#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;

// One value of each rank-1 and rank-0 tensor asked for.
struct Terms {
  graph::Graph graph;
  graph::Builder build{graph};
  std::vector<Term> terms;
  Terms& tensor(DType dtype) { return add(dtype, {4}); }
  Terms& scalar_tensor(DType dtype) { return add(dtype, {}); }
  Terms& number(ScalarArg value) {
    terms.emplace_back(value);
    return *this;
  }
  std::optional<DType> common() { return common_dtype(graph, terms); }

 private:
  Terms& add(DType dtype, std::vector<sym::Expr> sizes) {
    const auto strides = graph::contiguous_strides(sizes);
    terms.emplace_back(build.input("x" + std::to_string(terms.size()), dtype, kCuda, sizes, strides));
    return *this;
  }
};

}  // namespace

TEST_CASE("lower priorities matter only in a higher category") {
  CHECK(Terms().tensor(D::BF16).number(0.5).common() == D::BF16);
  CHECK(Terms().tensor(D::BF16).scalar_tensor(D::F32).common() == D::BF16);
  CHECK(Terms().tensor(D::I32).scalar_tensor(D::I64).common() == D::I32);
  CHECK(Terms().tensor(D::I32).scalar_tensor(D::F16).common() == D::F16);
  CHECK(Terms().tensor(D::I8).number(0.5).common() == D::F32);
  CHECK(Terms().tensor(D::I8).number(int64_t{1000}).common() == D::I8);
  CHECK(Terms().tensor(D::Bool).number(int64_t{1}).common() == D::I64);
  CHECK(Terms().tensor(D::Bool).number(true).common() == D::Bool);
  CHECK(Terms().scalar_tensor(D::F16).number(0.5).common() == D::F16);
  CHECK(Terms().scalar_tensor(D::I32).number(0.5).common() == D::F32);
  CHECK(Terms().scalar_tensor(D::F64).tensor(D::I64).common() == D::F64);
  CHECK(Terms().scalar_tensor(D::F64).scalar_tensor(D::F32).common() == D::F64);
  CHECK(Terms().tensor(D::F16).tensor(D::BF16).common() == D::F32);
  CHECK(Terms().tensor(D::I64).number(sym::Expr::symbol("s0")).common() == D::I64);
  CHECK(Terms().tensor(D::F16).number(GivenReal{}).common() == D::F16);
  CHECK(Terms().tensor(D::I64).number(GivenReal{}).common() == D::F32);
  CHECK_FALSE(Terms().tensor(D::U16).tensor(D::I32).common());
}

TEST_CASE("immediates are in the compute type and never lose an integer") {
  CHECK(immediate(ScalarArg(0.1), D::BF16) == Operand(Scalar::from_real(D::F32, 0.1)));
  CHECK(immediate(ScalarArg(int64_t{3}), D::F16) == Operand(Scalar::from_real(D::F32, 3)));
  CHECK(immediate(ScalarArg(0.1), D::F64) == Operand(Scalar::from_real(D::F64, 0.1)));
  CHECK(immediate(ScalarArg(int64_t{-1}), D::I32) == Operand(Scalar::from_integer(D::I32, -1)));
  CHECK_FALSE(immediate(ScalarArg(int64_t{300}), D::I8));
  CHECK_FALSE(immediate(ScalarArg(int64_t{-1}), D::U8));
  CHECK_FALSE(immediate(ScalarArg(0.5), D::I64));
}

TEST_CASE("a number that an integer dtype cannot hold is left to eager, which raises") {
  Calls calls;
  const Arg x = calls.input("x", {D::I8, {4}});
  calls.output(calls.call("aten::add.Tensor", {x, int64_t{300}}, {D::I8, {4}}));
  CHECK(count_externs(calls.import()) == 1);
}

TEST_CASE("numbers are rounded where eager's CPU kernels round them") {
  for (const Device device : {kCpu, kCuda}) {
    Calls calls(device);
    const Arg x = calls.input("x", {D::BF16, {4}});
    const Arg sum = calls.call("aten::add.Tensor", {x, 0.3}, {D::BF16, {4}});
    const auto body = body_of(calls.text(calls.call("aten::mul.Tensor", {sum, 0.3}, {D::BF16, {4}})));
    REQUIRE(body.size() == 2);
    CHECK(body[0].find(device == kCpu ? "0.30078125" : "0.3)") != std::string::npos);
    CHECK(body[1].find("0.3)") != std::string::npos);
  }
}

TEST_CASE("a rank-0 CPU constant enters a CUDA call as a number") {
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {4}});
  const Arg c = calls.call_on(kCpu, "aten::full", {ArgList{}, 0.3}, {D::F32, {}});
  const auto text = calls.text(calls.call("aten::mul.Tensor", {x, c}, {D::BF16, {4}}));
  CHECK(body_of(text).back().find("mul(%x, 0.3)") != std::string::npos);
}

TEST_CASE("a number of the CPU that is written into a CUDA tensor is a number there") {
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {4}});
  const Arg number = calls.call_on(kCpu, "aten::full", {ArgList{}, 0.25}, {D::F32, {}});
  const Arg copy = calls.call_on(kCpu, "aten::lift_fresh_copy", {number}, {D::F32, {}});
  calls.output(calls.call("aten::fill.Tensor", {x, copy}, {D::BF16, {4}}));
  calls.output(calls.call("aten::copy", {x, copy}, {D::BF16, {4}}));
  const graph::Graph graph = calls.import();
  INFO(graph::print(graph));
  CHECK(count_externs(graph) == 0);
  for (const graph::Output& output : graph.outputs) CHECK(graph.values[output.value].device == kCuda);
  // What only the run knows is moved by a call.
  Calls other;
  const Arg y = other.input("y", {D::BF16, {4}}), unknown = other.input_on(kCpu, "unknown", {D::F32, {}});
  other.output(other.call("aten::fill.Tensor", {y, unknown}, {D::BF16, {4}}));
  other.output(other.call("aten::copy", {y, unknown}, {D::BF16, {4}}));
  CHECK(count_externs(other.import()) == 2);
}

TEST_CASE("what the CPU computes from numbers and sizes alone is computed where it is read") {
  // The share of a mean's element, as tracing writes it where sizes are symbols.
  const sym::Expr rows = sym::Expr::symbol("s0"), columns = sym::Expr::symbol("s1");
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {rows, columns}});
  const Arg one = calls.call_on(kCpu, "aten::scalar_tensor", {1.0}, {D::F64, {}});
  const Arg a = calls.call_on(kCpu, "aten::scalar_tensor", {rows}, {D::F32, {}});
  const Arg b = calls.call_on(kCpu, "aten::scalar_tensor", {columns}, {D::F32, {}});
  const Arg count = calls.call_on(kCpu, "aten::mul.Tensor", {a, b}, {D::F32, {}});
  const Arg wide = calls.call_on(kCpu, "prims::convert_element_type", {count, D::F64}, {D::F64, {}});
  const Arg share = calls.call_on(kCpu, "aten::true_divide.Tensor", {one, wide}, {D::F64, {}});
  calls.output(calls.call("aten::mul.Tensor", {x, share}, {D::BF16, {rows, columns}}));
  calls.output(calls.call("aten::_to_copy", {share}, {D::F32, {}}));
  const graph::Graph graph = calls.import();
  INFO(graph::print(graph));
  CHECK(count_externs(graph) == 0);
  std::set<uint32_t> needed;
  for (const graph::Output& output : graph.outputs) needed.insert(output.value.index());
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const graph::Node& node = graph.nodes[graph::NodeId(n)];
    if (!needed.contains(node.results[0].index())) continue;
    CHECK(graph.values[node.results[0]].device == kCuda);
    for (const graph::Operand& operand : node.operands)
      if (const auto* id = std::get_if<graph::ValueId>(&operand)) needed.insert(id->index());
  }
  // As eager's kernels hold a number of the CPU: in the compute type.
  CHECK(graph::print(graph).find("cast<bf16>") == std::string::npos);
}

TEST_CASE("a scalar of the CPU is converted there, and a kernel of the GPU takes it as an argument") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}});
  const Arg y = calls.input_on(kCpu, "y", {D::F64, {}});
  calls.output(calls.call("aten::mul.Tensor", {x, y}, {D::F32, {4}}));
  CHECK(body_of(graph::print(calls.import())) == std::vector<std::string>{"%0 = cast<f32>(%y)", "%1 = mul(%x, %0)"});
  calls.environment.cpu_kernels = false;
  CHECK(count_externs(calls.import()) == 1);
}

TEST_CASE("an element of a tensor on the CPU is an operand of a kernel of the GPU where the CPU has kernels") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}});
  const Arg table = calls.input_on(kCpu, "table", {D::F32, {8}});
  const Arg element = calls.call_on(kCpu, "aten::select.int", {table, int64_t{0}, int64_t{3}}, {D::F32, {}});
  calls.output(calls.call("aten::mul.Tensor", {x, element}, {D::F32, {4}}));
  CHECK(body_of(graph::print(calls.import())).back().find("= mul(%x, ") != std::string::npos);
  CHECK(count_externs(calls.import()) == 0);
  calls.environment.cpu_kernels = false;
  CHECK(count_externs(calls.import()) == 1);
}

TEST_CASE("a write into an input on another device is a copy between devices") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}});
  const Arg table = calls.input_on(kCpu, "table", {D::F64, {4}});
  calls.call("aten::copy_", {x, table}, {D::F32, {4}});
  const graph::Graph graph = calls.import();
  INFO(graph::print(graph));
  CHECK(count_externs(graph) == 1);
  REQUIRE(graph.mutations.size() == 1);
  CHECK(graph.values[graph.mutations[0].value].device == kCuda);
}

}  // namespace cxxinductor::frontend

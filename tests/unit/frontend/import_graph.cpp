#include <algorithm>

#include "frontend/import.h"
#include "ir/graph/verify.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;
using Lines = std::vector<std::string>;

const graph::Extern& only_extern(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    if (const auto* callee = node.as<graph::Extern>()) return *callee;
  }
  FAIL("no extern");
  throw InternalError("unreachable");
}

}  // namespace

TEST_CASE("matmuls are externs whose results the plan owns") {
  Calls calls;
  const Arg b = calls.input("b", {D::BF16, {7}}), x = calls.input("x", {D::BF16, {5, 6}});
  const Arg w = calls.input("w", {D::BF16, {7, 6}});
  const Arg t = calls.call("aten::t", {w}, {D::BF16, {6, 7}, {1, 6}});
  const Arg y = calls.call("aten::addmm", {b, x, t}, {D::BF16, {5, 7}});
  const auto lines = body_of(calls.text(calls.call("aten::gelu", {y}, {D::BF16, {5, 7}})));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == "%1: bf16[5, 7] = extern \"aten::addmm\"($0, $1, $2) with (%b, %x, %0) planned_out flexible_strides");
  CHECK(lines[2] == "%2 = gelu(%1)");
}

TEST_CASE("convolutions on CUDA are externs whose results the plan owns where a backend may write them") {
  struct Case {
    Device device = kCuda;
    int dims = 2;
    bool transposed = false;
    int64_t groups = 1;
    DType dtype = D::F32;
    bool planned = true;
  };
  const Case cases[] = {{},
                        {.dims = 1, .dtype = D::F64},
                        {.dims = 3, .dtype = D::BF16},
                        {.groups = 4, .dtype = D::F16},
                        {.dims = 1, .groups = 4},
                        {.dims = 3, .groups = 4, .planned = false},  // ATen's kernel for depthwise ones, which has no form that writes in place
                        {.transposed = true, .planned = false},
                        {.dtype = D::C64, .planned = false},
                        {.device = kCpu, .planned = false}};
  for (const Case& c : cases) {
    INFO(c.dims << " dimensions, " << c.groups << " groups, transposed: " << c.transposed);
    Calls calls(c.device);
    const auto repeated = [&](int64_t value) { return Arg(ArgList(static_cast<size_t>(c.dims), Arg(value))); };
    std::vector<sym::Expr> image{sym::Expr::symbol("s0"), 4}, kernel{4, 4 / c.groups};
    image.insert(image.end(), static_cast<size_t>(c.dims), 8);
    kernel.insert(kernel.end(), static_cast<size_t>(c.dims), 3);
    calls.graph.assumptions.set_range("s0", {0, 64});
    const Arg x = calls.input("x", {c.dtype, image}), w = calls.input("w", {c.dtype, kernel});
    calls.output(
        calls.call("aten::convolution", {x, w, Arg(None{}), repeated(1), repeated(1), repeated(1), c.transposed, repeated(0), c.groups}, {c.dtype, image}));
    const graph::Graph graph = calls.import();
    CHECK(only_extern(graph).planned_out == c.planned);
    CHECK(only_extern(graph).exact_strides);  // which backend runs, and in which format, depends on them
  }
}

TEST_CASE("an extern keeps its call's schema annotations") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}}), i = calls.input("i", {D::I64, {2}});
  SECTION("mutation and alias") {
    calls.output(calls.call("aten::index_put_", {x, ArgList{i}, x}, {D::F32, {4}}));
    const graph::Graph graph = calls.import();
    CHECK(only_extern(graph).mutated_operands == std::vector<uint32_t>{0});
    CHECK(only_extern(graph).alias_of == std::vector<int>{0});
    CHECK(only_extern(graph).ordered);
  }
  SECTION("a view that we cannot express aliases and is not ordered") {
    calls.output(calls.call("aten::as_strided", {x, ArgList{int64_t{2}}, ArgList{int64_t{2}}, int64_t{1}}, {D::F32, {2}, {2}}));
    const graph::Graph graph = calls.import();
    CHECK(only_extern(graph).alias_of == std::vector<int>{0});
    CHECK_FALSE(only_extern(graph).ordered);
  }
  SECTION("random numbers are ordered") {
    calls.output(calls.call("aten::rand_like", {x}, {D::F32, {4}}));
    CHECK(only_extern(calls.import()).ordered);
  }
}

TEST_CASE("a missing result keeps its place") {
  Calls calls;
  const Arg g = calls.input("g", {D::F32, {4}}), w = calls.input("w", {D::F32, {4}});
  auto results = calls.call_many("aten::convolution_backward", {g, g, w}, {{D::F32, {4}}, {D::F32, {4}}, {D::F32, {4}}});
  calls.graph.values[results[0].as<OperandRef>()->operand].kind = CallValueInfo::Kind::None;
  calls.output(results[1]);
  calls.output(results[0]);
  const graph::Graph graph = calls.import();
  CHECK(graph.nodes[graph::NodeId(0)].results.size() == 3);
  CHECK(graph.outputs[0].value == graph.nodes[graph::NodeId(0)].results[1]);
  CHECK(graph.outputs[1].kind == graph::Output::Kind::None);
  CHECK(graph::verify(graph).empty());
}

TEST_CASE("outputs have eager's strides") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {2, 3}});
  const Arg y = calls.call("aten::relu", {x}, {D::F32, {2, 3}});
  SECTION("a computed value is laid out so") {
    const Arg z = calls.call("aten::clone", {y}, {D::F32, {2, 3}, {1, 2}});
    calls.output(z);
    const graph::Graph graph = calls.import();
    const graph::Value& value = graph.value(graph.outputs[0].value);
    CHECK(value.layout.kind == graph::Layout::Kind::Fixed);
    CHECK(value.layout.strides == std::vector<sym::Expr>{1, 2});
    CHECK(graph.nodes.size() == 2);
  }
  SECTION("a second demand of other strides is a copy") {
    calls.output(y);
    const CallValue id = y.as<OperandRef>()->operand;
    calls.graph.values.push_back(calls.graph.values[id]);
    calls.graph.values.back().strides = {1, 2};
    Call alias;
    alias.callee = "aten::detach";
    alias.args = {y};
    alias.results = {static_cast<CallValue>(calls.graph.values.size() - 1)};
    calls.graph.calls.push_back(alias);
    calls.output(OperandRef{alias.results[0]});
    const graph::Graph graph = calls.import();
    CHECK(graph.outputs[0].value != graph.outputs[1].value);
    CHECK(graph.value(graph.outputs[1].value).layout.strides == std::vector<sym::Expr>{1, 2});
    CHECK(graph::verify(graph).empty());
  }
}

TEST_CASE("copy_ to an input is its last version") {
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {2, 3}}), y = calls.input("y", {D::F32, {3}});
  const Arg z = calls.call("aten::relu", {y}, {D::F32, {3}});
  calls.call("aten::copy_", {x, z}, {D::BF16, {2, 3}});
  calls.output(z);
  const graph::Graph graph = calls.import();
  REQUIRE(graph.mutations.size() == 1);
  CHECK(graph.mutations[0].input == 0);
  CHECK(graph.value(graph.mutations[0].value).dtype == D::BF16);
  CHECK(graph.value(graph.mutations[0].value).sizes == std::vector<sym::Expr>{2, 3});
  CHECK(count_externs(graph) == 0);
}

TEST_CASE("sizes among an extern's arguments are operands") {
  Calls calls;
  const sym::Expr s0 = sym::Expr::symbol("s0");
  calls.graph.assumptions.set_range("s0", {2, 100});
  const Arg x = calls.input("x", {D::F32, {s0, 4}});
  calls.output(calls.call("aten::as_strided", {x, ArgList{s0, int64_t{2}}, ArgList{int64_t{4}, int64_t{2}}, s0 - 1}, {D::F32, {s0, 2}, {4, 2}}));
  const graph::Graph graph = calls.import();
  const graph::Node& node = *graph.nodes.begin();
  const auto* callee = node.as<graph::Extern>();
  REQUIRE(callee != nullptr);
  REQUIRE(node.operands.size() == 3);
  CHECK(node.operands[1] == graph::Operand(s0));
  CHECK(node.operands[2] == graph::Operand(s0 - 1));
  CHECK(to_string(callee->args[3]) == "$2");
}

TEST_CASE("symbols") {
  Calls calls;
  const sym::Expr s0 = sym::Expr::symbol("s0");
  calls.graph.assumptions.set_range("s0", {2, 1024});
  CallValueInfo size;
  size.kind = CallValueInfo::Kind::SymInt;
  size.name = "s";
  size.symbol = s0;
  calls.graph.values.push_back(size);
  calls.graph.inputs.push_back(0);
  calls.graph.input_sources.push_back("n");
  const Arg x = calls.input("x", {D::F32, {s0}});
  calls.output(calls.call("aten::add.Tensor", {x, OperandRef{0}}, {D::F32, {s0}}));
  calls.output(s0 * 2);
  const graph::Graph graph = calls.import();
  CHECK(graph.inputs[0].kind == graph::Input::Kind::Symbol);
  CHECK(graph.inputs[0].source == "n");
  CHECK(graph.assumptions.range("s0") == sym::Interval{2, 1024});
  CHECK(body_of(graph::print(graph)) == Lines{"%0 = add(%x, expr(s0))"});
  CHECK(graph.outputs[1].symbol == s0 * 2);
}

TEST_CASE("what cannot be read is refused with the op and the model's line") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}});
  SECTION("an op without a schema") {
    calls.output(calls.call("custom::mystery", {x}, {D::F32, {4}}));
    std::string message;
    try {
      calls.import();
    } catch (const Unsupported& error) {
      message = error.what();
    }
    CHECK(message.find("custom::mystery (model.py:1)") != std::string::npos);
    CHECK(message.find("schema") != std::string::npos);
  }
  SECTION("a number read out of a tensor") {
    calls.call("aten::cumsum", {x, int64_t{0}}, {D::F32, {4}});
    CallValueInfo& info = calls.graph.values.back();
    info.kind = CallValueInfo::Kind::SymInt;
    info.symbol = sym::Expr::symbol("u0");
    CHECK_THROWS_AS(calls.import(), Unsupported);
  }
  SECTION("an object among the arguments") {
    calls.graph.values.emplace_back().kind = CallValueInfo::Kind::Opaque;
    const Arg object = OperandRef{static_cast<uint32_t>(calls.graph.values.size() - 1)};
    calls.output(calls.call("aten::cumsum", {x, object}, {D::F32, {4}}));
    CHECK_THROWS_AS(calls.import(), Unsupported);
  }
}

TEST_CASE("a reader that disagrees with our dtypes is a bug of ours") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {4}});
  calls.output(calls.call("aten::relu", {x}, {D::F64, {4}}));
  CHECK_THROWS_AS(calls.import(), InternalError);
}

TEST_CASE("a transformer block's pieces import whole") {
  Calls calls;
  const sym::Expr s0 = sym::Expr::symbol("s0");
  const Arg x = calls.input("x", {D::BF16, {s0, 16, 32}}), b = calls.input("b", {D::BF16, {96}});
  const Arg w = calls.input("w", {D::BF16, {32, 96}});
  const Arg flat = calls.call("aten::view", {x, ArgList{int64_t{-1}, int64_t{32}}}, {D::BF16, {s0 * 16, 32}});
  const Arg qkv = calls.call("aten::addmm", {b, flat, w}, {D::BF16, {s0 * 16, 96}});
  const Arg back = calls.call("aten::view", {qkv, ArgList{s0, int64_t{16}, int64_t{96}}}, {D::BF16, {s0, 16, 96}});
  const TensorType part{D::BF16, {s0, 16, 32}, {1536, 96, 1}};
  const auto split = calls.call_many("aten::split.Tensor", {back, int64_t{32}, int64_t{2}}, {part, part, part});
  const Arg heads = calls.call("aten::view", {split[0], ArgList{s0, int64_t{16}, int64_t{2}, int64_t{16}}}, {D::BF16, {s0, 16, 2, 16}, {1536, 96, 16, 1}});
  const Arg query = calls.call("aten::transpose.int", {heads, int64_t{1}, int64_t{2}}, {D::BF16, {s0, 2, 16, 16}, {1536, 16, 96, 1}});
  calls.output(calls.call("aten::mul.Tensor", {query, 0.25}, {D::BF16, {s0, 2, 16, 16}}));
  const graph::Graph graph = calls.import();
  CHECK(graph::verify(graph).empty());
  CHECK(count_externs(graph) == 1);
  const std::string text = graph::print(graph);
  CHECK(graph::print(graph::parse(text)) == text);
  const auto permuted = std::find_if(graph.nodes.begin(), graph.nodes.end(), [](const graph::Node& n) { return n.as<graph::Permute>() != nullptr; });
  REQUIRE(permuted != graph.nodes.end());
  CHECK(graph.value(permuted->results[0]).layout.strides == std::vector<sym::Expr>{1536, 16, 96, 1});
}

TEST_CASE("the list of overloads that arrive whole is sorted and without matmuls") {
  const auto names = overloads_imported_whole();
  CHECK(std::is_sorted(names.begin(), names.end()));
  const auto has = [&](const char* name) { return std::binary_search(names.begin(), names.end(), name); };
  CHECK(has("aten::gelu"));
  CHECK(has("aten::silu_backward"));
  CHECK(has("aten::native_layer_norm"));
  CHECK(has("aten::bitwise_and.Tensor"));
  CHECK_FALSE(has("aten::mm"));
  CHECK_FALSE(has("aten::convolution"));
}

}  // namespace cxxinductor::frontend

#include "model/passes/split_gradients.h"

#include "model/text.h"
#include "model/verify.h"
#include "unit/catch.h"
#include "unit/model/aten_schemas.h"

using namespace cxxinductor;

namespace {

model::SplitGraphs split(const std::string& text, size_t results, const std::vector<uint32_t>& gradients) {
  model::SplitGraphs graphs = model::split_gradients(model::parse(text), results, gradients, model::aten_schemas());
  CHECK(model::verify(graphs.forward).empty());
  CHECK(model::verify(graphs.backward).empty());
  return graphs;
}

}  // namespace

TEST_CASE("a function and its gradients are split where values are kept") {
  const auto graphs = split(R"(calls @f where 2 <= s0 {
  input %x: f32[s0, 8]
  input %w: f32[4, 8]
  input %gradient: f32[s0, 4]
  %t: f32[8, 4] strides [1, 8] = "aten::t"(%w)
  %mm: f32[s0, 4] = "aten::mm"(%x, %t)
  %tanh: f32[s0, 4] = "aten::tanh"(%mm)
  %out: f32[s0, 4] = "aten::mul.Tensor"(%tanh, 2.0)
  %scaled: f32[s0, 4] = "aten::mul.Tensor"(%gradient, 2.0)
  %back: f32[s0, 4] = "aten::tanh_backward"(%scaled, %tanh)
  %to_x: f32[s0, 8] = "aten::mm"(%back, %w)
  %turned: f32[4, s0] strides [1, 4] = "aten::t"(%back)
  %to_w: f32[4, 8] = "aten::mm"(%turned, %x)
  return %out, %to_x, %to_w
}
)",
                            1, {2});
  CHECK(model::print(graphs.forward) == R"(calls @f where 2 <= s0 {
  input %x: f32[s0, 8]
  input %w: f32[4, 8]
  %t: f32[8, 4] strides [1, 8] = "aten::t"(%w)
  %mm: f32[s0, 4] = "aten::mm"(%x, %t)
  %tanh: f32[s0, 4] = "aten::tanh"(%mm)
  %out: f32[s0, 4] = "aten::mul.Tensor"(%tanh, 2.0)
  return %out, %mm
}
)");
  CHECK(model::print(graphs.backward) == R"(calls @f_backward where 2 <= s0 {
  input %x: f32[s0, 8]
  input %w: f32[4, 8]
  input %mm: f32[s0, 4]
  input %gradient: f32[s0, 4]
  %tanh: f32[s0, 4] = "aten::tanh"(%mm)
  %scaled: f32[s0, 4] = "aten::mul.Tensor"(%gradient, 2.0)
  %back: f32[s0, 4] = "aten::tanh_backward"(%scaled, %tanh)
  %to_x: f32[s0, 8] = "aten::mm"(%back, %w)
  %turned: f32[4, s0] strides [1, 4] = "aten::t"(%back)
  %to_w: f32[4, 8] = "aten::mm"(%turned, %x)
  return %to_x, %to_w
}
)");
  using Of = model::SplitGraphs::Kept::Of;
  REQUIRE(graphs.kept.size() == 3);  // x, w, and the product: in memory anyway, and its tanh costs no pass of its own
  CHECK((graphs.kept[0].of == Of::Input && graphs.kept[0].position == 0));
  CHECK((graphs.kept[1].of == Of::Input && graphs.kept[1].position == 1));
  CHECK((graphs.kept[2].of == Of::Output && graphs.kept[2].position == 1));
}

TEST_CASE("views are made again, and symbols that no size tells are kept") {
  const auto graphs = split(R"(calls @f where 2 <= s0 {
  input %x: f32[6, s0]
  input %gradient: f32[2, 3, s0]
  %exp: f32[6, s0] storage 1 = "aten::exp"(%x)
  %view: f32[2, 3, s0] storage 1 = "aten::view"(%exp, [2, 3, expr(s0)])
  %out: f32[2, 3, s0] = "aten::neg"(%view)
  %to_view: f32[2, 3, s0] = "aten::mul.Tensor"(%gradient, %view)
  %sum: f32[3] = "aten::sum.dim_IntList"(%to_view, [0, 2])
  return %out, %sum
}
)",
                            1, {1});
  CHECK(model::print(graphs.backward) == R"(calls @f_backward where 2 <= s0 {
  input %exp: f32[6, s0] storage 1
  input %gradient: f32[2, 3, s0]
  %view: f32[2, 3, s0] storage 1 = "aten::view"(%exp, [2, 3, expr(s0)])
  %to_view: f32[2, 3, s0] = "aten::mul.Tensor"(%gradient, %view)
  %sum: f32[3] = "aten::sum.dim_IntList"(%to_view, [0, 2])
  return %sum
}
)");
  const auto doubled = split(R"(calls @f where 2 <= s0 {
  input %x: f32[s0]
  input %gradient: f32[2*s0]
  %out: f32[2*s0] = "aten::repeat"(%x, [2])
  %parts: f32[2, s0] = "aten::view"(%gradient, [2, expr(s0)])
  %sum: f32[s0] = "aten::sum.dim_IntList"(%parts, [0])
  return %out, %sum
}
)",
                             1, {1});
  REQUIRE(doubled.kept.size() == 1);
  CHECK(model::print(doubled.forward).find("return %out, expr(s0)") != std::string::npos);
}

TEST_CASE("an argument that eager does not keep is not read by the backward pass") {
  const auto graphs = split(R"(calls @f {
  input %x: f32[8]
  input %gradient: f32[8]
  %exp: f32[8] = "aten::exp"(%x)
  %out: f32[8] = "aten::neg"(%exp)
  %negative: f32[8] = "aten::neg"(%gradient)
  %to_x: f32[8] = "aten::mul.Tensor"(%negative, %exp)
  return %out, %to_x
}
)",
                            1, {1});
  REQUIRE(graphs.kept.size() == 1);
  CHECK(graphs.kept[0].of == model::SplitGraphs::Kept::Of::Output);
  CHECK(model::kept_bytes(graphs) == 32);
}

TEST_CASE("what autograd computes of an argument is not kept in its place") {
  const auto graphs = split(R"(calls @f {
  input %x: f32[8]
  input %gradient: f32[8]
  %out: f32[8] = "aten::sin"(%x)
  %cosine: f32[8] = "aten::cos"(%x)
  %to_x: f32[8] = "aten::mul.Tensor"(%gradient, %cosine)
  return %out, %to_x
}
)",
                            1, {1});
  REQUIRE(graphs.kept.size() == 1);
  CHECK(graphs.kept[0].of == model::SplitGraphs::Kept::Of::Input);
}

TEST_CASE("a result that eager does not keep is not read by the backward pass") {
  const auto graphs = split(R"(calls @f {
  input %x: f32[8]
  input %w: f32[8, 8]
  input %gradient: f32[]
  input %gradient_1: f32[8]
  %y: f32[8] = "aten::mv"(%w, %x)
  %half: f32[8] = "aten::mul.Tensor"(%y, 0.5)
  %exp: f32[8] = "aten::exp"(%half)
  %sum: f32[] = "aten::sum"(%exp)
  %spread: f32[8] = "aten::mul.Tensor"(%gradient, %exp)
  %scaled: f32[8] = "aten::mul.Tensor"(%spread, 0.5)
  %all: f32[8] = "aten::add.Tensor"(%scaled, %gradient_1)
  return %sum, %half, %all
}
)",
                            2, {2, 3});
  REQUIRE(graphs.kept.size() == 1);
  CHECK(graphs.kept[0].position == 2);  // behind the results
  CHECK(model::print(graphs.backward).find("input %y") != std::string::npos);
}

TEST_CASE("random ops and calls with an order are not repeated") {
  const auto graphs = split(R"(calls @f {
  input %x: f32[8]
  input %gradient: f32[8]
  %noise: f32[8] = "aten::rand_like"(%x)
  %twice: f32[8] = "aten::mul.Tensor"(%noise, 2.0)
  %out: f32[8] = "aten::mul.Tensor"(%x, %twice)
  %to_x: f32[8] = "aten::mul.Tensor"(%gradient, %twice)
  return %out, %to_x
}
)",
                            1, {1});
  CHECK(model::print(graphs.backward).find("rand_like") == std::string::npos);
  CHECK(model::kept_bytes(graphs) == 32);
}

TEST_CASE("an argument that the function writes to is not kept") {
  CHECK_THROWS_WITH(split(R"(calls @f {
  input %x: f32[8]
  input %gradient: f32[8]
  %y: f32[8] = "aten::sin"(%x)
  %z: f32[8] = "aten::mul.Tensor"(%x, 2.0)
  %to_x: f32[8] = "aten::mul.Tensor"(%gradient, %x)
  final %x = %z
  return %y, %to_x
}
)",
                          1, {1}),
                    Catch::Contains("writes to"));
}

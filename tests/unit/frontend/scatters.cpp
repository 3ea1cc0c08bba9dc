#include <algorithm>

#include "interp/interp.h"
#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;
using Lines = std::vector<std::string>;

struct How {
  Device device = kCuda;
  bool deterministic = false, any_order = false;
};

// The lines of x: f32[8, 4] with rows of s: f32[3, 4] put where i: i64[3] says, by that call.
Lines rows_by(const std::string& name, const How& how, DType dtype = D::F32, DType index = D::I64) {
  Calls calls(how.device);
  calls.environment.deterministic = how.deterministic;
  calls.environment.any_order = how.any_order;
  const Arg x = calls.input("x", {dtype, {8, 4}}), s = calls.input("s", {dtype, {3, 4}});
  const Arg i = calls.input("i", {index, {3}});
  const std::vector<Arg> args = name == "aten::index_put" ? std::vector<Arg>{x, ArgList{i}, s, true} : std::vector<Arg>{x, int64_t{0}, i, s};
  return body_of(calls.text(calls.call(name, args, {dtype, {8, 4}})));
}

bool is_call(const Lines& lines) { return lines.size() == 1 && lines[0].find("extern") != std::string::npos; }

// x: [8] with s: [3] put where i says, by scatter(reduce=word) or scatter_reduce(reduce=word).
Lines reduced(const std::string& name, const std::string& word, DType dtype = D::F32) {
  Calls calls(kCpu);
  const Arg x = calls.input("x", {dtype, {8}}), i = calls.input("i", {D::I64, {3}}), s = calls.input("s", {dtype, {3}});
  std::vector<Arg> args{x, int64_t{0}, i, s, word};
  if (name == "aten::scatter_reduce.two") args.push_back(false);
  return body_of(calls.text(calls.call(name, args, {dtype, {8}})));
}

Lines strided(const TensorType& base, bool made_here, std::vector<sym::Expr> sizes, std::vector<sym::Expr> strides, int64_t offset) {
  Calls calls(kCpu);
  Arg x = calls.input("x", base);
  const Arg s = calls.input("s", {base.dtype, sizes});
  if (made_here) x = calls.call("aten::neg", {x}, base);
  const ArgList at(sizes.begin(), sizes.end()), by(strides.begin(), strides.end());
  return body_of(calls.text(calls.call("aten::as_strided_scatter", {x, s, at, by, offset}, base)));
}

}  // namespace

TEST_CASE("each scatter takes its own words for what meets") {
  for (const char* word : {"add", "multiply"}) CHECK(!is_call(reduced("aten::scatter.reduce", word)));
  for (const char* word : {"sum", "amax", "div"}) CHECK(is_call(reduced("aten::scatter.reduce", word)));
  for (const char* word : {"sum", "prod", "mean", "amax", "amin"}) CHECK(!is_call(reduced("aten::scatter_reduce.two", word)));
  for (const char* word : {"add", "multiply", "median"}) CHECK(is_call(reduced("aten::scatter_reduce.two", word)));
}

TEST_CASE("extremes without the base start at the limits of the dtype") {
  const auto first = [](const char* word, DType dtype) { return reduced("aten::scatter_reduce.two", word, dtype).at(0); };
  CHECK(first("amax", D::I64) == "%0: i64[3] = full(-9223372036854775808)");
  CHECK(first("amin", D::I64) == "%0: i64[3] = full(9223372036854775807)");
  CHECK(first("amax", D::U8) == "%0: u8[3] = full(0)");
  CHECK(first("amin", D::BF16) == "%0: bf16[3] = full(inf)");
}

TEST_CASE("sums by atomics only where eager's order is not fixed either") {
  const Lines add{"%0 = scatter<target=[-1, 1], index_dims=[0], add, no_wrap>(%x, %s, %i)"};
  CHECK(rows_by("aten::index_add", {kCpu}) == add);
  CHECK(rows_by("aten::index_add", {kCuda}) == add);
  CHECK(is_call(rows_by("aten::index_add", {kCuda, true})));
  CHECK(rows_by("aten::index_add", {kCpu, true}) == add);
  CHECK(rows_by("aten::index_add", {kCuda, true}, D::I64) == add);  // sums of integers have no order

  const Lines put{"%0 = scatter<target=[-1, 1], index_dims=[0], add>(%x, %s, %i)"};
  CHECK(is_call(rows_by("aten::index_put", {kCuda})));  // eager sorts
  CHECK(rows_by("aten::index_put", {kCuda, false, true}) == put);
  CHECK(is_call(rows_by("aten::index_put", {kCuda, true, true})));
  CHECK(rows_by("aten::index_put", {kCpu}) == put);
  CHECK(rows_by("aten::index_put", {kCuda}, D::I32) == put);

  CHECK(rows_by("aten::index_copy", {kCuda}).size() == 1);
  CHECK_FALSE(is_call(rows_by("aten::index_copy", {kCuda})));
  CHECK(is_call(rows_by("aten::index_copy", {kCuda, true})));  // which of several values stays
}

TEST_CASE("16-bit sums round where eager's do") {
  const Lines wide{"%0 = cast<f32>(%x)", "%1 = cast<f32>(%s)", "%2 = scatter<target=[-1, 1], index_dims=[0], add, no_wrap>(%0, %1, %i)", "%3 = cast<bf16>(%2)"};
  CHECK(rows_by("aten::index_add", {kCpu}, D::BF16) == wide);
  const Lines narrow{"%0 = scatter<target=[-1, 1], index_dims=[0], add, no_wrap>(%x, %s, %i)"};
  CHECK(rows_by("aten::index_add", {kCuda}, D::BF16) == narrow);
  CHECK(rows_by("aten::index_add", {kCpu}, D::BF16, D::I32) == narrow);  // slice by slice
}

TEST_CASE("gradients of an embedding skip the padding") {
  for (const bool on_cuda : {false, true}) {
    Calls calls(on_cuda ? kCuda : kCpu);
    const Arg g = calls.input("g", {D::F32, {2, 3, 4}}), i = calls.input("i", {D::I64, {2, 3}});
    const Arg grad = calls.call("aten::embedding_dense_backward", {g, i, int64_t{10}, int64_t{2}, false}, {D::F32, {10, 4}});
    const Lines lines = body_of(calls.text(grad));
    if (!on_cuda)
      CHECK(lines == Lines{"%0 = eq(%i, 2)", "%1: bool[2, 3, 1] = reshape(%0)", "%2: bool[2, 3, 4] = expand(%1)", "%3 = where(%2, 0.0, %g)",
                           "%4: f32[10, 4] = full(0.0)", "%5 = scatter<target=[-1, 2], index_dims=[0, 1], add, no_wrap>(%4, %3, %i)"});
  }
}

// What the interpreter gives for `values`, whose numbers are small integers, added to zeros of those sizes where i: i64[5] says.
std::vector<double> added(const Device& device, const std::vector<sym::Expr>& sizes, const ArgList& before, const std::vector<sym::Expr>& values,
                          bool is_summed, DType dtype = D::F32) {
  Calls calls(device);
  const Arg s = calls.input("s", {dtype, values}), i = calls.input("i", {D::I64, {5}});
  const Arg zeros = calls.call("aten::zeros", {ArgList(sizes.begin(), sizes.end())}, {dtype, sizes}, {{"device", device}, {"dtype", dtype}});
  ArgList indices = before;
  indices.push_back(i);
  calls.output(calls.call("aten::index_put", {zeros, indices, s, true}, {dtype, sizes}));
  const graph::Graph graph = calls.import();
  const std::string text = graph::print(graph);
  CHECK((text.find("reduce<sum") != std::string::npos) == is_summed);
  CHECK(text.find("extern") == std::string::npos);
  interp::Arguments arguments;
  arguments.tensors = {{dtype, {}, {}}, {D::I64, {5}, {}}};
  int64_t count = 1;
  for (const sym::Expr size : values) {
    arguments.tensors[0].sizes.push_back(size.constant());
    count *= size.constant();
  }
  for (int64_t n = 0; n < count; ++n) arguments.tensors[0].elements.push_back(Scalar::from_integer(dtype, n % 13));
  for (const int64_t index : {3, -1, 0, 3, -4}) arguments.tensors[1].elements.push_back(Scalar::from_integer(D::I64, index));
  const std::vector<interp::Tensor> results = interp::run(graph, arguments);
  std::vector<double> found;
  for (const Scalar& each : results.at(0).elements) found.push_back(each.as_real());
  return found;
}

TEST_CASE("few places are sums over all rows on CUDA") {
  const Arg all = None{};
  struct {
    std::vector<sym::Expr> sizes;
    ArgList before;
    std::vector<sym::Expr> values;
  } cases[] = {{{4}, {}, {5}}, {{4, 3}, {}, {5, 3}}, {{3, 4}, {all}, {3, 5}}, {{2, 4, 3}, {all}, {2, 5, 3}}, {{4, 3, 2}, {}, {1, 5, 3, 2}}};
  for (const auto& each : cases) {
    const std::vector<double> wanted = added(kCpu, each.sizes, each.before, each.values, false);
    CHECK(added(kCuda, each.sizes, each.before, each.values, true) == wanted);
    CHECK(added(kCuda, each.sizes, each.before, each.values, true, D::F64) == wanted);
  }
}

TEST_CASE("gradients of small embeddings are sums over all rows on CUDA") {
  const auto gradient = [](const Device& device, std::vector<sym::Expr> indices, sym::Expr places, sym::Expr width) {
    Calls calls(device);
    std::vector<sym::Expr> sizes = indices;
    sizes.push_back(width);
    const Arg g = calls.input("g", {D::BF16, sizes}), i = calls.input("i", {D::I64, indices});
    return body_of(calls.text(calls.call("aten::embedding_dense_backward", {g, i, Arg(places), int64_t{1}, false}, {D::BF16, {places, width}})));
  };
  const auto contains = [](const Lines& lines, std::string_view what) {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(what) != std::string::npos; });
  };
  CHECK(contains(gradient(kCuda, {2, 3}, 10, 4), "reduce<sum"));
  CHECK_FALSE(contains(gradient(kCpu, {2, 3}, 10, 4), "reduce<sum"));
  CHECK(is_call(gradient(kCuda, {64, 128}, 30522, 768)));
  CHECK(is_call(gradient(kCuda, {64, sym::Expr::symbol("s0")}, 10, 4)));
}

TEST_CASE("slices and ranges of memory need no indices") {
  Calls calls(kCpu);
  const Arg x = calls.input("x", {D::F32, {8, 4}}), s = calls.input("s", {D::F32, {3, 4}});
  CHECK(body_of(calls.text(calls.call("aten::slice_scatter", {x, s, int64_t{0}, int64_t{1}, int64_t{7}, int64_t{2}}, {D::F32, {8, 4}}))) ==
        Lines{"%0 = scatter<target=[0, 1], start=[1, 0], step=[2, 1]>(%x, %s)"});

  const TensorType base{D::F32, {8, 4}};
  CHECK(strided(base, true, {2, 4}, {4, 1}, 12) == Lines{"%0 = neg(%x)", "%1: f32[32] = reshape(%0)", "%2: f32[8] = reshape(%s)",
                                                         "%3 = scatter<target=[0], start=[12]>(%1, %2)", "%4: f32[8, 4] = reshape(%3)", "%5 = identity(%4)"});
  CHECK(strided(base, true, {8, 2}, {4, 2}, 0).size() > 6);                                   // at counted positions
  CHECK(is_call(strided(base, false, {2, 4}, {4, 1}, 12)));                                   // an input may begin anywhere in its storage
  CHECK(strided(base, true, {3, 4}, {2, 1}, 0).back().find("extern") != std::string::npos);   // overlaps
  CHECK(strided(base, true, {2, 4}, {4, 1}, 28).back().find("extern") != std::string::npos);  // leaves the tensor
}

}  // namespace cxxinductor::frontend

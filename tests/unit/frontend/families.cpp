#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;
using Lines = std::vector<std::string>;
const sym::Expr s0 = sym::Expr::symbol("s0");

ArgList ints(std::initializer_list<int64_t> values) { return ArgList(values.begin(), values.end()); }

Lines import_one(TensorType input, const std::string& name, std::vector<Arg> rest, std::vector<TensorType> results, Device device = kCuda) {
  Calls calls(device);
  std::vector<Arg> args{calls.input("x", std::move(input))};
  args.insert(args.end(), rest.begin(), rest.end());
  for (const Arg& value : calls.call_many(name, args, std::move(results))) calls.output(value);
  return body_of(graph::print(calls.import()));
}

}  // namespace

TEST_CASE("sums accumulate in the compute type and round once") {
  CHECK(import_one({D::BF16, {3, 5}}, "aten::sum.dim_IntList", {ints({-1}), true}, {{D::BF16, {3, 1}}}) ==
        Lines{"%0 = cast<f32>(%x)", "%1 = reduce<sum, dims=[1], keepdim>(%0)", "%2 = cast<bf16>(%1)"});
  CHECK(import_one({D::Bool, {3, 5}}, "aten::sum", {}, {{D::I64, {}}}) == Lines{"%0 = cast<i64>(%x)", "%1 = reduce<sum>(%0)"});
  CHECK(import_one({D::F32, {3, 5}}, "aten::prod.dim_int", {int64_t{0}}, {{D::F32, {5}}}) == Lines{"%0 = reduce<prod, dims=[0]>(%x)"});
}

TEST_CASE("mean multiplies by the inverse count on CUDA and divides on the CPU") {
  CHECK(import_one({D::F32, {3, 4}}, "aten::mean.dim", {ints({1})}, {{D::F32, {3}}}) == Lines{"%0 = reduce<sum, dims=[1]>(%x)", "%1 = mul(%0, 0.25)"});
  CHECK(import_one({D::F32, {3, 4}}, "aten::mean", {}, {{D::F32, {}}}, kCpu) == Lines{"%0 = reduce<sum>(%x)", "%1 = div(%0, 12.0)"});
  CHECK(import_one({D::F32, {s0}}, "aten::mean", {}, {{D::F32, {}}}, kCpu) ==
        Lines{"%0 = reduce<sum>(%x)", "%1: i64[] = full(expr(s0))", "%2 = cast<f32>(%1)", "%3 = div(%0, %2)"});
}

TEST_CASE("extrema keep their dtype, with indices beside") {
  CHECK(import_one({D::BF16, {3, 5}}, "aten::amax", {ints({1}), true}, {{D::BF16, {3, 1}}}) == Lines{"%0 = reduce<max, dims=[1], keepdim>(%x)"});
  CHECK(import_one({D::I32, {3, 5}}, "aten::max.dim", {int64_t{-1}}, {{D::I32, {3}}, {D::I64, {3}}}) ==
        Lines{"%0 = reduce<max, dims=[1]>(%x)", "%1 = reduce<argmax, dims=[1]>(%x)"});
  CHECK(import_one({D::F32, {3, 5}}, "aten::argmin", {}, {{D::I64, {}}}) == Lines{"%0 = reduce<argmin, dims=[0, 1]>(%x)"});
  CHECK(import_one({D::U8, {3}}, "aten::any", {}, {{D::U8, {}}}) == Lines{"%0 = reduce<any>(%x)", "%1 = cast<u8>(%0)"});
}

TEST_CASE("variance is Welford over count minus correction") {
  Calls calls;
  const Arg x = calls.input("x", {D::F16, {3, 5}});
  const auto lines = body_of(calls.text(calls.call("aten::std.correction", {x, ints({1})}, {D::F16, {3}}, {{"correction", int64_t{1}}, {"keepdim", false}})));
  CHECK(lines == Lines{"%0 = cast<f32>(%x)", "%1, %2 = reduce<welford, dims=[1]>(%0)", "%3 = div(%2, 4.0)", "%4 = sqrt(%3)", "%5 = cast<f16>(%4)"});
}

TEST_CASE("softmax computes in f32 and rounds once") {
  CHECK(import_one({D::BF16, {s0, 1000}}, "aten::_softmax", {int64_t{-1}, false}, {{D::BF16, {s0, 1000}}}) ==
        Lines{"%0 = cast<f32>(%x)", "%1 = reduce<max, dims=[1], keepdim>(%0)", "%2: f32[s0, 1000] = expand(%1)", "%3 = sub(%0, %2)", "%4 = exp(%3)",
              "%5 = reduce<sum, dims=[1], keepdim>(%4)", "%6: f32[s0, 1000] = expand(%5)", "%7 = div(%4, %6)", "%8 = cast<bf16>(%7)"});
  CHECK(import_one({D::F16, {4, 8}}, "aten::_log_softmax", {int64_t{1}, true}, {{D::F32, {4, 8}}}).back() == "%8 = sub(%3, %7)");
}

TEST_CASE("layer norm returns its statistics in the metadata's dtypes") {
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {3, 8}});
  const Arg w = calls.input("w", {D::BF16, {8}});
  for (const Arg& value :
       calls.call_many("aten::native_layer_norm", {x, ints({8}), w, None{}, 1e-5}, {{D::BF16, {3, 8}}, {D::F32, {3, 1}}, {D::F32, {3, 1}}})) {
    calls.output(value);
  }
  CHECK(body_of(graph::print(calls.import())) == Lines{"%0 = cast<f32>(%x)", "%1, %2 = reduce<welford, dims=[1], keepdim>(%0)", "%3 = div(%2, 8.0)",
                                                       "%4 = add(%3, 1e-05)", "%5 = rsqrt(%4)", "%6: f32[3, 8] = expand(%1)", "%7 = sub(%0, %6)",
                                                       "%8: f32[3, 8] = expand(%5)", "%9 = mul(%7, %8)", "%10 = cast<f32>(%w)", "%11: f32[3, 8] = expand(%10)",
                                                       "%12 = mul(%9, %11)", "%13 = cast<bf16>(%12)"});
}

TEST_CASE("batch norm in inference reads the running statistics") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {2, 3, 4, 4}}), v = calls.input("v", {D::F32, {3}});
  const auto results =
      calls.call_many("aten::_native_batch_norm_legit_no_training", {x, v, v, v, v, 0.1, 1e-5}, {{D::F32, {2, 3, 4, 4}}, {D::F32, {0}}, {D::F32, {0}}});
  calls.output(results[0]);
  const graph::Graph graph = calls.import();
  CHECK(count_externs(graph) == 0);
  for (const graph::Node& node : graph.nodes) CHECK(node.as<graph::Reduce>() == nullptr);
}

TEST_CASE("statistics that a batch norm in inference returns are no inputs") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {2, 3, 4, 4}}), v = calls.input("v", {D::F32, {3}});
  const auto results = calls.call_many("aten::native_batch_norm", {x, v, v, v, v, false, 0.1, 1e-5}, {{D::F32, {2, 3, 4, 4}}, {D::F32, {3}}, {D::F32, {3}}});
  for (const Arg& result : results) calls.output(result);
  const graph::Graph graph = calls.import();
  CHECK(count_externs(graph) == 0);
  for (const graph::Output& output : graph.outputs) CHECK(graph.values[output.value].producer.valid());
}

TEST_CASE("views become index maps") {
  CHECK(import_one({D::F32, {2, 12}}, "aten::view", {ints({2, 3, -1})}, {{D::F32, {2, 3, 4}}}) == Lines{"%0: f32[2, 3, 4] = reshape(%x)"});
  CHECK(import_one({D::F32, {2, 3, 4}}, "aten::permute", {ints({0, -1, 1})}, {{D::F32, {2, 4, 3}, {12, 1, 4}}}) == Lines{"%0 = permute<dims=[0, 2, 1]>(%x)"});
  CHECK(import_one({D::F32, {2, 3, 4}}, "aten::transpose.int", {int64_t{0}, int64_t{2}}, {{D::F32, {4, 3, 2}, {1, 4, 12}}}) ==
        Lines{"%0 = permute<dims=[2, 1, 0]>(%x)"});
  CHECK(import_one({D::F32, {3, 1}}, "aten::expand", {ints({5, 3, -1})}, {{D::F32, {5, 3, 1}, {0, 1, 1}}}).at(0) == "%0: f32[5, 3, 1] = expand(%x)");
  CHECK(import_one({D::C64, {3, 4}}, "aten::t", {}, {{D::C64, {4, 3}, {1, 4}}}) == Lines{"%0 = permute<dims=[1, 0]>(%x)"});
}

TEST_CASE("slices clamp and wrap") {
  const auto slice = [](sym::Expr size, std::vector<Arg> rest, sym::Expr length, sym::Expr stride = 1) {
    return import_one({D::F32, {size}}, "aten::slice.Tensor", std::move(rest), {{D::F32, {length}, {stride}}});
  };
  CHECK(slice(10, {int64_t{0}, int64_t{2}, int64_t{8}, int64_t{3}}, 2, 3).at(0) == "%0: f32[2] = slice<dim=0, start=2, step=3>(%x)");
  CHECK(slice(10, {int64_t{0}, int64_t{-3}}, 3).at(0) == "%0: f32[3] = slice<dim=0, start=7, step=1>(%x)");
  CHECK(slice(10, {int64_t{0}, int64_t{-99}, int64_t{4}}, 4).at(0) == "%0: f32[4] = slice<dim=0, start=0, step=1>(%x)");
  CHECK(slice(10, {int64_t{0}, int64_t{20}}, 0).at(0) == "%0: f32[0] = slice<dim=0, start=10, step=1>(%x)");
  CHECK(slice(10, {int64_t{0}, None{}, None{}}, 10).empty());
}

TEST_CASE("lists of views") {
  CHECK(import_one({D::F32, {2, 7}}, "aten::split.Tensor", {int64_t{3}, int64_t{1}},
                   {{D::F32, {2, 3}, {7, 1}}, {D::F32, {2, 3}, {7, 1}}, {D::F32, {2, 1}, {7, 1}}}) ==
        Lines{"%0: f32[2, 3] = slice<dim=1, start=0, step=1>(%x)", "%1: f32[2, 3] = slice<dim=1, start=3, step=1>(%x)",
              "%2: f32[2, 1] = slice<dim=1, start=6, step=1>(%x)"});
  CHECK(import_one({D::F32, {2, 3}}, "aten::unbind.int", {}, {{D::F32, {3}}, {D::F32, {3}}}).size() == 4);
  CHECK(import_one({D::F32, {2, 3}}, "aten::select.int", {int64_t{1}, int64_t{-1}}, {{D::F32, {2}, {3}}}) ==
        Lines{"%0: f32[2, 1] = slice<dim=1, start=2, step=1>(%x)", "%1: f32[2] = reshape(%0)"});
}

TEST_CASE("concatenation, padding, repetition") {
  Calls calls;
  const Arg x = calls.input("x", {D::BF16, {2, 3}}), y = calls.input("y", {D::F32, {2, 1}}), e = calls.input("e", {D::F32, {0}});
  const auto lines = body_of(calls.text(calls.call("aten::cat", {ArgList{x, e, y}, int64_t{-1}}, {D::F32, {2, 4}})));
  CHECK(lines == Lines{"%0 = cast<f32>(%x)", "%1 = cat<dim=1>(%0, %y)"});
  CHECK(import_one({D::I64, {2, 3}}, "aten::constant_pad_nd", {ints({1, 2, -1, 0}), int64_t{7}}, {{D::I64, {1, 6}}}) ==
        Lines{"%0: i64[1, 6] = pad<low=[-1, 1], fill=i64(7)>(%x)"});
  CHECK(import_one({D::F32, {2}}, "aten::repeat", {ints({3, 2})}, {{D::F32, {3, 4}}}).size() == 4);
  CHECK(import_one({D::F32, {5}}, "aten::roll", {ints({2}), ints({0})}, {{D::F32, {5}}}).at(2) == "%2 = cat<dim=0>(%0, %1)");
}

TEST_CASE("gathers") {
  Calls calls;
  const Arg w = calls.input("w", {D::F16, {100, 8}}), i = calls.input("i", {D::I64, {2, 5}}), j = calls.input("j", {D::I64, {5}});
  calls.output(calls.call("aten::embedding", {w, i}, {D::F16, {2, 5, 8}}));
  calls.output(calls.call("aten::index_select", {w, int64_t{1}, j}, {D::F16, {100, 5}}));
  calls.output(calls.call("aten::gather", {w, int64_t{0}, i}, {D::F16, {2, 5}}));
  calls.output(calls.call("aten::index.Tensor", {w, ArgList{None{}, i}}, {D::F16, {100, 2, 5}}));
  calls.output(calls.call("aten::index.Tensor", {w, ArgList{i, j}}, {D::F16, {2, 5}}));
  CHECK(body_of(graph::print(calls.import())) == Lines{"%0: f16[2, 5, 8] = gather<source=[-1, 2], index_dims=[0, 1], no_wrap>(%w, %i)",
                                                       "%1: f16[100, 5] = gather<source=[0, -1], index_dims=[1], no_wrap>(%w, %j)",
                                                       "%2: f16[2, 5] = gather<source=[-1, 1], index_dims=[0, 1], no_wrap>(%w, %i)",
                                                       "%3: f16[100, 2, 5] = gather<source=[0, -1], index_dims=[1, 2]>(%w, %i)", "%4: i64[2, 5] = expand(%j)",
                                                       "%5: f16[2, 5] = gather<source=[-1, -2], index_dims=[0, 1]>(%w, %i, %4)"});
}

TEST_CASE("indices apart from each other move to the front; masks stay calls") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {3, 4, 5}}), i = calls.input("i", {D::I64, {2}}), m = calls.input("m", {D::Bool, {3}});
  calls.output(calls.call("aten::index.Tensor", {x, ArgList{i, None{}, i}}, {D::F32, {2, 4}}));
  calls.output(calls.call("aten::index.Tensor", {x, ArgList{m}}, {D::F32, {sym::Expr::symbol("u0"), 4, 5}}));
  const graph::Graph graph = calls.import();
  CHECK(body_of(graph::print(graph)).at(0) == "%0: f32[2, 4] = gather<source=[-1, 1, -2], index_dims=[0]>(%x, %i, %i)");
  CHECK(count_externs(graph) == 1);
}

TEST_CASE("creation") {
  Calls calls;
  calls.output(calls.call("aten::full", {ints({2}), 0.3}, {D::BF16, {2}}));
  calls.output(calls.call("aten::arange.start_step", {int64_t{1}, int64_t{10}, int64_t{2}}, {D::F32, {5}}));
  calls.output(calls.call("aten::zeros", {ints({3})}, {D::Bool, {3}}));
  calls.output(calls.call("aten::scalar_tensor", {1.5}, {D::F32, {}}));
  CHECK(body_of(graph::print(calls.import())) ==
        Lines{"%0: bf16[2] = full(0.3)", "%1: i64[5] = iota<start=1, step=2>()", "%2 = cast<f32>(%1)", "%3: bool[3] = full(false)", "%4: f32[] = full(1.5)"});
}

TEST_CASE("tril compares columns with rows") {
  CHECK(import_one({D::F32, {3, 4}}, "aten::tril", {int64_t{1}}, {{D::F32, {3, 4}}}) ==
        Lines{"%0: i64[3] = iota<start=1, step=1>()", "%1: i64[3, 1] = reshape(%0)", "%2: i64[4] = iota<start=0, step=1>()", "%3: i64[3, 4] = expand(%2)",
              "%4: i64[3, 4] = expand(%1)", "%5 = le(%3, %4)", "%6 = where(%5, %x, 0.0)"});
}

}  // namespace cxxinductor::frontend

// Exported models through the C++ API, against ATen: tests/data/pt2 holds the archives.
#include <ATen/ATen.h>
#include <cxxinductor/cxxinductor.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "api/fixtures.h"
#include "unit/catch.h"

namespace {

using cxxinductor::Error;
using cxxinductor::Model;
using cxxinductor::tests::fixture;

at::Tensor mlp(const Model& model, const at::Tensor& x) {
  const at::Tensor hidden = at::relu(at::linear(x, model.weight("up.weight"), model.weight("up.bias")));
  return at::linear(hidden, model.weight("down.weight"));
}

at::Tensor only(std::vector<c10::IValue> results) {
  REQUIRE(results.size() == 1);
  return results[0].toTensor();
}

template <class Run>
std::pair<Error::Kind, std::string> error_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {Error::Kind::Internal, "no error"};
}

template <class Run>
void check_user_error(const Run& run, const std::string& part) {
  const auto [kind, message] = error_of(run);
  INFO(message);
  CHECK(kind == Error::Kind::User);
  CHECK(message.find(part) != std::string::npos);
}

TEST_CASE("a loaded model computes what ATen computes") {
  const Model model = cxxinductor::load(fixture("mlp.pt2"));
  CHECK(model.input_types() == std::vector<std::string>{"x: f32[3, 2] on cpu"});
  CHECK(model.output_types() == std::vector<std::string>{"f32[3, 2] on cpu"});
  CHECK(model.weight_names() == std::vector<std::string>{"down.weight", "up.bias", "up.weight"});
  const at::Tensor x = at::randn({3, 2});
  CHECK(at::allclose(only(model.run({x})), mlp(model, x)));
  // In other strides, too.
  const at::Tensor turned = at::randn({2, 3}).t();
  CHECK(at::allclose(only(model.run({turned})), mlp(model, turned)));
}

TEST_CASE("results carry no gradient, whatever the inputs do") {
  const Model model = cxxinductor::load(fixture("mlp.pt2"));
  const at::Tensor x = at::randn({3, 2}).requires_grad_(true);
  CHECK_FALSE(only(model.run({x})).requires_grad());
}

TEST_CASE("weights are replaced in place, in one model alone") {
  const Model model = cxxinductor::load(fixture("mlp.pt2")), other = cxxinductor::load(fixture("mlp.pt2"));
  const at::Tensor x = at::randn({3, 2}), before = only(other.run({x}));
  model.weight("down.weight").mul_(2);
  CHECK(at::allclose(only(model.run({x})), 2 * before));
  CHECK(at::equal(only(other.run({x})), before));
  check_user_error([&] { (void)model.weight("down"); }, "it has: down.weight");
}

TEST_CASE("tied weights are one tensor's memory") {
  const Model model = cxxinductor::load(fixture("tied.pt2"));
  CHECK(model.weight("table.weight").data_ptr() == model.weight("head.weight").data_ptr());
  const at::Tensor tokens = at::arange(3);
  const at::Tensor rows = at::embedding(model.weight("table.weight"), tokens) * model.weight("scale") + model.weight("row");
  CHECK(at::allclose(only(model.run({tokens})), at::linear(rows, model.weight("head.weight"))));
}

TEST_CASE("buffers and inputs are updated in place, by kernels and by ATen") {
  const char* const tier = GENERATE("kernels", "aten");
  cxxinductor::Options options;
  options.tier = tier;
  const Model model = cxxinductor::load(fixture("training.pt2"), options);
  const at::Tensor mean = model.weight("norm.running_mean"), x = at::randn({4, 2}), count = at::zeros({});
  const at::Tensor expected = 0.9 * mean + 0.1 * x.mean(0);
  (void)model.run({x, count});
  CHECK(at::allclose(mean, expected));
  CHECK(model.weight("norm.num_batches_tracked").item<int64_t>() == 1);
  CHECK(count.item<float>() == 1);
}

TEST_CASE("a model from memory does not need that memory any more") {
  std::ifstream file(fixture("mlp.pt2"), std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const Model model = cxxinductor::load(bytes.data(), bytes.size());
  std::fill(bytes.begin(), bytes.end(), 0);
  const at::Tensor x = at::randn({3, 2});
  CHECK(at::equal(only(model.run({x})), only(cxxinductor::load(fixture("mlp.pt2")).run({x}))));
}

TEST_CASE("several threads run one model") {
  const Model model = cxxinductor::load(fixture("mlp.pt2"));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const at::Tensor x = at::full({3, 2}, t - 1.5), expected = mlp(model, x);
      for (int i = 0; i < 100; ++i) wrong += !at::allclose(only(model.run({x})), expected);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("inputs are checked") {
  const Model model = cxxinductor::load(fixture("mlp.pt2"));
  check_user_error([&] { (void)model.run({}); }, "expected 1 inputs (x: f32[3, 2] on cpu), found 0");
  check_user_error([&] { (void)model.run({int64_t{3}}); }, "input 'x': expected a tensor, found Int");
  check_user_error([&] { (void)model.run({at::Tensor()}); }, "input 'x'");
  check_user_error([&] { (void)model.run({at::randn({3, 2}).to_sparse()}); }, "input 'x': expected a dense tensor");
  check_user_error([&] { (void)model.run({at::randn({3, 2}, at::kDouble)}); }, "(x): expected dtype f32, found f64");
  check_user_error([&] { (void)model.run({at::randn({4, 2})}); }, "(x): expected sizes");
  check_user_error([&] { (void)model.run({at::randn({3, 2, 1})}); }, "(x): expected 2 dimensions, found 3");
}

TEST_CASE("a model says what became of it") {
  const std::string text = cxxinductor::load(fixture("mlp.pt2")).explain();
  INFO(text);
  CHECK(text.starts_with("model '"));
  for (const char* part : {"1 x aten::addmm", "peak memory", "time: "}) CHECK(text.find(part) != std::string::npos);

  cxxinductor::Options options;
  options.tier = "aten";
  const Model model = cxxinductor::load(fixture("mlp.pt2"), options);
  CHECK(model.explain().find("runs op by op through ATen: the option tier=aten asks for it") != std::string::npos);
  const at::Tensor x = at::randn({3, 2});
  CHECK(at::allclose(only(model.run({x})), mlp(model, x)));
  check_user_error([&] { (void)model.run({at::randn({4, 2})}); }, "(x): expected sizes");
}

TEST_CASE("a model that nobody waits for runs through ATen until it is compiled") {
  const Model model = cxxinductor::load(fixture("mlp.pt2"), cxxinductor::without_waiting());
  const at::Tensor x = at::randn({3, 2});
  const auto is_compiling = [&] { return model.explain().find("is being compiled") != std::string::npos; };
  for (int i = 0; i < 1200 && is_compiling(); ++i) {
    CHECK(at::allclose(only(model.run({x})), mlp(model, x)));
    check_user_error([&] { (void)model.run({at::randn({4, 2})}); }, "(x): expected sizes");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  INFO(model.explain());
  CHECK(model.explain().find("peak memory") != std::string::npos);
  CHECK(at::allclose(only(model.run({x})), mlp(model, x)));
  for (int i = 0; i < 4; ++i) (void)cxxinductor::load(fixture("mlp.pt2"), cxxinductor::without_waiting());  // gone before it is compiled
}

TEST_CASE("files that are no models are refused") {
  check_user_error([] { (void)cxxinductor::load("no/such/file.pt2"); }, "no/such/file.pt2");
  check_user_error([] { (void)cxxinductor::load(CXXINDUCTOR_SOURCE_DIR); }, "expected a file");
  check_user_error([] { (void)cxxinductor::load("/dev/null"); }, "expected a file");
  check_user_error([] { (void)cxxinductor::load("not a zip archive", 17); }, "");
  cxxinductor::Options options;
  options.numerics = "quick";
  check_user_error([&] { (void)cxxinductor::load(fixture("mlp.pt2"), options); }, "option 'numerics'");
}

}  // namespace

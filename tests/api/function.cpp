// C++ functions, compiled: results and gradients are eager's.
#include <cxxinductor/function.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <thread>

#include "unit/catch.h"

namespace {

using cxxinductor::Tensors;

// Calls wait for the compiler, so that what is tested is the compiled form.
template <class F>
auto compile_by_default(F function) {
  return cxxinductor::compile(std::move(function), cxxinductor::Options());
}

void check_close_with_strides(const at::Tensor& found, const at::Tensor& expected) {
  REQUIRE(found.defined() == expected.defined());
  if (!expected.defined()) return;
  CHECK(found.sizes() == expected.sizes());
  CHECK(found.strides() == expected.strides());
  CHECK(at::allclose(found, expected, 1e-5, 1e-6));
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(16, 32));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({32})));
    second = register_module("second", torch::nn::Linear(32, 4));
  }
  at::Tensor forward(const at::Tensor& x) { return second(torch::gelu(norm(first(x)))); }
  torch::nn::Linear first = nullptr, second = nullptr;
  torch::nn::LayerNorm norm = nullptr;
};

}  // namespace

TEST_CASE("a function of tensors runs compiled, for sizes that change") {
  const auto eager = [](at::Tensor x, at::Tensor y) { return at::softmax(at::relu(x * y + 1), -1); };
  const auto compiled = compile_by_default(eager);
  const torch::NoGradGuard no_gradients;
  for (int64_t rows : {3, 5, 7, 9}) {
    const at::Tensor x = at::randn({rows, 8}), y = at::randn({8});
    check_close_with_strides(compiled(x, y), eager(x, y));
  }
  INFO(compiled.explain());
  CHECK(has(compiled.explain(), "kernel"));
  CHECK_FALSE(has(compiled.explain(), "ran as they are"));
}

TEST_CASE("an argument may share memory with a tensor that the function holds") {
  const at::Tensor held = at::zeros({8});
  const auto compiled = compile_by_default([held](at::Tensor x) { return x.add_(1) + held; });
  const torch::NoGradGuard no_gradients;
  check_close_with_strides(compiled(at::ones({8})), at::full({8}, 2.));
  check_close_with_strides(compiled(held), at::full({8}, 2.));
  check_close_with_strides(compiled(held.view({8})), at::full({8}, 4.));
  check_close_with_strides(held, at::full({8}, 2.));
  CHECK_FALSE(has(compiled.explain(), "not compiled"));
}

TEST_CASE("a training step has eager's gradients, of arguments and of parameters") {
  torch::manual_seed(0);
  const auto net = std::make_shared<Net>();
  const auto loss = [net](at::Tensor x, at::Tensor y) { return at::mse_loss(net->forward(x), y); };
  const auto compiled = compile_by_default(loss);
  for (int64_t rows : {6, 10, 14}) {
    const at::Tensor x = at::randn({rows, 16}).requires_grad_(), y = at::randn({rows, 4});
    std::vector<at::Tensor> expected, found;
    for (std::vector<at::Tensor>* grads : {&expected, &found}) {
      net->zero_grad();
      x.mutable_grad() = at::Tensor();
      const at::Tensor value = grads == &expected ? loss(x, y) : compiled(x, y);
      CHECK(value.requires_grad());
      value.backward();
      grads->push_back(value.detach());
      grads->push_back(x.grad().clone());
      for (const at::Tensor& p : net->parameters()) grads->push_back(p.grad().clone());
    }
    for (size_t i = 0; i < expected.size(); ++i) check_close_with_strides(found[i], expected[i]);
  }
  const std::string text = compiled.explain();
  INFO(text);
  CHECK(has(text, "backward"));
  CHECK_FALSE(has(text, "ran as they are"));
  CHECK_FALSE(has(text, "through ATen"));
}

TEST_CASE("a training loop of a network with batch norm and dropout is eager's") {
  const auto train = [](bool is_compiled) {
    torch::manual_seed(1);
    torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1).bias(false)), torch::nn::BatchNorm2d(8), torch::nn::ReLU(),
                              torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Dropout(0.25), torch::nn::Linear(8 * 16, 5));
    torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));
    auto step = [net](at::Tensor x, at::Tensor y) mutable { return torch::nn::functional::cross_entropy(net->forward(x), y); };
    const auto compiled = compile_by_default(step);
    std::vector<double> losses;
    for (int i = 0; i < 6; ++i) {
      const at::Tensor x = at::randn({4, 3, 8, 8}), y = at::randint(5, {4});
      optimizer.zero_grad();
      const at::Tensor loss = is_compiled ? compiled(x, y) : step(x, y);
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
    if (is_compiled) {
      INFO(compiled.explain());
      CHECK_FALSE(has(compiled.explain(), "ran as they are"));
    }
    losses.push_back(net->buffers()[0].sum().item<double>());
    losses.push_back(net->buffers()[2].item<double>());
    return losses;
  };
  const std::vector<double> expected = train(false), found = train(true);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(i);
    CHECK(std::abs(found[i] - expected[i]) <= 1e-4 * std::max(1.0, std::abs(expected[i])));
  }
}

TEST_CASE("several results, lists and no gradients") {
  const auto eager = [](at::Tensor x) { return std::make_tuple(x.sin() * 2, x.detach().cos(), at::argmax(x, -1)); };
  const auto compiled = compile_by_default(eager);
  const at::Tensor x = at::randn({4, 6}).requires_grad_();
  const auto [a, b, c] = compiled(x);
  const auto [d, e, f] = eager(x);
  check_close_with_strides(a, d);
  check_close_with_strides(b, e);
  CHECK(c.equal(f));
  CHECK(a.requires_grad());
  CHECK_FALSE(b.requires_grad());
  CHECK_FALSE(c.requires_grad());
  a.sum().backward();
  check_close_with_strides(x.grad(), x.detach().cos() * 2);
  const cxxinductor::Function list = compile_by_default([](Tensors tensors) { return Tensors{at::cat(tensors), tensors[0] + 1}; });
  CHECK(list({at::ones({2}), at::zeros({3})})[0].equal(at::cat({at::ones({2}), at::zeros({3})})));
}

TEST_CASE("a backward pass keeps little, and no more of the caller's tensors than eager's") {
  const auto eager = [](at::Tensor x, at::Tensor w) { return at::log_softmax(at::gelu(at::matmul(x, w)).sin(), -1).exp(); };
  const auto compiled = compile_by_default(eager);
  const at::Tensor leaf = at::randn({16, 8}).requires_grad_(), w = at::randn({8, 100}).requires_grad_();
  std::vector<at::Tensor> expected, found;
  for (std::vector<at::Tensor>* grads : {&expected, &found}) {
    leaf.mutable_grad() = w.mutable_grad() = at::Tensor();
    const at::Tensor x = leaf * 2;
    (grads == &expected ? eager(x, w) : compiled(x, w)).sin().sum().backward();
    *grads = {leaf.grad().clone(), w.grad().clone()};
  }
  for (size_t i = 0; i < expected.size(); ++i) check_close_with_strides(found[i], expected[i]);
  // x and w, the product, and two numbers per row; eager keeps four tensors of the product's size.
  INFO(compiled.explain());
  CHECK(has(compiled.explain(), fmt::format("keeps {} bytes", 4 * (16 * 8 + 8 * 100 + 16 * 100 + 2 * 16))));

  const auto wave = [](at::Tensor x) { return x.exp().sin(); };
  const auto compiled_wave = compile_by_default(wave);
  at::Tensor x = leaf * 1, y = leaf * 1;
  const at::Tensor a = wave(x), b = compiled_wave(y);
  for (at::Tensor* written : {&x, &y}) written->add_(1);  // eager's backward pass reads the exponential alone
  const at::Tensor of_a = torch::autograd::grad({a.sum()}, {leaf})[0], of_b = torch::autograd::grad({b.sum()}, {leaf})[0];
  check_close_with_strides(of_b, of_a);
}

TEST_CASE("autograd's errors are eager's") {
  const auto compiled = compile_by_default([](at::Tensor x) { return at::sigmoid(x * 3); });
  const at::Tensor x = at::randn({5}).requires_grad_();
  at::Tensor y = compiled(x);
  y.sum().backward();
  CHECK_THROWS_WITH(y.sum().backward(), Catch::Contains("a second time"));
  at::Tensor z = compiled(x);
  {
    const torch::NoGradGuard no_gradients;
    z.mul_(2);
  }
  CHECK_THROWS_WITH(z.sum().backward(), Catch::Contains("modified by an inplace operation"));
  CHECK_THROWS_WITH(torch::autograd::grad({compiled(x).sum()}, {x}, {}, true, /*create_graph=*/true), Catch::Contains("gradients of gradients"));
}

struct KeptWarnings : c10::WarningHandler {
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
  std::vector<std::string> texts;
};

TEST_CASE("what cannot be recorded runs as it is, with a warning, and is explained") {
  KeptWarnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  const auto compiled = compile_by_default([](at::Tensor x) { return x.sum().item<float>() > 0 ? x + 1 : x - 1; });
  CHECK(compiled(at::ones({3})).equal(at::full({3}, 2.)));
  CHECK(compiled(-at::ones({3})).equal(at::full({3}, -2.)));
  REQUIRE(warnings.texts.size() == 1);
  CHECK(has(warnings.texts[0], "cxxinductor: function runs as it is: "));
  INFO(compiled.explain());
  CHECK(has(compiled.explain(), "not compiled: "));
  CHECK(has(compiled.explain(), "2 of 2 calls ran as they are"));
  const auto in_place = compile_by_default([](at::Tensor x) { return (x * 2).add_(1).mul_(x); });
  const at::Tensor x = at::randn({4}).requires_grad_();
  in_place(x).sum().backward();
  check_close_with_strides(x.grad(), x.detach() * 4 + 1);
}

TEST_CASE("calls run as they are until the compiled form is there") {
  const auto compiled = cxxinductor::compile([](at::Tensor x) { return at::tanh(x * 2) + 1; });
  const at::Tensor x = at::randn({32}), expected = at::tanh(x * 2) + 1;
  const torch::NoGradGuard no_gradients;
  check_close_with_strides(compiled(x), expected);
  for (int i = 0; i < 600 && has(compiled.explain(), "is being compiled"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  check_close_with_strides(compiled(x), expected);
  INFO(compiled.explain());
  CHECK(has(compiled.explain(), "kernel"));
  CHECK(has(compiled.explain(), "1 of 2 calls ran as they are"));
}

TEST_CASE("threads share a compiled function") {
  const auto eager = [](at::Tensor x) { return at::log_softmax(x * 3, -1); };
  const auto compiled = compile_by_default(eager);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const at::Tensor x = at::randn({2 + t, 5 + i % 3}).requires_grad_();
        const at::Tensor found = compiled(x), expected = eager(x);
        if (!at::allclose(found, expected, 1e-5, 1e-6)) ++wrong;
        const at::Tensor weight = at::randn(x.sizes());
        if (!at::allclose(torch::autograd::grad({found}, {x}, {weight})[0], torch::autograd::grad({expected}, {x}, {weight})[0], 1e-4, 1e-5)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a training step on a GPU has eager's gradients", "[.][gpu]") {
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) FAIL(dlerror());
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    torch::manual_seed(0);
    const auto net = std::make_shared<Net>();
    net->to(at::kCUDA, dtype);
    const auto loss = [net](at::Tensor x, at::Tensor y) { return at::mse_loss(net->forward(x), y); };
    const auto compiled = compile_by_default(loss);
    for (int64_t rows : {64, 48, 80}) {
      const at::Tensor x = at::randn({rows, 16}, at::TensorOptions(at::kCUDA).dtype(dtype)).requires_grad_(), y = at::randn({rows, 4}, x.options());
      std::vector<at::Tensor> expected, found;
      for (std::vector<at::Tensor>* grads : {&expected, &found}) {
        net->zero_grad();
        x.mutable_grad() = at::Tensor();
        const at::Tensor value = grads == &expected ? loss(x, y) : compiled(x, y);
        value.backward();
        grads->push_back(value.detach());
        grads->push_back(x.grad().clone());
        for (const at::Tensor& p : net->parameters()) grads->push_back(p.grad().clone());
      }
      const double tolerance = dtype == at::kFloat ? 1e-4 : 3e-2;
      for (size_t i = 0; i < expected.size(); ++i) CHECK(at::allclose(found[i], expected[i], tolerance, tolerance * expected[i].abs().max().item<double>()));
    }
    INFO(compiled.explain());
    CHECK(has(compiled.explain(), "backward"));
    CHECK_FALSE(has(compiled.explain(), "ran as they are"));
    CHECK_FALSE(has(compiled.explain(), "through ATen"));
  }
}

TEST_CASE("a function has a form for deterministic algorithms") {
  const auto compiled = compile_by_default([](at::Tensor x) { return (x * 2).sum(-1); });
  const torch::NoGradGuard no_gradients;
  const at::Tensor x = at::randn({3, 8});
  for (const bool deterministic : {false, true, false, true}) {
    at::globalContext().setDeterministicAlgorithms(deterministic, false);
    check_close_with_strides(compiled(x), (x * 2).sum(-1));
    at::globalContext().setDeterministicAlgorithms(false, false);
  }
  const std::string text = compiled.explain();
  INFO(text);
  size_t forms = 0;
  for (size_t at = text.find("kernels"); at != std::string::npos; at = text.find("kernels", at + 1)) ++forms;
  CHECK(forms >= 2);
}

TEST_CASE("a function runs as it is where the default dtype is not float") {
  const auto compiled = compile_by_default([](at::Tensor x) { return x / 2; });
  const torch::NoGradGuard no_gradients;
  const at::Tensor x = at::arange(5);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kFloat, at::kDouble}) {
    at::set_default_dtype(c10::scalarTypeToTypeMeta(dtype));
    const at::Tensor found = compiled(x);
    at::set_default_dtype(c10::scalarTypeToTypeMeta(at::kFloat));
    CHECK(found.scalar_type() == dtype);
  }
  INFO(compiled.explain());
  CHECK(has(compiled.explain(), "default dtype"));
}

TEST_CASE("arguments that cannot be recorded run as they are") {
  const auto compiled = compile_by_default([](at::Tensor input, at::Tensor weight, at::Tensor bias) { return at::linear(input, weight, bias); });
  const torch::NoGradGuard no_gradients;
  const at::Tensor x = at::randn({3, 4}), w = at::randn({5, 4}), b = at::randn({5});
  for (int time = 0; time < 2; ++time) {
    check_close_with_strides(compiled(x, w, b), at::linear(x, w, b));
    check_close_with_strides(compiled(x, w, at::Tensor()), at::linear(x, w));
  }
  CHECK_FALSE(has(compiled.explain(), "not compiled"));
  const auto product = compile_by_default([](at::Tensor left, at::Tensor right) { return at::mm(left, right); });
  check_close_with_strides(product(x.to_sparse(), w.t()), at::mm(x, w.t()));
  CHECK(has(product.explain(), "layout Sparse"));
}

TEST_CASE("a dimension of size 1 has the format that its strides tell") {
  const auto eager = [](at::Tensor x) { return at::cat({(x * 2).clone(), x}, 1); };
  const auto compiled = compile_by_default(eager);
  const torch::NoGradGuard no_gradients;
  for (const int64_t rows : {2, 3, 4, 5})
    for (const at::Tensor& x : {at::randn({rows, 1, 4, 5}), at::randn({rows, 4, 5, 1}).permute({0, 3, 1, 2})}) check_close_with_strides(compiled(x), eager(x));
}

TEST_CASE("an assertion that does not hold is an error of its own kind") {
  for (const std::string tier : {"kernels", "aten"}) {
    cxxinductor::Options options;
    options.tier = tier;
    const auto compiled = cxxinductor::compile(
        [](at::Tensor x) {
          at::_assert_async(x.sum() > 0, "the sum is positive");
          return x + 1;
        },
        options);
    const torch::NoGradGuard no_gradients;
    check_close_with_strides(compiled(at::ones({3})), at::full({3}, 2.0));
    try {
      compiled(at::zeros({3}));
      FAIL("it ran");
    } catch (const cxxinductor::Error& error) {
      CHECK(error.kind() == cxxinductor::Error::Kind::Assertion);
      CHECK(std::string(error.what()) == "the sum is positive");
    }
    CHECK_FALSE(has(compiled.explain(), "ran as they are"));
  }
}

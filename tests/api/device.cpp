// The recorded device, beside eager on the device that backs it.
#include <ATen/autocast_mode.h>
#include <cxxinductor/device.h>
#include <torch/torch.h>

#include <functional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "api/recorded_device.h"
#include "unit/catch.h"

namespace {

using cxxinductor::device_counters;
using cxxinductor::explain_device;
using cxxinductor::mark_step;

c10::Device cxxi() { return recorded_device(); }

void check_close(const at::Tensor& found, const at::Tensor& expected) {
  REQUIRE(found.sizes() == expected.sizes());
  CHECK(at::allclose(found.cpu(), expected, 1e-5, 1e-6));
}

using Step = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& y)>;

// Losses of some steps: the loop is the same for both devices.
template <class MakeStep>
std::vector<float> train(c10::Device device, int steps, std::vector<int64_t> x_sizes, std::vector<int64_t> y_sizes, const MakeStep& make_step) {
  torch::manual_seed(3);
  const Step step = make_step(device);
  std::vector<float> losses;
  torch::manual_seed(5);
  std::vector<at::Tensor> xs, ys;
  for (int i = 0; i < steps; ++i) xs.push_back(at::randn(x_sizes)), ys.push_back(at::randn(y_sizes));
  for (int i = 0; i < steps; ++i) losses.push_back(step(xs[static_cast<size_t>(i)].to(device), ys[static_cast<size_t>(i)].to(device)).item<float>());
  return losses;
}

void check_losses(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-5));
}

template <class Optimizer, class Module>
Step make_step(Module model, Optimizer optimizer) {
  auto shared = std::make_shared<Optimizer>(std::move(optimizer));
  return [model, shared](const at::Tensor& x, const at::Tensor& y) mutable {
    shared->zero_grad();
    const at::Tensor loss = torch::mse_loss(model->forward(x), y);
    loss.backward();
    shared->step();
    return loss.detach();
  };
}

torch::nn::Sequential mlp() { return torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::ReLU(), torch::nn::Linear(16, 4)); }

}  // namespace

TEST_CASE("calls are recorded until a value is read") {
  const c10::Device device = cxxi();
  const at::Tensor a = at::randn({3, 4}), b = at::randn({4, 5});
  const at::Tensor x = a.to(device), y = b.to(device);
  CHECK(x.device() == device);
  check_close(x, a);
  const auto before = device_counters();
  const at::Tensor z = (x.matmul(y) + 1).relu() * at::ones({5}, device);
  CHECK(device_counters().runs == before.runs);
  check_close(z, (a.matmul(b) + 1).relu());
  CHECK(device_counters().runs == before.runs + 1);
  CHECK(z.sum().item<float>() == Approx((a.matmul(b) + 1).relu().sum().item<float>()));
  CHECK(device_counters().through_aten == before.through_aten);
}

TEST_CASE("factories and writes to views") {
  const c10::Device device = cxxi();
  const auto run = [](c10::Device where) {
    at::Tensor x = at::arange(24, at::TensorOptions(where).dtype(at::kFloat)).view({4, 6});
    at::Tensor row = x[1], half = x.slice(1, 0, 3);
    row.mul_(2);
    half.add_(at::ones({3}, where));
    x.t().select(0, 5).fill_(-1);
    return std::vector<at::Tensor>{x, half.contiguous(), x.t().sum(0), at::zeros({2, 2}, where), at::full({3}, 7, where)};
  };
  const auto found = run(device), expected = run(c10::kCPU);
  for (size_t i = 0; i < found.size(); ++i) check_close(found[i], expected[i]);
}

TEST_CASE("views of memory that was computed before a sync point") {
  const c10::Device device = cxxi();
  at::Tensor a = at::randn({4, 6}), x = a.to(device);
  at::Tensor view = x.slice(1, 2, 4), expected = a.slice(1, 2, 4);
  mark_step();
  view.add_(1), expected.add_(1);
  x.mul_(2), a.mul_(2);
  mark_step();
  check_close(x, a);
  check_close(view, expected);
}

TEST_CASE("a scalar of the CPU is written at once") {
  at::Tensor scalar = at::zeros({});
  scalar.copy_(at::ones({3}, cxxi()).sum());
  CHECK(scalar.item<float>() == 3);
  at::Tensor factor = at::full({}, 2.0);
  const at::Tensor x = at::ones({3}, cxxi()) * factor;
  factor.fill_(5);
  check_close(x, at::full({3}, 2.0));
}

TEST_CASE("ops without a rule run through ATen and are counted") {
  const c10::Device device = cxxi();
  const at::Tensor a = at::arange(6), x = a.to(device) - 2;
  const auto before = device_counters().through_aten;
  check_close(at::nonzero(x), at::nonzero(a - 2));
  CHECK(device_counters().through_aten == before + 1);
  CHECK(explain_device().find("through ATen: aten::nonzero (1 times)") != std::string::npos);
  CHECK(x.equal(a.to(device) - 2));
}

TEST_CASE("an MLP trains as in eager, one compiled graph per step") {
  const c10::Device device = cxxi();
  const auto sgd = [](c10::Device where) {
    auto model = mlp();
    model->to(where);
    return make_step(model, torch::optim::SGD(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9)));
  };
  const auto adamw = [](c10::Device where) {
    auto model = mlp();
    model->to(where);
    return make_step(model, torch::optim::AdamW(model->parameters(), torch::optim::AdamWOptions(0.01)));
  };
  const auto before = device_counters();
  check_losses(train(device, 6, {5, 8}, {5, 4}, sgd), train(c10::kCPU, 6, {5, 8}, {5, 4}, sgd));
  const auto between = device_counters();
  INFO(explain_device());
  CHECK(between.runs == before.runs + 6);
  CHECK(between.compiled <= before.compiled + 3);  // the first step makes the optimizer's state, the second has gradients to drop
  CHECK(between.through_aten == before.through_aten);
  check_losses(train(device, 6, {5, 8}, {5, 4}, adamw), train(c10::kCPU, 6, {5, 8}, {5, 4}, adamw));
  CHECK(device_counters().runs == between.runs + 6);
  CHECK(device_counters().compiled <= between.compiled + 3);  // the third takes the corrections as inputs
  CHECK(device_counters().uncompiled_runs == before.uncompiled_runs);
  CHECK(device_counters().through_aten == before.through_aten);
  CHECK(explain_device().find("op by op") == std::string::npos);
}

TEST_CASE("a write to what an unsafe view shows is a write to the result") {
  const c10::Device device = cxxi();
  const at::Tensor x = at::randn({2, 5, 8}), weight = at::randn({8, 8}), bias = at::randn({8});
  const auto run = [](const at::Tensor& a, const at::Tensor& w, const at::Tensor& b) {  // as torch::nn::Linear does it
    at::Tensor product = a.matmul(w.t());
    product += b;
    const auto parts = at::unsafe_chunk(product + 1, 2, -1);
    parts[0].mul_(3);
    return std::vector{product, parts[0], parts[1].neg()};
  };
  const auto found = run(x.to(device), weight.to(device), bias.to(device)), expected = run(x, weight, bias);
  for (size_t i = 0; i < found.size(); ++i) check_close(found[i], expected[i]);
}

TEST_CASE("sizes that differ become symbols, integers that follow from them are expressions of them") {
  const c10::Device device = cxxi();
  const at::Tensor table = at::randn({16, 8}), weight = at::randn({8, 8});
  const at::Tensor table_there = table.to(device), weight_there = weight.to(device);
  const auto run = [](const at::Tensor& x, const at::Tensor& rows, const at::Tensor& w) {
    const int64_t batch = x.size(0), length = x.size(1);
    at::Tensor flat = x.matmul(w).view({batch * length, 8});  // a size that is a product
    flat += 1;
    const at::Tensor shifted = flat.view({batch, length, 2, 4}).slice(1, 1, length).transpose(1, 2);
    return (shifted + rows.slice(0, 0, length - 1).view({1, length - 1, 2, 4}).transpose(1, 2)).softmax(2) * static_cast<double>(length);
  };
  int64_t before = device_counters().compiled;
  const auto check = [&](int64_t batch, int64_t length) {
    const at::Tensor x = at::randn({batch, length, 8});
    check_close(run(x.to(device), table_there, weight_there), run(x, table, weight));
    const int64_t compiled = device_counters().compiled - std::exchange(before, device_counters().compiled);
    return compiled;
  };
  CHECK(check(3, 5) == 1);
  CHECK(check(3, 7) == 1);
  CHECK(check(3, 9) == 1);
  for (const int64_t length : {4, 12, 7, 15, 6}) CHECK(check(3, length) == 0);
  CHECK(check(4, 8) == 1);
  CHECK(check(7, 11) == 0);
  CHECK(device_counters().uncompiled_runs == 0);
  INFO(explain_device());
  CHECK(explain_device().find("op by op") == std::string::npos);
}

TEST_CASE("floats that differ in recordings with other sizes, too") {
  const c10::Device device = cxxi();
  const auto before = device_counters().compiled;
  for (int i = 0; i < 12; ++i) {
    const at::Tensor x = at::randn({3 + i % 5, 4});
    at::Tensor there = x.to(device);
    for (int j = 0; j < 3; ++j) there.mul_(1 + 0.01 * i).add_(x.to(device), 0.5 + j);
    at::Tensor here = x.clone();
    for (int j = 0; j < 3; ++j) here.mul_(1 + 0.01 * i).add_(x, 0.5 + j);
    check_close(there, here);
  }
  CHECK(device_counters().compiled <= before + 3);
}

TEST_CASE("a network of convolutions with batch norm, clipped gradients and RMSprop trains as in eager") {
  const auto step = [](c10::Device where) -> Step {
    torch::nn::Sequential model(torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 3).padding(1)), torch::nn::BatchNorm2d(8), torch::nn::ReLU(),
                                torch::nn::MaxPool2d(2), torch::nn::Flatten(), torch::nn::Linear(8 * 16, 4));
    model->to(where);
    auto optimizer = std::make_shared<torch::optim::RMSprop>(model->parameters(), torch::optim::RMSpropOptions(0.01));
    return [model, optimizer](const at::Tensor& x, const at::Tensor& y) mutable {
      optimizer->zero_grad();
      const at::Tensor loss = torch::cross_entropy_loss(model->forward(x), y.argmax(1));
      loss.backward();
      torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
      optimizer->step();
      return loss.detach();
    };
  };
  const c10::Device device = cxxi();
  const auto before = device_counters();
  check_losses(train(device, 4, {2, 3, 8, 8}, {2, 4}, step), train(c10::kCPU, 4, {2, 3, 8, 8}, {2, 4}, step));
  INFO(explain_device());
  CHECK(device_counters().through_aten == before.through_aten);
}

TEST_CASE("a transformer with dropout draws eager's masks") {
  const auto step = [](c10::Device where) -> Step {
    torch::nn::TransformerEncoderLayer model(torch::nn::TransformerEncoderLayerOptions(16, 4).dim_feedforward(32).dropout(0.1));
    model->to(where);
    auto optimizer = std::make_shared<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(0.01));
    return [model, optimizer](const at::Tensor& x, const at::Tensor& y) mutable {
      optimizer->zero_grad();
      const at::Tensor loss = torch::mse_loss(model->forward(x), y);
      loss.backward();
      optimizer->step();
      return loss.detach();
    };
  };
  const c10::Device device = cxxi();
  const auto before = device_counters();
  check_losses(train(device, 3, {6, 2, 16}, {6, 2, 16}, step), train(c10::kCPU, 3, {6, 2, 16}, {6, 2, 16}, step));
  INFO(explain_device());
  CHECK(device_counters().through_aten == before.through_aten);
}

TEST_CASE("a seed that is set while random calls are recorded counts for later ones") {
  const auto draw = [](c10::Device where) {
    torch::manual_seed(1);
    const at::Tensor a = at::rand({4}, where), b = torch::dropout(at::ones({16}, where), 0.5, true);
    torch::manual_seed(1);
    return std::vector<at::Tensor>{a, b, at::rand({4}, where)};
  };
  const auto found = draw(cxxi()), expected = draw(c10::kCPU);
  for (size_t i = 0; i < found.size(); ++i) CHECK(at::equal(found[i].cpu(), expected[i]));
}

TEST_CASE("autocast casts to bfloat16") {
  const at::Tensor x = at::randn({4, 8}).to(cxxi()), w = at::randn({8, 8}).to(cxxi());
  at::autocast::set_autocast_enabled(c10::kPrivateUse1, true);
  at::autocast::set_autocast_dtype(c10::kPrivateUse1, at::kBFloat16);
  const at::Tensor y = x.matmul(w.t()), z = y.softmax(-1);  // t is in none of autocast's lists
  at::autocast::set_autocast_enabled(c10::kPrivateUse1, false);
  at::autocast::clear_cache();
  CHECK(y.scalar_type() == at::kBFloat16);
  CHECK(z.scalar_type() == at::kFloat);
  CHECK(at::allclose(y.cpu().to(at::kFloat), x.cpu().matmul(w.cpu().t()), 0.1, 0.1));
}

TEST_CASE("scaled gradients are checked and unscaled in place") {
  const c10::Device device = cxxi();
  const auto unscale = [](at::Tensor gradient, c10::Device where) {
    at::Tensor found = at::zeros({1}, where);
    const at::Tensor inverse = at::full({1}, 0.5, where);
    std::vector<at::Tensor> gradients{gradient};
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse);
    return found;
  };
  const at::Tensor a = at::randn({5});
  at::Tensor x = a.to(device);
  CHECK(unscale(x, device).item<float>() == 0);
  check_close(x, a * 0.5);
  CHECK(unscale(at::full({3}, INFINITY).to(device), device).item<float>() == 1);
}

TEST_CASE("modules are saved, loaded and printed") {
  const c10::Device device = cxxi();
  auto model = mlp(), loaded = mlp();
  model->to(device);
  std::stringstream file;
  torch::save(model, file);
  torch::load(loaded, file);
  loaded->to(device);
  const at::Tensor x = at::randn({2, 8}).to(device);
  check_close(loaded->forward(x), model->forward(x).cpu());
  std::stringstream printed, expected;
  printed << at::ones({2}, device) + 1;
  CHECK_THAT(printed.str(), mentions("2"));
  model->to(c10::kCPU);
  check_close(loaded->forward(x), model->forward(x.cpu()));
}

TEST_CASE("no_grad and inference mode") {
  const c10::Device device = cxxi();
  auto model = mlp();
  const at::Tensor a = at::randn({2, 8}), expected = model->forward(a).detach();
  model->to(device);
  {
    const torch::NoGradGuard no_grad;
    check_close(model->forward(a.to(device)), expected);
  }
  {
    const c10::InferenceMode inference;
    check_close(model->forward(a.to(device)), expected);
    check_close(torch::linear(a.to(device), at::ones({3, 8}, device)), torch::linear(a, at::ones({3, 8})));
  }
  at::Tensor x = a.to(device);
  x.add_(1);
  check_close(x, a + 1);
}

TEST_CASE("several threads and indices record at once") {
  const c10::Device device = cxxi(), second("cxxi:1");
  std::vector<std::thread> threads;
  std::vector<float> sums(8);
  for (size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&, t] {
      at::Tensor x = at::full({4}, static_cast<double>(t), t % 2 == 0 ? device : second);
      for (int i = 0; i < 20; ++i) x = x + 1;
      sums[t] = x.sum().item<float>();
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < sums.size(); ++t) CHECK(sums[t] == 4 * (static_cast<float>(t) + 20));
  const at::Tensor x = (at::ones({3}, device) + 1).to(second);
  CHECK(x.device() == second);
  check_close(x * 2, at::full({3}, 4.0));
}

TEST_CASE("an assertion that does not hold is an error of its own kind at the sync point") {
  const at::Tensor x = at::zeros({3}, cxxi());
  at::_assert_async(x.sum() > 0, "the sum is positive");
  const at::Tensor y = x + 1;
  try {
    y.cpu();
    FAIL("it ran");
  } catch (const cxxinductor::Error& error) {
    CHECK(error.kind() == cxxinductor::Error::Kind::Assertion);
    CHECK(std::string(error.what()) == "the sum is positive");
  }
}

TEST_CASE("writes to memory that another operand shows are refused where eager refuses them") {
  const auto before = device_counters();
  for (const c10::Device device : {c10::Device(c10::kCPU), cxxi()}) {
    const at::Tensor x = at::arange(12, at::kFloat).reshape({4, 3}).to(device), rows = at::arange(4).to(device);
    const auto refused = mentions("refer to a single memory location");
    CHECK_THROWS_WITH(x.index_copy_(0, rows, x.view({4, 3})), refused);
    CHECK_THROWS_WITH(x.index_add_(0, rows, x), refused);
    CHECK_THROWS_WITH(x.index_put_({rows}, x.slice(0)), refused);
    CHECK_THROWS_WITH(x.scatter_(0, rows.unsqueeze(1).expand({4, 3}), x), refused);
    CHECK_THROWS_WITH(x.slice(0, 1).add_(x.slice(0, 0, 3)), mentions("single memory location"));
  }
  CHECK(device_counters().through_aten == before.through_aten + 5);
  const at::Tensor x = at::ones({4, 3}, cxxi());
  x.add_(x.view({4, 3}));
  x[0].add_(x[1]);
  x.slice(1, 0, 1).mul_(x.slice(1, 1, 2));
  x.index_copy_(0, at::arange(4).to(cxxi()), x + 1);
  const at::Tensor expected = at::full({4, 3}, 3.0);
  expected[0] = 5.0;
  expected.slice(1, 0, 1).copy_(at::tensor({17.0F, 5.0F, 5.0F, 5.0F}).unsqueeze(1));
  check_close(x, expected);
  CHECK(device_counters().through_aten == before.through_aten + 5);
}

TEST_CASE("PrivateUse1 is taken once") {
  cxxi();
  CHECK_THROWS_WITH(cxxinductor::register_device("second"), mentions("registered already, as 'cxxi'"));
}

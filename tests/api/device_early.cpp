// Compiled recordings that start before they have ended: what the program sees is what it sees without that, bit for bit.
#include <ATen/Context.h>
#include <torch/torch.h>

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "api/recorded_device.h"
#include "torch_bridge/device/registration.h"
#include "unit/catch.h"

namespace {

using cxxinductor::device_counters;
using Tensors = std::vector<at::Tensor>;

struct EarlyStarts {
  EarlyStarts() { cxxinductor::torch_bridge::lazy_device().set_early_starts(true); }
  ~EarlyStarts() { cxxinductor::torch_bridge::lazy_device().set_early_starts(false); }
};

struct Network : torch::nn::Module {
  torch::nn::Embedding words{nullptr};
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::Dropout dropout{nullptr};

  Network() {
    words = register_module("words", torch::nn::Embedding(11, 32));
    first = register_module("first", torch::nn::Linear(32, 64));
    dropout = register_module("dropout", torch::nn::Dropout(0.4));
    last = register_module("last", torch::nn::Linear(64, 16));
  }
};

// A training loop in which one step is not as the others are.
struct Loop {
  explicit Loop(c10::Device on) : device(on), shift(at::ones({64}, at::TensorOptions(on))) {}

  enum Twist { None, OtherCall, OtherFloat, Kept, WrittenInput, ReadState, Seeded, OutOfRange, LateValue };

  at::Tensor step(int number, Twist twist) {
    at::Tensor tokens = at::arange(24, at::kLong).mul_(number + 1).remainder_(11).view({4, 6});
    if (twist == OutOfRange) tokens[0][0] = 99;
    tokens = tokens.to(device);
    optimizer->zero_grad();
    at::Tensor hidden = torch::tanh(model->first(model->words(tokens)));
    hidden = model->dropout(hidden + shift);
    if (twist == ReadState) results.push_back(generator().get_state());
    if (twist == Seeded) generator().set_current_seed(77);
    at::Tensor loss = torch::log_softmax(model->last(model->dropout(hidden)), -1).square().mean();
    if (twist == OtherCall) loss = loss * loss;
    if (twist == OtherFloat) loss = loss * 3.0;
    if (twist == WrittenInput) shift.add_(0.5);
    loss.backward();
    if (twist == Kept) kept = hidden;
    optimizer->step();
    if (twist == LateValue) results.push_back(model->first->weight.detach().clone());
    return loss.detach();
  }

  Tensors run(Twist twist) {
    torch::manual_seed(3);
    model = std::make_shared<Network>();
    model->to(device);
    optimizer = std::make_unique<torch::optim::AdamW>(model->parameters(), 0.01);
    for (int number = 0; number < 9; ++number) {
      const bool is_other = number == 6;
      try {
        results.push_back(step(number, is_other ? twist : None).cpu());
      } catch (const std::exception&) {
        results.push_back(at::full({}, -1.0));
      }
    }
    if (kept.defined()) results.push_back(kept.detach());
    for (const at::Tensor& parameter : model->parameters()) results.push_back(parameter.detach());
    results.push_back(at::rand({5}, at::TensorOptions(device)));
    for (at::Tensor& result : results) result = result.cpu();
    return results;
  }

  at::Generator generator() { return at::globalContext().defaultGenerator(device); }

  const c10::Device device;
  std::shared_ptr<Network> model;
  std::unique_ptr<torch::optim::AdamW> optimizer;
  at::Tensor shift, kept;
  Tensors results;
};

void check_equal(const Tensors& found, const Tensors& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("value " << i);
    CHECK(at::equal(found[i], expected[i]));
  }
}

struct Counted {
  int64_t starts = 0, drops = 0;
};

// The loop with early starts beside the loop without, and beside eager.
Counted check(Loop::Twist twist) {
  const c10::Device device = recorded_device();
  {
    const EarlyStarts on;
    Loop(device).run(twist);  // what is compiled is compiled for early starts: the runs that are compared take the same kernels
  }
  const Tensors expected = Loop(device).run(twist);
  const auto before = device_counters();
  Tensors found;
  {
    const EarlyStarts on;
    found = Loop(device).run(twist);
  }
  check_equal(found, expected);
  // Eager raises an error before it draws what follows; the device's comes at the sync point.
  const Tensors eager = twist == Loop::OutOfRange ? found : Loop(c10::kCPU).run(twist);
  REQUIRE(eager.size() == found.size());
  for (size_t i = 0; i < eager.size(); ++i) {
    INFO("value " << i);
    CHECK(at::allclose(found[i].to(at::kFloat), eager[i].to(at::kFloat), 1e-4, 1e-5));
  }
  const auto after = device_counters();
  return {after.early_starts - before.early_starts, after.early_drops - before.early_drops};
}

}  // namespace

TEST_CASE("steps start early and train as without, with dropout") {
  const Counted counted = check(Loop::None);
  CHECK(counted.starts >= 5);
  CHECK(counted.drops == 0);
}

TEST_CASE("a start is dropped when another call follows") { CHECK(check(Loop::OtherCall).drops >= 1); }
TEST_CASE("a start is dropped when a tensor is kept that was dropped before") { CHECK(check(Loop::Kept).drops >= 1); }
TEST_CASE("a start is dropped when an input is written that was not before") { CHECK(check(Loop::WrittenInput).drops >= 1); }
TEST_CASE("a start is dropped when a result is read that was not one before") { CHECK(check(Loop::LateValue).drops >= 1); }
TEST_CASE("a start is dropped when a float is another one") { CHECK(check(Loop::OtherFloat).drops >= 1); }
TEST_CASE("the random state that is read after a start is eager's") { check(Loop::ReadState); }
TEST_CASE("a seed that is set after a start counts for later numbers alone") { check(Loop::Seeded); }
TEST_CASE("an error of an early step is raised at the sync point") { CHECK(check(Loop::OutOfRange).drops >= 1); }

TEST_CASE("wrong predictions in a row become rare") {
  const c10::Device device = recorded_device();
  const EarlyStarts on;
  const auto before = device_counters();
  const at::Tensor x = at::rand({64, 64}).to(device);
  Tensors kept;
  for (int i = 0; i < 48; ++i) {  // A A B B A A B B: what followed last never follows
    at::Tensor y = (x.matmul(x) + 1).matmul(x);
    at::Tensor z = y.matmul(x).sum();
    if (i % 4 < 2) kept.push_back(y);
    y = at::Tensor();
    z.item<float>();
  }
  const auto after = device_counters();
  CHECK(after.early_drops - before.early_drops >= 2);
  CHECK(after.early_drops - before.early_drops <= 12);
}

TEST_CASE("two threads train on two indices, with early starts") {
  recorded_device();
  const auto train = [](c10::Device device) {
    const at::Tensor w = at::linspace(-1, 1, 32 * 32).view({32, 32}).to(device).requires_grad_();
    torch::optim::Adam optimizer({w}, 0.01);
    Tensors losses;
    for (int i = 0; i < 12; ++i) {
      optimizer.zero_grad();
      const at::Tensor x = at::full({8, 32}, 0.01 * i).to(device);
      const at::Tensor loss = torch::tanh(torch::tanh(x.matmul(w)).matmul(w)).square().mean();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.detach().cpu());
    }
    losses.push_back(w.detach().cpu());
    return losses;
  };
  const auto both = [&] {
    std::vector<Tensors> results(2);
    std::vector<std::thread> threads;
    for (c10::DeviceIndex index = 0; index < 2; ++index)
      threads.emplace_back([&, index] { results[static_cast<size_t>(index)] = train(c10::Device(c10::kPrivateUse1, index)); });
    for (std::thread& thread : threads) thread.join();
    return results;
  };
  const auto expected = both();
  const auto before = device_counters();
  const EarlyStarts on;
  const auto found = both();
  check_equal(found[0], expected[0]);
  check_equal(found[1], expected[1]);
  CHECK(device_counters().early_starts > before.early_starts);
}

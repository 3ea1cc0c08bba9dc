// Training loops of LibTorch on the recorded device, beside eager on the device that backs it.
#include <torch/torch.h>

#include <functional>
#include <sstream>
#include <vector>

#include "api/recorded_device.h"
#include "unit/catch.h"

namespace {

using Tensors = std::vector<at::Tensor>;

// The same program on both devices; what it returns is compared.
void check(const std::function<Tensors(c10::Device)>& program, double rtol = 1e-5, double atol = 1e-6) {
  const c10::Device device = recorded_device();
  torch::manual_seed(3);
  const Tensors expected = program(c10::kCPU);
  torch::manual_seed(3);
  const Tensors found = program(device);
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("value " << i);
    REQUIRE(found[i].sizes() == expected[i].sizes());
    REQUIRE(found[i].scalar_type() == expected[i].scalar_type());
    CHECK(at::allclose(found[i].cpu(), expected[i], rtol, atol, /*equal_nan=*/true));
  }
}

struct LoopNetwork : torch::nn::Module {
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Dropout dropout{nullptr};

  LoopNetwork() {
    first = register_module("first", torch::nn::Linear(6, 12));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({12})));
    dropout = register_module("dropout", torch::nn::Dropout(0.2));
    last = register_module("last", torch::nn::Linear(12, 3));
  }
  at::Tensor forward(const at::Tensor& x) { return last(dropout(torch::gelu(norm(first(x))))); }
};

Tensors parameters_of(const torch::nn::Module& module) { return module.parameters(); }

at::Tensor batch(int step, std::vector<int64_t> sizes, c10::Device device) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(step));
  return at::randn(sizes, generator, at::TensorOptions()).to(device);
}

// Losses and parameters of some steps.
template <class Optimizer, class Options>
Tensors train(c10::Device device, Options options) {
  auto model = std::make_shared<LoopNetwork>();
  model->to(device);
  Optimizer optimizer(model->parameters(), options);
  Tensors results;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = batch(step, {4, 6}, device), y = batch(step + 9, {4, 3}, device);
    const auto closure = [&] {
      optimizer.zero_grad();
      at::Tensor loss = torch::mse_loss(model->forward(x), y);
      loss.backward();
      return loss;
    };
    results.push_back(optimizer.step(closure).detach());
  }
  for (const at::Tensor& parameter : model->parameters()) results.push_back(parameter.detach());
  return results;
}

}  // namespace

TEST_CASE("every optimizer of torch::optim trains as in eager") {
  check([](c10::Device d) { return train<torch::optim::SGD>(d, torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true)); });
  check([](c10::Device d) { return train<torch::optim::Adam>(d, torch::optim::AdamOptions(0.01).amsgrad(true)); });
  check([](c10::Device d) { return train<torch::optim::AdamW>(d, torch::optim::AdamWOptions(0.01)); });
  check([](c10::Device d) { return train<torch::optim::Adagrad>(d, torch::optim::AdagradOptions(0.1)); });
  check([](c10::Device d) { return train<torch::optim::RMSprop>(d, torch::optim::RMSpropOptions(0.01).centered(true)); });
  check([](c10::Device d) { return train<torch::optim::LBFGS>(d, torch::optim::LBFGSOptions(0.1).max_iter(3)); });
}

TEST_CASE("a model and its optimizer are saved and go on") {
  check([](c10::Device device) {
    auto model = std::make_shared<LoopNetwork>();
    model->to(device);
    torch::optim::AdamW optimizer(model->parameters(), 0.01);
    const auto step = [&](LoopNetwork& network, torch::optim::Optimizer& of, int number) {
      of.zero_grad();
      network.forward(batch(number, {4, 6}, device)).square().mean().backward();
      of.step();
    };
    model->eval();
    step(*model, optimizer, 0);
    std::stringstream model_file, optimizer_file;
    {
      torch::serialize::OutputArchive archive;
      model->save(archive);
      archive.save_to(model_file);
    }
    torch::save(optimizer, optimizer_file);
    auto other = std::make_shared<LoopNetwork>();
    other->eval();
    other->to(device);
    {
      torch::serialize::InputArchive archive;
      archive.load_from(model_file, device);
      other->load(archive);
    }
    torch::optim::AdamW next(other->parameters(), 0.01);
    torch::load(next, optimizer_file, device);
    step(*other, next, 1);
    return parameters_of(*other);
  });
}

TEST_CASE("tensors are saved and loaded, from and to the device") {
  const c10::Device device = recorded_device();
  const at::Tensor x = batch(0, {3, 4}, device);
  std::stringstream file;
  torch::save(Tensors{x, x.t(), x[1]}, file);
  Tensors loaded;
  torch::load(loaded, file, device);
  REQUIRE(loaded.size() == 3);
  CHECK(loaded[0].device() == device);
  CHECK(at::equal(loaded[1].cpu(), x.cpu().t()));
  CHECK(at::equal(loaded[2].cpu(), x.cpu()[1]));
}

TEST_CASE("recurrent layers train as in eager") {
  check(
      [](c10::Device device) {
        torch::nn::LSTM lstm(torch::nn::LSTMOptions(5, 4).num_layers(2).batch_first(true).bidirectional(true));
        torch::nn::GRU gru(torch::nn::GRUOptions(8, 4));
        torch::nn::RNN rnn(torch::nn::RNNOptions(4, 4));
        lstm->to(device), gru->to(device), rnn->to(device);
        const at::Tensor x = batch(0, {3, 6, 5}, device).requires_grad_();
        const at::Tensor y = std::get<0>(rnn(std::get<0>(gru(std::get<0>(lstm(x))))));
        y.square().sum().backward();
        Tensors results{y.detach(), x.grad()};
        for (const auto& layer : {lstm->parameters(), gru->parameters(), rnn->parameters()})
          for (const at::Tensor& parameter : layer) results.push_back(parameter.grad());
        return results;
      },
      1e-4, 1e-6);
}

TEST_CASE("a module is cloned to the device and back") {
  check([](c10::Device device) {
    torch::nn::Linear linear(4, 4);
    auto there = std::dynamic_pointer_cast<torch::nn::LinearImpl>(linear->clone(device));
    auto again = std::dynamic_pointer_cast<torch::nn::LinearImpl>(there->clone());
    const at::Tensor x = batch(0, {2, 4}, device);
    return Tensors{there->forward(x).detach(), again->forward(x).detach(), linear->forward(x.cpu()).detach()};
  });
}

TEST_CASE("ops in place on metadata change what a tensor shows") {
  check([](c10::Device device) {
    at::Tensor x = batch(0, {4, 6}, device), y = batch(1, {4, 1, 6}, device), z = batch(2, {3}, device);
    x.t_();
    y.squeeze_().unsqueeze_(0).transpose_(0, 1);
    z.resize_({2});
    at::Tensor w = batch(3, {6}, device) + 1;
    w.as_strided_({2, 2}, {2, 1}, 1);
    return Tensors{x, x * 2, y + 1, z, w, w.sum(0)};
  });
}

TEST_CASE("storages have an address of their own") {
  const c10::Device device = recorded_device();
  const at::Tensor x = batch(0, {4, 6}, device), y = x[1], z = x.clone();
  CHECK(x.storage().data() != nullptr);
  CHECK(x.storage().data() == y.storage().data());
  CHECK(x.storage().data() != z.storage().data());
  CHECK(static_cast<const char*>(y.const_data_ptr()) == static_cast<const char*>(x.const_data_ptr()) + 24);
}

TEST_CASE("errors are of eager's kind") {
  const c10::Device device = recorded_device();
  const at::Tensor x = batch(0, {3, 4}, device);
  CHECK_THROWS_AS(x.matmul(x), c10::Error);
  CHECK_THROWS_AS(x.select(0, 7), c10::IndexError);
  CHECK_THROWS_AS(x.view({5}), c10::Error);
  CHECK_THROWS_AS(at::embedding(x, x), c10::Error);
  CHECK(at::allclose((x + 1).cpu(), x.cpu() + 1));
}

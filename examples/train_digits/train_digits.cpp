// Trains a small convolutional network on images of digits with LibTorch's own modules, optimizer and autograd. The loop is unmodified: the model
// and each batch go to the device "cxxi", which records a step and runs it compiled, forward, backward and optimizer in one graph.
//
// Usage: train_digits IMAGES.idx3-ubyte LABELS.idx1-ubyte [--epochs 12] [--device cxxi|cpu|cuda] [--expect 0.97]
// Every fifth image is for testing. Exit status 1 if the accuracy on these is below --expect. Reads MNIST's files too.
#include <cxxinductor/cxxinductor.h>
#include <cxxinductor/device.h>
#include <torch/nn.h>
#include <torch/optim/adamw.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int64_t batch_size = 64;

struct Arguments {
  std::string images, labels, device = "cxxi";
  int epochs = 12;
  double expected_accuracy = 0.97;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name.rfind("--", 0) != 0) {
      files.push_back(name);
      continue;
    }
    if (++i == argc) throw std::invalid_argument(name + ": expected a value");
    if (name == "--epochs")
      arguments.epochs = std::stoi(argv[i]);
    else if (name == "--device")
      arguments.device = argv[i];
    else if (name == "--expect")
      arguments.expected_accuracy = std::stod(argv[i]);
    else
      throw std::invalid_argument("unknown argument " + name);
  }
  if (files.size() != 2) throw std::invalid_argument("expected a file of images and a file of labels");
  arguments.images = files[0];
  arguments.labels = files[1];
  return arguments;
}

// A file of MNIST's IDX format: u8[sizes...].
at::Tensor read_idx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto read_integer = [&file]() -> uint32_t {
    unsigned char bytes[4] = {};
    file.read(reinterpret_cast<char*>(bytes), 4);
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  };
  const uint32_t magic = read_integer();
  if (!file || magic >> 8 != 8 || (magic & 0xff) > 3) throw std::invalid_argument(path + ": expected bytes in IDX format");
  std::vector<int64_t> sizes;
  for (uint32_t i = 0; i < (magic & 0xff); ++i) sizes.push_back(read_integer());
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const at::Tensor tensor = at::empty(sizes, at::kByte);
  if (static_cast<int64_t>(bytes.size()) != tensor.numel()) throw std::invalid_argument(path + ": its size is not what its header says");
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(tensor.mutable_data_ptr()));
  return tensor;
}

struct Digits {
  at::Tensor images, labels;  // f32[n, 1, height, width] in 0..1; i64[n]
};

struct Split {
  Digits training, test;
};

Split read_digits(const Arguments& arguments) {
  at::Tensor images = read_idx(arguments.images).to(at::kFloat).unsqueeze(1);
  images = images / images.max();
  const at::Tensor labels = read_idx(arguments.labels).to(at::kLong);
  if (images.dim() != 4 || images.size(0) != labels.size(0)) throw std::invalid_argument("expected as many labels as images");
  const at::Tensor is_test = at::arange(labels.size(0)) % 5 == 4;
  return {{images.index({~is_test}), labels.index({~is_test})}, {images.index({is_test}), labels.index({is_test})}};
}

struct NetworkImpl : torch::nn::Module {
  NetworkImpl(int64_t height, int64_t width)
      : first(register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)))),
        second(register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)))),
        norm(register_module("norm", torch::nn::BatchNorm2d(32))),
        dropout(register_module("dropout", torch::nn::Dropout(0.25))),
        head(register_module("head", torch::nn::Linear(32 * (height / 2) * (width / 2), 10))) {}

  at::Tensor forward(at::Tensor x) {
    x = torch::relu(first(x));
    x = torch::max_pool2d(torch::relu(norm(second(x))), 2);
    return head(dropout(x.flatten(1)));
  }

  torch::nn::Conv2d first, second;
  torch::nn::BatchNorm2d norm;
  torch::nn::Dropout dropout;
  torch::nn::Linear head;
};
TORCH_MODULE(Network);

// One pass over the images in random order, whole batches; the mean loss.
double train_epoch(Network& model, torch::optim::Optimizer& optimizer, const Digits& digits, at::Device device) {
  model->train();
  const at::Tensor order = torch::randperm(digits.labels.size(0));
  double total = 0;
  int64_t steps = 0;
  for (int64_t begin = 0; begin + batch_size <= order.size(0); begin += batch_size, ++steps) {
    const at::Tensor rows = order.slice(0, begin, begin + batch_size);
    const at::Tensor images = digits.images.index_select(0, rows).to(device), labels = digits.labels.index_select(0, rows).to(device);
    optimizer.zero_grad();
    const at::Tensor loss = torch::cross_entropy_loss(model(images), labels);
    loss.backward();
    optimizer.step();
    total += loss.item<double>();
  }
  return total / static_cast<double>(steps);
}

double accuracy(Network& model, const Digits& digits, at::Device device) {
  const torch::NoGradGuard no_gradients;
  model->eval();
  const at::Tensor found = model(digits.images.to(device)).argmax(1).cpu();
  return (found == digits.labels).to(at::kDouble).mean().item<double>();
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.device == "cxxi") cxxinductor::register_device("cxxi", std::nullopt, cxxinductor::options_from_environment());
  const at::Device device(arguments.device);
  torch::manual_seed(0);
  const auto [training, test] = read_digits(arguments);
  Network model(training.images.size(2), training.images.size(3));
  model->to(device);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(3e-3));

  for (int epoch = 1; epoch <= arguments.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = train_epoch(model, optimizer, training, device);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("epoch %2d: loss %.4f, %.2f s\n", epoch, loss, seconds);
  }
  const double found = accuracy(model, test, device);
  std::printf("accuracy on %ld test images: %.4f\n", static_cast<long>(test.labels.size(0)), found);
  if (arguments.device == "cxxi") {
    const cxxinductor::DeviceCounters counters = cxxinductor::device_counters();
    std::printf("%ld calls recorded, %ld runs of %ld recordings, %ld ops through ATen\n", static_cast<long>(counters.calls), static_cast<long>(counters.runs),
                static_cast<long>(counters.compiled), static_cast<long>(counters.through_aten));
  }
  return found >= arguments.expected_accuracy ? 0 : 1;
} catch (const std::invalid_argument& error) {
  std::cerr << error.what() << "\nusage: train_digits IMAGES LABELS [--epochs 12] [--device cxxi|cpu|cuda] [--expect 0.97]\n";
  return 2;
} catch (const std::exception& error) {  // cxxinductor::Error among them
  std::cerr << error.what() << '\n';
  return 1;
}

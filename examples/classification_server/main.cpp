// Serves an image classifier (a .pt2 file of export.py, or a package of it) on a local socket: requests of many clients are collected into batches,
// which run on several threads and streams. Without --serve it loads itself with clients and prints throughput and a histogram of the latency;
// --compare serves the same requests op by op through ATen: exit status 1 if answers differ.
//
// Usage: classification_server MODEL [--serve SOCKET] [--clients 16] [--requests 2000] [--threads 2] [--batch 16] [--wait-us 2000] [--compare]
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "batcher.h"
#include "clients.h"
#include "socket_server.h"

namespace {

struct Arguments {
  std::string model, socket;
  int clients = 16, requests = 2000, threads = 2;
  BatchLimits limits;
  bool compare = false;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) throw std::invalid_argument(name + ": expected a value");
      return argv[i];
    };
    if (name == "--serve")
      arguments.socket = value();
    else if (name == "--clients")
      arguments.clients = std::stoi(value());
    else if (name == "--requests")
      arguments.requests = std::stoi(value());
    else if (name == "--threads")
      arguments.threads = std::stoi(value());
    else if (name == "--batch")
      arguments.limits.requests = std::stoll(value());
    else if (name == "--wait-us")
      arguments.limits.wait = std::chrono::microseconds(std::stoll(value()));
    else if (name == "--compare")
      arguments.compare = true;
    else if (arguments.model.empty() && name.rfind("--", 0) != 0)
      arguments.model = name;
    else
      throw std::invalid_argument("unknown argument " + name);
  }
  if (arguments.model.empty()) throw std::invalid_argument("expected a model");
  if (arguments.clients < 1 || arguments.requests < 1 || arguments.threads < 1 || arguments.limits.requests < 1)
    throw std::invalid_argument("expected numbers of at least 1");
  return arguments;
}

struct Input {
  std::vector<int64_t> sizes;  // of one image
  at::Device device = at::kCPU;
};

// From the type of the model's input: "images: f32[b, 3, 224, 224] on cuda:0 where 1 <= b <= 64".
Input input_of(const cxxinductor::Model& model) {
  const std::vector<std::string> types = model.input_types();
  const size_t open = types.at(0).find(": f32["), close = types[0].find("] on ");
  if (types.size() != 1 || open == std::string::npos || close == std::string::npos)
    throw std::invalid_argument("expected a model of one f32 batch of images, found: " + types[0]);
  Input input;
  std::string sizes = types[0].substr(open + 6, close - open - 6);
  for (size_t comma = sizes.find(','); comma != std::string::npos; comma = sizes.find(',')) {
    sizes = sizes.substr(comma + 1);
    input.sizes.push_back(std::stoll(sizes));
  }
  const size_t device = close + 5;
  input.device = at::Device(types[0].substr(device, types[0].find(' ', device) - device));
  return input;
}

// The batches that a load will have, so that nothing is compiled under it.
void warm_up(const cxxinductor::Model& model, const Input& input, const BatchLimits& limits) {
  const at::NoGradGuard no_gradients;
  std::vector<int64_t> sizes = input.sizes;
  sizes.insert(sizes.begin(), 0);
  for (sizes[0] = 1; sizes[0] <= limits.requests; ++sizes[0]) model.run({at::zeros(sizes, at::TensorOptions().device(input.device))});
}

Load serve_clients(const char* name, const cxxinductor::Model& model, const Arguments& arguments, const at::Tensor& images) {
  const Input input = input_of(model);
  warm_up(model, input, arguments.limits);
  Batcher batcher(model, input.device, arguments.limits, arguments.threads);
  const std::string path = "/tmp/classification_server." + std::to_string(getpid());
  Load load;
  {
    SocketServer server(path, input.sizes, batcher);
    load = run_clients(path, images, arguments.clients);
  }
  print_load(name, load, batcher.counts());
  return load;
}

int serve_until_interrupted(const cxxinductor::Model& model, const Arguments& arguments) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // of the threads made below too
  const Input input = input_of(model);
  warm_up(model, input, arguments.limits);
  Batcher batcher(model, input.device, arguments.limits, arguments.threads);
  SocketServer server(arguments.socket, input.sizes, batcher);
  std::cout << "serving " << model.input_types()[0] << " at " << arguments.socket << std::endl;
  int received = 0;
  sigwait(&signals, &received);
  return 0;
}

// Labels are equal but where two logits are; scores differ by rounding.
bool agree(const Load& a, const Load& b) {
  size_t labels = 0;
  float difference = 0;
  for (size_t i = 0; i < a.answers.size(); ++i) {
    labels += a.answers[i].label != b.answers[i].label;
    difference = std::max(difference, std::abs(a.answers[i].score - b.answers[i].score));
  }
  std::printf("compared with ATen: %zu of %zu labels differ, scores by at most %.1e\n", labels, a.answers.size(), static_cast<double>(difference));
  return difference < 1e-2F && labels * 100 <= a.answers.size();
}

}  // namespace

int main(int argc, char** argv) try {
  const Arguments arguments = parse_arguments(argc, argv);
  cxxinductor::Options options = cxxinductor::options_from_environment();
  const cxxinductor::Model model = cxxinductor::load(arguments.model, options);
  if (!arguments.socket.empty()) return serve_until_interrupted(model, arguments);

  std::vector<int64_t> sizes = input_of(model).sizes;
  sizes.insert(sizes.begin(), arguments.requests);
  at::manual_seed(0);
  const at::Tensor images = at::randn(sizes);
  const Load compiled = serve_clients("compiled", model, arguments, images);
  if (!arguments.compare) return 0;
  options.tier = "aten";
  return agree(compiled, serve_clients("ATen", cxxinductor::load(arguments.model, options), arguments, images)) ? 0 : 1;
} catch (const std::invalid_argument& error) {
  std::cerr << error.what()
            << "\nusage: classification_server MODEL [--serve SOCKET] [--clients 16] [--requests 2000] [--threads 2] [--batch 16] [--wait-us 2000] "
               "[--compare]\n";
  return 2;
} catch (const std::exception& error) {  // cxxinductor::Error among them
  std::cerr << error.what() << '\n';
  return 1;
}

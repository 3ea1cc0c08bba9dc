// Training steps of a transformer in C++: eager LibTorch, or the same loop on the recorded device. benchmarks/device_step.py runs it.
//
//   training_step eager|device --dtype bf16 --batch 16 --length 512 [--steps 30] [--small]
//
// Prints one line of JSON: milliseconds of the median step after the tenth, the first step's, the losses of the first and the last, and the
// peaks of the GPU's memory over the first and the tenth step.
#include <c10/core/CachingDeviceAllocator.h>
#include <cxxinductor/cxxinductor.h>
#include <cxxinductor/device.h>
#include <torch/nn.h>
#include <torch/optim/adamw.h>
#include <torch/utils.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace {

namespace nn = torch::nn;

struct Sizes {
  int64_t layers = 6, width = 768, heads = 12, words = 8192, longest = 512;
};

struct BlockImpl : nn::Module {
  explicit BlockImpl(const Sizes& sizes)
      : heads(sizes.heads),
        norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({sizes.width})))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({sizes.width})))),
        attention(register_module("attention", nn::Linear(sizes.width, 3 * sizes.width))),
        projection(register_module("projection", nn::Linear(sizes.width, sizes.width))),
        up(register_module("up", nn::Linear(sizes.width, 4 * sizes.width))),
        down(register_module("down", nn::Linear(4 * sizes.width, sizes.width))) {}

  at::Tensor forward(at::Tensor x) {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    const auto parts = attention(norm1(x)).view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, /*is_causal=*/true);
    x = x + projection(mixed.transpose(1, 2).reshape({batch, length, width}));
    return x + down(at::gelu(up(norm2(x))));
  }

  const int64_t heads;
  nn::LayerNorm norm1, norm2;
  nn::Linear attention, projection, up, down;
};
TORCH_MODULE(Block);

struct TransformerImpl : nn::Module {
  explicit TransformerImpl(const Sizes& sizes)
      : words(register_module("words", nn::Embedding(sizes.words, sizes.width))),
        positions(register_module("positions", nn::Embedding(sizes.longest, sizes.width))),
        blocks(register_module("blocks", nn::ModuleList())),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({sizes.width})))),
        head(register_module("head", nn::Linear(sizes.width, sizes.words))) {
    for (int64_t layer = 0; layer < sizes.layers; ++layer) blocks->push_back(Block(sizes));
  }

  at::Tensor forward(const at::Tensor& tokens) {
    at::Tensor x = words(tokens) + positions->weight.slice(0, 0, tokens.size(1));
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return head(norm(x));
  }

  nn::Embedding words, positions;
  nn::ModuleList blocks;
  nn::LayerNorm norm;
  nn::Linear head;
};
TORCH_MODULE(Transformer);

// Of the GPU's allocator.
void reset_peak() {
  if (at::hasCUDA()) c10::getDeviceAllocator(c10::kCUDA)->resetPeakStats(0);
}
double peak_megabytes() {
  constexpr auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<double>(c10::getDeviceAllocator(c10::kCUDA)->getDeviceStats(0).allocated_bytes[all].peak) / (1 << 20);
}

struct Run {
  std::string way, dtype = "bf16";
  int64_t batch = 16, length = 512, steps = 30;
  bool is_small = false;
};

at::Device device_of(const Run& run) {
  if (run.way == "eager") return at::hasCUDA() ? at::kCUDA : at::kCPU;
  cxxinductor::Options options = cxxinductor::options_from_environment();
  options.wait = true;
  cxxinductor::register_device("cxxi", std::nullopt, options);
  return at::Device("cxxi");
}

nlohmann::json measure(const Run& run) {
  const at::Device device = device_of(run);
  torch::manual_seed(0);
  const Sizes sizes = run.is_small ? Sizes{.layers = 2, .width = 64, .heads = 4, .words = 128, .longest = 512} : Sizes{};
  Transformer model(sizes);
  model->to(device, run.dtype == "bf16" ? at::kBFloat16 : at::kFloat);
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-4));
  std::vector<at::Tensor> batches;
  for (int i = 0; i < 4; ++i) batches.push_back(at::randint(sizes.words, {run.batch, run.length}, at::kLong).to(device));
  nlohmann::json peaks = nlohmann::json::object();
  std::vector<double> milliseconds, losses;
  for (int64_t number = 0; number < run.steps; ++number) {
    reset_peak();
    const auto start = std::chrono::steady_clock::now();
    const at::Tensor tokens = batches[static_cast<size_t>(number) % batches.size()];
    optimizer.zero_grad();
    const at::Tensor loss = at::cross_entropy_loss(model->forward(tokens).flatten(0, 1).to(at::kFloat), tokens.flatten());
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
    if (at::hasCUDA()) torch::accelerator::synchronizeDevice(0);
    milliseconds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    if (at::hasCUDA() && (number == 0 || number == 9)) peaks["step " + std::to_string(number + 1)] = peak_megabytes();
  }
  nlohmann::json row{{"way", run.way}, {"dtype", run.dtype}, {"losses", {losses.front(), losses.back()}}, {"peak_megabytes", peaks}};
  row["first_step_seconds"] = milliseconds.front() / 1e3;
  const auto middle = milliseconds.begin() + std::min<std::ptrdiff_t>(10, run.steps - 1);
  const auto median = middle + (milliseconds.end() - middle) / 2;
  std::nth_element(middle, median, milliseconds.end());
  row["step_milliseconds"] = *median;
  if (run.way == "device") {
    const cxxinductor::DeviceCounters counters = cxxinductor::device_counters();
    row["counters"] = {{"calls", counters.calls}, {"runs", counters.runs}, {"uncompiled_runs", counters.uncompiled_runs},
                       {"compiled", counters.compiled}, {"through_aten", counters.through_aten},
                       {"early_starts", counters.early_starts}, {"early_drops", counters.early_drops}};
  }
  return row;
}

}  // namespace

int main(int count, char** arguments) try {
  CLI::App app{"Training steps in C++, eager or on the recorded device"};
  Run run;
  app.add_option("way", run.way)->required()->check(CLI::IsMember({"eager", "device"}));
  app.add_option("--dtype", run.dtype)->check(CLI::IsMember({"f32", "bf16"}));
  app.add_option("--batch", run.batch)->check(CLI::PositiveNumber);
  app.add_option("--length", run.length)->check(CLI::PositiveNumber);
  app.add_option("--steps", run.steps)->check(CLI::PositiveNumber);
  app.add_flag("--small", run.is_small, "a model for a CPU, to see that everything runs");
  CLI11_PARSE(app, count, arguments);
  std::cout << measure(run).dump() << std::endl;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}

// A model from C++ without Python: cxxinductor, AOTInductor's runtime and eager LibTorch in one program. benchmarks/libtorch.py makes the
// files and runs it.
//
//   libtorch_benchmark first (--exported F | --aoti F | --traced F) --inputs I   time to load and of the first call, in a fresh process
//   libtorch_benchmark compare --exported F --aoti F --traced F --inputs I       medians of calls and the host's time of a call
//
// Prints one line of JSON: seconds. Inputs: a list of tensors, saved by torch.save.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <cxxinductor/cxxinductor.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/script.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Files {
  std::string exported, aoti, traced, inputs;
};

std::vector<at::Tensor> read_inputs(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  TORCH_CHECK(file, "cannot read ", path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<at::Tensor> inputs;
  const c10::IValue list = torch::jit::pickle_load(bytes);
  for (const c10::IValue& input : list.toListRef()) inputs.push_back(input.toTensor());
  return inputs;
}

void synchronize() {
  if (at::hasCUDA()) at::detail::getCUDAHooks().deviceSynchronize(0);
}

using Call = std::function<at::Tensor()>;

Call load_exported(const std::string& path, const std::vector<at::Tensor>& inputs) {
  const cxxinductor::Model model = cxxinductor::load(path, cxxinductor::options_from_environment());
  return [model, inputs] { return model.run({inputs.begin(), inputs.end()}).at(0).toTensor(); };
}

Call load_aoti(const std::string& path, const std::vector<at::Tensor>& inputs) {
  const auto loader = std::make_shared<torch::inductor::AOTIModelPackageLoader>(path);
  return [loader, inputs] { return loader->run(inputs).at(0); };
}

// Eager: ATen's kernels in the order of the model, as the interpreter of TorchScript calls them, without its optimizations.
Call load_traced(const std::string& path, const std::vector<at::Tensor>& inputs) {
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::Module module = torch::jit::load(path);
  return [module, inputs]() mutable { return module.forward({inputs.begin(), inputs.end()}).toTensor(); };
}

// The three ways that `files` names, in the order in which they are listed.
std::vector<std::pair<std::string, std::function<Call(const std::vector<at::Tensor>&)>>> ways_of(const Files& files) {
  std::vector<std::pair<std::string, std::function<Call(const std::vector<at::Tensor>&)>>> ways;
  const auto add = [&](const char* name, const std::string& path, Call (*load)(const std::string&, const std::vector<at::Tensor>&)) {
    if (!path.empty()) ways.emplace_back(name, [path, load](const std::vector<at::Tensor>& inputs) { return load(path, inputs); });
  };
  add("cxxinductor", files.exported, load_exported);
  add("aoti", files.aoti, load_aoti);
  add("eager", files.traced, load_traced);
  return ways;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Time to load and of the first call, and of the second.
nlohmann::json first(const Files& files) {
  const std::vector<at::Tensor> inputs = read_inputs(files.inputs);
  synchronize();  // the context of CUDA, which every program makes once
  nlohmann::json row;
  for (const auto& [name, load] : ways_of(files)) {
    const Clock::time_point start = Clock::now();
    const Call call = load(inputs);
    row["load"] = seconds_since(start);
    for (const char* which : {"first_call", "second_call"}) {
      const Clock::time_point called = Clock::now();
      call();
      synchronize();
      row[which] = seconds_since(called);
    }
    row["way"] = name;
  }
  return row;
}

// Medians over calls in turns on an idle device: until the result is there, and until the call returns.
nlohmann::json compare(const Files& files, int repeats) {
  const std::vector<at::Tensor> inputs = read_inputs(files.inputs);
  std::map<std::string, Call> calls;
  std::map<std::string, std::vector<double>> until_done, until_returned;
  std::map<std::string, at::Tensor> results;
  for (const auto& [name, load] : ways_of(files)) calls[name] = load(inputs);
  for (const auto& [name, call] : calls)
    for (int warm_up = 0; warm_up < 10; ++warm_up) results[name] = call();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const auto& [name, call] : calls) {
      synchronize();
      const Clock::time_point start = Clock::now();
      const at::Tensor result = call();
      until_returned[name].push_back(seconds_since(start));
      synchronize();
      until_done[name].push_back(seconds_since(start));
    }
  }
  nlohmann::json row;
  for (const auto& [name, call] : calls) {
    row["done"][name] = median_of(until_done[name]);
    row["returned"][name] = median_of(until_returned[name]);
    if (!files.traced.empty()) {
      const at::Tensor expected = results["eager"].to(at::kDouble), found = results[name].to(at::kDouble);
      row["error"][name] = ((found - expected).norm() / expected.norm()).item<double>();
      // Results in other strides are cheaper where eager's are unaligned, and not what code behind an eager model may rely on.
      row["strides"][name] = results[name].strides();
    }
  }
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Times of a model from C++: cxxinductor, AOTInductor, eager LibTorch."};
  app.require_subcommand(1);
  Files files;
  int repeats = 200;
  CLI::App* const first_command = app.add_subcommand("first", "time to load one of the files, and of its first call");
  CLI::App* const compare_command = app.add_subcommand("compare", "medians of calls, in turns");
  compare_command->add_option("--repeats", repeats, "calls of each")->check(CLI::PositiveNumber);
  for (CLI::App* const command : {first_command, compare_command}) {
    command->add_option("--exported", files.exported, "a .pt2 of torch.export.save, or a package, for cxxinductor")->check(CLI::ExistingFile);
    command->add_option("--aoti", files.aoti, "a package of AOTInductor")->check(CLI::ExistingFile);
    command->add_option("--traced", files.traced, "TorchScript, for eager LibTorch")->check(CLI::ExistingFile);
    command->add_option("--inputs", files.inputs, "a list of tensors, saved by torch.save")->required()->check(CLI::ExistingFile);
  }
  CLI11_PARSE(app, argc, argv);
  const c10::InferenceMode no_gradients;
  std::cout << (first_command->parsed() ? first(files) : compare(files, repeats)).dump() << std::endl;
}

// TorchScript modules, compiled.
#include <ATen/ATen.h>
#include <cxxinductor/jit.h>
#include <torch/csrc/jit/serialization/import.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "support/files.h"
#include "torch_bridge/providers.h"
#include "unit/catch.h"
#include "unit/package/packages.h"

namespace {

using cxxinductor::explain;
using torch::jit::Module;

// Calls wait for the compiler, so that what is tested is the compiled form.
Module optimize_by_default(const Module& module) { return cxxinductor::optimize(module, cxxinductor::Options()); }

Module module_of(const std::string& code) {
  Module module("Model");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", at::randn({8, 8}), false);
  module.register_buffer("scale", at::full({8}, 0.5));
  module.define(code);
  module.eval();
  return module;
}

void check_equal(const Module& module, const Module& optimized, std::vector<c10::IValue> inputs) {
  const c10::InferenceMode inference;
  Module expects = module, gives = optimized;
  const c10::IValue expected = expects.forward(inputs), found = gives.forward(inputs);
  if (expected.isTensor()) {
    CHECK(at::allclose(found.toTensor(), expected.toTensor(), 1e-5, 1e-6));
    CHECK(found.toTensor().strides() == expected.toTensor().strides());
  } else {
    CHECK(found == expected);
  }
}

const char* const mlp_code = R"(
def forward(self, x: Tensor) -> Tensor:
  y = torch.relu(torch.matmul(x, self.weight)) * self.scale
  return torch.softmax(y + 1, -1)
)";

}  // namespace

TEST_CASE("a straight module is one region") {
  const Module module = module_of(mlp_code), optimized = optimize_by_default(module);
  check_equal(module, optimized, {at::randn({3, 8})});
  check_equal(module, optimized, {at::randn({5, 8})});
  check_equal(module, optimized, {at::randn({7, 8})});  // sizes are symbols by now
  check_equal(module, optimized, {at::randn({2, 3, 8})});
  const std::string text = explain(optimized);
  INFO(text);
  CHECK(text.find("region_0") != std::string::npos);
  CHECK(text.find("region_1") == std::string::npos);
  CHECK(text.find("through ATen") == std::string::npos);
}

TEST_CASE("control flow stays, what is between is compiled") {
  const Module module = module_of(R"(
def forward(self, x: Tensor, steps: int) -> Tensor:
  y = torch.relu(torch.matmul(x, self.weight)) + 1
  for i in range(steps):
    y = torch.tanh(torch.matmul(y, self.weight)) * self.scale
    if bool(y.sum() > 0):
      y = y.neg() * 2
  rows = y.size(0) * 2
  return y.repeat(2, 1).view(rows, -1) + rows
)");
  const Module optimized = optimize_by_default(module);
  for (int64_t steps : {0, 1, 3}) check_equal(module, optimized, {at::randn({4, 8}), steps});
  const std::string text = explain(optimized);
  INFO(text);
  CHECK(text.find("region_1") != std::string::npos);
  CHECK(text.find("through ATen") == std::string::npos);
  CHECK(text.find("not compiled") == std::string::npos);
}

TEST_CASE("writes, lists and tuples") {
  const Module module = module_of(R"(
def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, int]:
  y = x.clone()
  y[0].mul_(2)
  y[:, 1:3] += 1
  parts = y.chunk(2, -1)
  all = [parts[0], parts[1], parts[0] * 2]
  z = torch.cat(all, -1)
  return z.relu(), y, z.size(1)
)");
  const Module optimized = optimize_by_default(module);
  const c10::InferenceMode inference;
  const at::Tensor x = at::randn({4, 8});
  Module expects = module, gives = optimized;
  const auto expected = expects.forward({x}).toTuple()->elements().vec(), found = gives.forward({x}).toTuple()->elements().vec();
  CHECK(at::equal(found[0].toTensor(), expected[0].toTensor()));
  CHECK(at::equal(found[1].toTensor(), expected[1].toTensor()));
  CHECK(found[2] == expected[2]);
}

TEST_CASE("loops over lists and branches on sizes are in the region") {
  const Module module = module_of(R"(
def forward(self, x: Tensor, flag: bool) -> Tensor:
  parts = [x]
  for i in range(len(x.size())):
    parts.append(torch.matmul(parts[-1], self.weight).relu())
  if x.size(0) > 4 and flag:
    parts.append(x * 2)
  return torch.cat(parts, -1)
)");
  const Module optimized = optimize_by_default(module);
  for (int64_t rows : {3, 6, 7, 2}) check_equal(module, optimized, {at::randn({rows, 8}), rows != 6});
  const std::string text = explain(optimized);
  INFO(text);
  CHECK(text.find("region_1") == std::string::npos);
  CHECK(text.find("not compiled") == std::string::npos);
  CHECK(text.find("as written") == std::string::npos);
}

TEST_CASE("an optimized module is saved and loaded") {
  const Module module = module_of(mlp_code);
  Module optimized = optimize_by_default(module);
  std::stringstream file;
  optimized.save(file);
  check_equal(module, torch::jit::load(file), {at::randn({3, 8})});
}

TEST_CASE("a packaged module runs without compiling where its key is trusted") {
  const Module module = module_of(mlp_code), optimized = optimize_by_default(module);
  for (int64_t rows : {3, 5}) check_equal(module, optimized, {at::randn({rows, 8})});
  const cxxinductor::PrivateFolder folder(cxxinductor::temporary_folder());
  const std::string key = cxxinductor::join_path(folder.path(), "key.pem"), path = cxxinductor::join_path(folder.path(), "model.pt");
  std::ofstream(key) << cxxinductor::package_file::test_key_pem;
  cxxinductor::PackageOptions package_options;
  package_options.signing_key = key;
  cxxinductor::package(optimized, path, package_options);

  cxxinductor::Options options;
  options.cache = "off";
  options.trusted_keys = cxxinductor::package_file::test_public_key;
  const Module trusted = cxxinductor::load_module(path, options);
  const auto compiled = cxxinductor::torch_bridge::compile_progress();
  for (int64_t rows : {3, 5, 9}) check_equal(module, trusted, {at::randn({rows, 8})});  // 9: by the form whose rows are a symbol
  CHECK(cxxinductor::torch_bridge::compile_progress().given == compiled.given);
  CHECK(explain(trusted).find("not used") == std::string::npos);

  options.trusted_keys = std::string(64, '0');
  const Module other = cxxinductor::load_module(path, options);
  check_equal(module, other, {at::randn({3, 8})});
  CHECK(cxxinductor::torch_bridge::compile_progress().given > compiled.given);
  CHECK(explain(other).find("which option trusted_keys does not list") != std::string::npos);
}

TEST_CASE("gradients take the code as it stands") {
  const Module module = module_of(mlp_code);
  Module optimized = optimize_by_default(module);
  const at::Tensor x = at::randn({3, 8}).requires_grad_();
  optimized.forward({x}).toTensor().sum().backward();
  CHECK(x.grad().defined());
}

TEST_CASE("threads share an optimized module") {
  const Module module = module_of(mlp_code), optimized = optimize_by_default(module);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const c10::InferenceMode inference;
      for (int i = 0; i < 8; ++i) {
        const at::Tensor x = at::randn({2 + (t + i) % 5, 8});
        Module expects = module, gives = optimized;
        if (!at::allclose(gives.forward({x}).toTensor(), expects.forward({x}).toTensor(), 1e-5, 1e-6)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("modules in training mode are refused") {
  Module module = module_of(mlp_code);
  module.train();
  CHECK_THROWS_AS(optimize_by_default(module), cxxinductor::Error);
  CHECK_THROWS_AS(explain(module), cxxinductor::Error);
}

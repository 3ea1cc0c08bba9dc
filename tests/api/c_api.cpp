// The C API from several threads. c_host.c has the rest.
#include <cxxinductor/c.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "api/fixtures.h"
#include "unit/catch.h"

namespace {

TEST_CASE("each thread has its own last error, and one model serves all") {
  cxxinductor_model* model = nullptr;
  REQUIRE(cxxinductor_load(cxxinductor::tests::fixture("mlp.pt2").c_str(), nullptr, &model) == CXXINDUCTOR_OK);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      wrong += std::string(cxxinductor_last_error()) != "";
      const std::string name = "missing" + std::to_string(t), part = "no weight '" + name + "'";
      for (int i = 0; i < 100; ++i) {
        DLManagedTensorVersioned* tensor = nullptr;
        wrong += cxxinductor_weight(model, name.c_str(), &tensor) != CXXINDUCTOR_USER_ERROR;
        cxxinductor_value input{CXXINDUCTOR_INTEGER, {}}, output;
        wrong += std::string(cxxinductor_last_error()).find(part) == std::string::npos;
        wrong += cxxinductor_run(model, &input, 1, &output, 1) != CXXINDUCTOR_USER_ERROR;
        wrong += std::string(cxxinductor_last_error()).find("input 'x'") == std::string::npos;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cxxinductor_last_error() == std::string());
  cxxinductor_free_model(model);
}

}  // namespace

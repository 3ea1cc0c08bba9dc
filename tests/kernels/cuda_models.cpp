// Small real models (tests/models, the graphs that torch.compile handed over, on CUDA): how many kernels they become, and
// that NVRTC compiles every one for two architectures without a word. A change of a count is a change of fusion: say why.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "codegen/cuda/emit.h"
#include "driver/stages.h"
#include "ir/graph/text.h"
#include "runtime/compile_pool.h"
#include "unit/catch.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;

namespace {

namespace fs = std::filesystem;

struct Model {
  std::string name;
  plan::Plan plan;
  int launches_expected = 0;
};

plan::Plan planned(const std::string& text) {
  graph::Graph graph = graph::parse(text);
  Options options;
  options.verify = "each";
  options.epilogue_fusion = "never";  // counts are of what fusion makes of the rest
  return driver::plan_of(std::move(graph), cuda_target("sm_90a", 132), options);
}

std::vector<Model> models() {
  std::vector<Model> found;
  for (const auto& entry : fs::directory_iterator(fs::path(CXXINDUCTOR_SOURCE_DIR) / "tests/models")) {
    if (entry.path().extension() != ".cxxi") continue;
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    constexpr std::string_view head = "; launches: ";
    REQUIRE(text.rfind(head, 0) == 0);
    found.push_back({entry.path().stem(), planned(text), std::stoi(text.substr(head.size()))});
  }
  std::sort(found.begin(), found.end(), [](const Model& a, const Model& b) { return a.name < b.name; });
  return found;
}

}  // namespace

TEST_CASE("models become no more kernels than they did", "[cuda][models]") {
  const std::vector<Model> all = models();
  REQUIRE(all.size() >= 5);
  for (const Model& model : all) {
    INFO(model.name);
    CHECK(std::count_if(model.plan.steps.begin(), model.plan.steps.end(), [](const plan::Step& step) { return std::holds_alternative<plan::Launch>(step); }) ==
          model.launches_expected);
  }
}

TEST_CASE("NVRTC compiles the kernels of models without a warning", "[cuda][nvrtc][models]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  struct Job {
    std::string name, arch, log;
  };
  std::map<std::string, Job> jobs;  // by source, so that equal kernels compile once
  for (const Model& model : models())
    for (const plan::Kernel& kernel : model.plan.kernels)
      for (const char* arch : {"sm_80", "sm_90a"}) {
        std::string source = codegen::emit_cuda({&kernel}, {true, false}, model.plan.origins);
        jobs.emplace(std::string(arch) + "\n" + std::move(source), Job{model.name + "." + kernel.name, arch, ""});
      }
  runtime::CompilePool pool(0);
  std::vector<runtime::CompileTask> tasks;
  for (auto& [key, job] : jobs)
    tasks.push_back({job.name, 1, [&nvrtc, &key = key, &job = job](const InterruptCheck&) {
                       job.log = nvrtc->compile_to_cubin(key.substr(key.find('\n') + 1), job.arch, job.name).log;
                     }});
  for (const runtime::CompileFailure& failure : pool.run_all(std::move(tasks))) {
    try {
      std::rethrow_exception(failure.error);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
  }
  for (const auto& [key, job] : jobs) {
    INFO(job.name << " for " << job.arch);
    CHECK(job.log == "");
  }
}

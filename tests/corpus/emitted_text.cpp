// Hashes of the text that is emitted for a corpus of graphs: what is meant to change structure alone changes none of them.
//
// The corpus: the graphs of tests/models, those of tests/filetests that become plans (but for filetests/bodies, whose graphs resemble others),
// and random ones; for each target's architectures.
// CXXINDUCTOR_BLESS=1 rewrites emitted_text.txt. CXXINDUCTOR_TEXTS=FOLDER writes the texts there: those of two builds can be compared.
#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "fuzz/graph_fuzz.h"
#include "ir/graph/text.h"
#include "support/error.h"
#include "text_pipeline.h"
#include "unit/catch.h"

namespace {

using namespace cxxinductor;
namespace fs = std::filesystem;

const fs::path here = fs::path(CXXINDUCTOR_SOURCE_DIR) / "tests";
constexpr int random_graphs = 60;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Graphs by name. Random ones say which device they are for.
std::map<std::string, std::string> corpus(DeviceType device) {
  std::map<std::string, std::string> graphs;
  for (const char* folder : {"models", "filetests"})
    for (const auto& entry : fs::recursive_directory_iterator(here / folder)) {
      if (entry.path().extension() != ".cxxi" || entry.path().parent_path().filename() == "bodies") continue;
      const std::string text(tools::input_part(read_text(entry.path())));
      if (text.find("\ngraph @") != std::string::npos || text.starts_with("graph @")) graphs[fs::relative(entry.path(), here)] = text;
    }
  for (uint64_t seed = 1; seed <= random_graphs; ++seed)
    graphs[fmt::format("random/{}", seed)] = graph::print(fuzz::random_graph(seed, {.steps = 18, .externs = false, .device = device}).graph);
  return graphs;
}

// "" where the graph is not for the target, or is one that is to be refused.
std::string run_to(std::string_view stage, const std::string& graph, const std::string& target) {
  try {
    return tools::run_text(graph, {tools::parse_steps(stage), tools::parse_targets(target, graph), {}});
  } catch (const UserError&) {
    return {};
  } catch (const Unsupported&) {
    return {};
  }
}

}  // namespace

TEST_CASE("the emitted text of the corpus is what it was", "[corpus]") {
  const fs::path file = here / "corpus" / "emitted_text.txt";
  const char* const bless = std::getenv("CXXINDUCTOR_BLESS");
  const char* const folder = std::getenv("CXXINDUCTOR_TEXTS");
  std::string found;
  for (const auto& [device, target] :
       {std::pair(DeviceType::Cuda, "cuda sm_80"), {DeviceType::Cuda, "cuda sm_90a"}, {DeviceType::Cpu, "cpu x86-64-v3"}, {DeviceType::Cpu, "cpu x86-64-v4"}})
    for (const auto& [name, graph] : corpus(device)) {
      const std::string text = run_to("source", graph, target);
      if (text.empty()) continue;
      found += fmt::format("{:016x} {} {}\n", XXH3_64bits(text.data(), text.size()), target, name);
      if (!folder) continue;
      const fs::path path = fs::path(folder) / target / (name + ".txt");
      fs::create_directories(path.parent_path());
      std::ofstream(path) << text;
    }
  if (bless) std::ofstream(file) << found;
  INFO("CXXINDUCTOR_TEXTS=FOLDER writes the texts, CXXINDUCTOR_BLESS=1 the hashes");
  CHECK(found == read_text(file));
}

TEST_CASE("the bodies of the corpus are valid", "[corpus]") {
  size_t found = 0;
  for (const auto& [device, target] : {std::pair(DeviceType::Cuda, "cuda sm_80"), {DeviceType::Cuda, "cuda sm_90a"}, {DeviceType::Cpu, "cpu x86-64-v3"}})
    for (const auto& [name, graph] : corpus(device)) {
      INFO(name << " for " << target);
      CHECK_NOTHROW(found += run_to("bodies", graph, target).size());
    }
  CHECK(found > 0);
}

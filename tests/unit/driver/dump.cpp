// Folders of dumps: which files an option asks for.
#include "driver/dump.h"

#include <filesystem>
#include <set>

#include "ir/graph/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using Names = std::set<std::string>;

namespace {

driver::Report report_of(bool fusion = true, driver::TextPasses passes = {}) {
  runtime::PlainHost host;
  driver::Request request;
  request.graph = graph::parse("graph @f(%x: f32[8, 4]) {\n  %0 = add(%x, 1.0)\n  %1 = relu(%0)\n  return %1\n}\n");
  request.targets = cpu_target("x86-64-v3", 1);
  request.host = &host;
  request.keep_texts = true;
  request.options.fusion = fusion;
  request.text_passes = std::move(passes);
  return driver::compile(std::move(request)).report;
}

Names files_of(const driver::Report& report, const std::string& what) {
  const runtime::TemporaryFolder folder;
  Names names;
  for (const auto& entry : std::filesystem::directory_iterator(driver::write_dump(report, "f", folder.path(), what))) names.insert(entry.path().filename());
  return names;
}

}  // namespace

TEST_CASE("a dump holds a file per stage, numbered in pipeline order", "[dump]") {
  const driver::Report report = report_of();
  CHECK(files_of(report, "graph") == Names{"01-import.txt", "02-graph-passes.txt"});
  CHECK(files_of(report, "loops") == Names{"04-lower.txt", "05-fuse.txt", "06-loops-passes.txt"});
  CHECK(files_of(report, "plan") == Names{"07-select-kernels.txt", "08-place-memory.txt", "09-merge-kernels.txt", "10-fit-memory.txt"});
  CHECK(files_of(report, "source") == Names{"kernels"});
  CHECK(files_of(report, "after:source,after:lower") == Names{"04-lower.txt", "11-source.txt"});
  CHECK(files_of(report, "all") == Names{"01-import.txt", "02-graph-passes.txt", "04-lower.txt", "05-fuse.txt", "06-loops-passes.txt", "07-select-kernels.txt",
                                         "08-place-memory.txt", "09-merge-kernels.txt", "10-fit-memory.txt", "11-source.txt", "kernels", "settings.txt"});
  CHECK(files_of(report_of(false), "after:fuse,after:lower") == Names{"04-lower.txt"});  // the option skips fuse
}

TEST_CASE("templates of a dump lie where sources include them", "[dump]") {
  driver::Report report = report_of();
  REQUIRE(report.kernel_sources.size() == 1);
  report.kernel_sources[0].text = "#include \"cuda/prelude.cuh\"\n";
  const runtime::TemporaryFolder folder;
  const std::filesystem::path kernels = std::filesystem::path(driver::write_dump(report, "f", folder.path(), "source")) / "kernels";
  for (const char* name : {"cuda/prelude.cuh", "shared/philox.h", "intrinsics/cuda/arithmetic.cuh"}) CHECK(std::filesystem::file_size(kernels / name) > 0);
}

TEST_CASE("a dump holds the form after a text pass", "[dump]") {
  const auto same = [](const std::string& text) { return text; };
  const driver::Report report = report_of(true, {std::make_shared<const driver::TextPass>("mine", "lower", "1", same)});
  CHECK(files_of(report, "after:mine") == Names{"04-lower+mine.txt"});
  CHECK(files_of(report, "loops") == Names{"04-lower.txt", "04-lower+mine.txt", "05-fuse.txt", "06-loops-passes.txt"});
}

TEST_CASE("an unknown stage is refused", "[dump]") {
  Options options;
  options.dump = "graph,after:lower";
  CHECK_NOTHROW(driver::check_dump(options));
  options.dump = "after:lowering";
  CHECK_THROWS_WITH(driver::check_dump(options), mentions("option 'dump': expected the name of a stage, found 'lowering'; known are import, graph-passes"));
}

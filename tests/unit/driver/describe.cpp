// What explain() says of a graph, from its summary.
#include <fmt/format.h>

#include "driver/summary.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

driver::GraphSummary with_missed_fusions(std::vector<plan::MissedFusion> missed) {
  driver::GraphSummary graph;
  graph.missed_fusions = std::move(missed);
  return graph;
}

std::string described(const driver::GraphSummary& graph) { return driver::describe(graph, std::nullopt, "graph"); }

}  // namespace

TEST_CASE("kernels, calls and times are named", "[driver]") {
  driver::GraphSummary graph;
  driver::KernelSummary kernel{.name = "k0_add", .launches = 2, .bytes_read = 30'000, .bytes_written = 8};
  kernel.calls = {{"model.py", 3, "layers.0", "aten.add"}, {"model.py", 3, "layers.0", "aten.add"}, {"", 0, "", "aten.mul"}};
  kernel.sizes = 2;
  graph.kernels = {kernel};
  graph.externs = {"aten::mm", "aten::bmm", "aten::mm"};
  graph.extern_reasons = {{"aten::bmm", {"a library's"}}, {"aten::mm", {"a library's"}}};
  graph.memory = {{Device(), 20'000, 8, 30'000}};
  graph.times = {{"lower", 0.001}, {"select-kernels", 0.0015}, {"verify select-kernels", 0.00001}, {"select-kernels", 0.0005}, {"fit-memory", 0.00001}};
  graph.pass_times = {{"a", 0.0001}, {"b", 0.0003}, {"c", 0.0002}, {"d", 0}};
  const driver::StageTime read{"read graph", 0.002};
  CHECK(driver::describe(graph, driver::ConstSummary{{}, {"aten::mm"}, 3, 40}, "graph", {&read, 1}) ==
        "graph: 1 kernels, 2 launches and 3 extern calls per call; own kernels read 0.06 MB and write 16 bytes\n"
        "  peak memory of what a call allocates: 0.02 MB (eager 0.03 MB), at least 8 bytes (values alive at once)\n"
        "  once, and after writes to parameters: 0 launches and 1 extern calls make 3 tensors, 40 bytes, which are kept\n"
        "  k0_add: 2 launches, each reads 0.03 MB, writes 8 bytes; exact\n"
        "    fuses aten.add (model.py:3, layers.0) x 2, aten.mul\n"
        "    takes sizes as arguments: 2 different ones\n"
        "  extern calls: 1 x aten::bmm, 2 x aten::mm\n"
        "    aten::bmm, aten::mm: a library's\n"
        "  time: 5.0 ms; slowest passes b 0.3, c 0.2, a 0.1\n"
        "    read graph                2.0\n"
        "    lower                     1.0\n"
        "    select-kernels            2.0 (2 runs)\n"
        "    2 others                  0.0");
  CHECK(driver::describe_times(graph, {&read, 1}) ==
        "5.0 ms: read graph 2.0, lower 1.0, select-kernels 2.0 (2 runs), verify select-kernels 0.0, fit-memory 0.0; slowest passes b 0.3, c 0.2, a 0.1");
}

TEST_CASE("the stage that a graph began with is named, however short it was", "[driver]") {
  driver::GraphSummary graph;
  graph.times = {{"read plan", 1e-9}, {"compile kernels", 0.01}, {"executable", 1e-9}};
  CHECK_THAT(driver::describe(graph, std::nullopt, "graph"), mentions("    read plan                 0.0\n    compile kernels          10.0\n    1 others"));
}

TEST_CASE("the sizes that bytes are counted with are stated", "[driver]") {
  driver::GraphSummary graph;
  graph.size_hints = {{"s0", 64}, {"s1", 128}};
  CHECK_THAT(described(graph), mentions("  bytes here are those of s0 = 64, s1 = 128\n"));
  for (int i = 10; i < 30; ++i) graph.size_hints[fmt::format("s{}", i)] = 64;
  CHECK_THAT(described(graph), mentions("s15 = 64 and other symbols\n"));
  CHECK_THAT(described({}), !mentions("bytes here"));
}

TEST_CASE("constants that each call computes are not said to be kept", "[driver]") {
  const driver::ConstSummary constants{{}, {"aten::mm"}, 3, 0, true};
  CHECK_THAT(driver::describe({}, constants, "graph"),
             mentions("  in each call, since PyTorch counts no writes to parameters made in inference mode: 0 launches and 1 extern calls make "
                      "3 tensors, which freezing would keep\n"));
}

TEST_CASE("pairs that share most bytes come first", "[driver]") {
  const std::string few =
      described(with_missed_fusions({{"k0", "k1", "a rule", 40'000}, {"k2", "k3", "another rule", 50'000}, {"k0", "k1", "a rule", 40'000}}));
  CHECK_THAT(few, mentions("  not fused: 3 pairs with 0.13 MB between them\n"
                           "    k0 -> k1 x 2, 0.08 MB: a rule\n"
                           "    k2 -> k3, 0.05 MB: another rule\n"));
  std::vector<plan::MissedFusion> missed;
  for (int i = 0; i < 100; ++i) missed.push_back({fmt::format("k{}", i), "k", "a rule", i});
  CHECK_THAT(described(with_missed_fusions(missed)),
             mentions("between them\n    k99 -> k, 99 bytes: a rule\n") && mentions("    k88 -> k, 88 bytes: a rule\n    and 88 more, 3828 bytes\n"));
  CHECK_THAT(described({}), !mentions("not fused"));
}

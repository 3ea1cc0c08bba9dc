// What emulation finds in kernels that are wrong: races, barriers that not all reach, lanes at different calls, asynchronous work that is not waited
// for. And that a seed changes the order of threads.
#include <algorithm>
#include <numeric>
#include <set>

#include "emulation/host_text.h"
#include "unit/catch.h"

using namespace cxxinductor::tests;

namespace {

constexpr unsigned threads = 64;
constexpr uint64_t seeds = 24;

// A kernel's body: `i` is the thread, `a` has 64 words i + 1, of 16 bytes each; `r` 64 zeros.
std::string kernel(const std::string& name, const std::string& body) {
  return "extern \"C\" __global__ void " + name + "(const uint4* a, unsigned int* r) {\n  const int i = threadIdx.x;\n  __shared__ unsigned int s[64];\n  " +
         body + "\n}\n";
}

class Kernel {
 public:
  explicit Kernel(const std::string& body)
      : text_("#include \"cuda/prelude.cuh\"\n#include \"cuda/tensor_core.cuh\"\n#include \"cuda/warpgroup.cuh\"\n" + kernel("tested", body), {"tested"},
              "emulation") {}
  // The first thing that goes wrong with one of the seeds, or "".
  std::string error() {
    results.clear();
    for (uint64_t seed = 1; seed <= seeds; ++seed)
      if (std::string wrong = run(seed); !wrong.empty()) return wrong;
    return "";
  }
  std::string run(uint64_t seed) {
    alignas(16) unsigned words[threads][4];
    for (unsigned t = 0; t < threads; ++t) std::fill_n(words[t], 4, t + 1);
    std::vector<unsigned> r(threads, 0);
    const void* pointers[] = {words, r.data()};
    void* args[] = {&pointers[0], &pointers[1]};
    std::string wrong = text_.run(0, args, threads, 1, seed);
    results.insert(std::move(r));
    return wrong;
  }
  std::set<std::vector<unsigned>> results;  // of the seeds

 private:
  HostText text_;
};

}  // namespace

TEST_CASE("emulation: accesses of shared memory that no barrier orders are errors", "[emulation]") {
  const auto finds_race = [](const std::string& body) { return Kernel(body).error().find("without a barrier") != std::string::npos; };
  CHECK_FALSE(finds_race("s[i] = a[i].x; cxxi_sync_block(); r[i] = s[63 - i];"));
  CHECK(finds_race("s[i] = a[i].x; r[i] = s[63 - i];"));
  CHECK(finds_race("s[i] = a[i].x; cxxi_sync_block(); r[i] = s[63 - i]; s[i] = 0;"));
  CHECK(finds_race("s[i / 64] = i; cxxi_sync_block(); r[i] = s[i];"));
  CHECK_FALSE(finds_race("s[i] = a[i].x; cxxi_sync_warp(); r[i] = s[i ^ 31];"));
  CHECK(finds_race("s[i] = a[i].x; cxxi_sync_warp(); r[i] = s[i ^ 32];"));
  CHECK(finds_race("s[i] = 1; cxxi_sync_block(); r[i] = s[i / 64]; if (i == 40) s[a[i].x - 41] = 2;"));
  const std::string copy = "__shared__ uint4 to[64]; cxxi_copy_async(to + i, a + i, 16); cxxi_commit_copies(); ";
  CHECK_FALSE(finds_race(copy + "cxxi_wait_copies<0>(); cxxi_sync_block(); r[i] = to[63 - i].x;"));
  CHECK(finds_race(copy + "cxxi_sync_block(); cxxi_wait_copies<0>(); r[i] = to[63 - i].x;"));
}

TEST_CASE("emulation: threads that wait for what does not come are errors", "[emulation]") {
  CHECK_THAT(Kernel("if (i % 2 == 0) cxxi_sync_block(); else cxxi_sync_warp();").error(), mentions("not all threads reach"));
  CHECK_THAT(Kernel("r[i] = i < 40 ? cxxi_from_lane(i, 1) : cxxi_of_lane(i, 1);").error(), mentions("cxxi_of_lane") && mentions("lanes of a warp are at"));
  CHECK_THAT(Kernel("if (i == 3) return; r[i] = cxxi_from_lane(i, 1);").error(), mentions("cxxi_from_lane: lanes of the warp have returned"));
  CHECK(Kernel("if (i >= 32) return; r[i] = cxxi_from_lane(i, 1); cxxi_sync_block();").error() == "");
}

TEST_CASE("emulation: asynchronous work is done early and late", "[emulation]") {
  const auto outcomes = [](const std::string& body) {
    Kernel tested(body);
    REQUIRE(tested.error() == "");
    return tested.results.size();
  };
  const std::string copies =
      "__shared__ uint4 to[128]; cxxi_copy_async(to + i, a + i, 16); cxxi_commit_copies(); "
      "cxxi_copy_async(to + 64 + i, a + i, 16); cxxi_commit_copies(); ";
  CHECK(outcomes(copies + "cxxi_wait_copies<1>(); r[i] = to[i].x;") == 1);
  CHECK(outcomes(copies + "cxxi_wait_copies<1>(); r[i] = to[64 + i].x;") > 1);
  CHECK(outcomes(copies + "cxxi_wait_copies<0>(); r[i] = to[64 + i].x;") == 1);
  const std::string products =
      "CXXI_DYNAMIC_SHARED(bytes); cxxi_bf16* const tile = (cxxi_bf16*)(bytes); "
      "for (int e = i; e < 4096; e += 64) tile[e] = cxxi_to_bf16(1.0f); cxxi_publish_stage(); cxxi_sync_block(); "
      "float sums[8][4] = {}; const cxxi_tile_descriptor d = cxxi_describe_tile(tile, 0, 1024, 128); "
      "cxxi_begin_products(); cxxi_multiply_add_group<true, true>(sums, d, d, cxxi_bf16()); cxxi_commit_products(); ";
  CHECK(outcomes(products + "r[i] = (unsigned int)(sums[0][0]);") > 1);
  CHECK(outcomes(products + "cxxi_wait_products<0>(); r[i] = (unsigned int)(sums[0][0]);") == 1);
}

TEST_CASE("emulation: a seed says in which order threads run", "[emulation]") {
  Kernel ranks("unsigned int old = 0, seen; do { seen = old; old = cxxi_compare_and_swap(r, seen, seen + 1); } while (old != seen);");
  CHECK(ranks.error() == "");
  CHECK(ranks.results == std::set{[] {
          std::vector<unsigned> all(threads, 0);
          all[0] = threads;
          return all;
        }()});
  Kernel order(
      "__shared__ unsigned int next[1]; if (i == 0) next[0] = 0; cxxi_sync_block(); unsigned int old = 0, seen; "
      "do { seen = old; old = cxxi_compare_and_swap(next, seen, seen + 1); } while (old != seen); r[i] = seen;");
  CHECK(order.error() == "");
  CHECK(order.results.size() > seeds / 2);
  order.results.clear();
  CHECK((order.run(7) == "" && order.run(7) == "" && order.results.size() == 1));
}

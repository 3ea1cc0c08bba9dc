#include <random>

#include "schedule/plan/arena.h"
#include "unit/catch.h"

namespace cxxinductor::schedule {
namespace {

using sym::Expr;

int64_t value(Expr e, int64_t s0, int64_t s1) {
  return evaluate(e, [&](std::string_view name) { return name == "s0" ? s0 : s1; });
}

// Sizes like those of models: constants, multiples of a batch, odd ones.
Expr random_size(std::mt19937& random) {
  Expr s0 = Expr::symbol("s0"), s1 = Expr::symbol("s1");
  int64_t c = 1 + static_cast<int64_t>(random() % 5000);
  switch (random() % 6) {
    case 0:
      return c;
    case 1:
      return Expr(c) * s0;
    case 2:
      return Expr(c) * s0 * s1;
    case 3:
      return Expr(4) * s0 * s1 * s1;
    case 4:
      return s0 + 3;
    default:
      return Expr(768) * s0;
  }
}

TEST_CASE("buffers that live together never overlap in the arena") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<ArenaRequest> requests;
    for (size_t k = 0; k < 5 + random() % 60; ++k) {
      int first = static_cast<int>(random() % 50);
      requests.push_back({random_size(random), first, first + static_cast<int>(random() % 8)});
    }
    ArenaLayout layout = plan_arena(requests);
    for (auto [s0, s1] : {std::pair<int64_t, int64_t>{1, 1}, {3, 17}, {64, 512}}) {
      int64_t total = value(layout.bytes, s0, s1);
      for (size_t a = 0; a < requests.size(); ++a) {
        int64_t offset = value(layout.offsets[a], s0, s1), end = offset + value(requests[a].bytes, s0, s1);
        CHECK(offset % arena_alignment == 0);
        CHECK(end <= total);
        for (size_t b = 0; b < a; ++b) {
          if (requests[b].last < requests[a].first || requests[a].last < requests[b].first) continue;
          int64_t other = value(layout.offsets[b], s0, s1), other_end = other + value(requests[b].bytes, s0, s1);
          CHECK((end <= other || other_end <= offset));
        }
      }
    }
  }
}

TEST_CASE("a chain of equal buffers needs two places") {
  std::vector<ArenaRequest> requests;
  Expr bytes = Expr(4096) * Expr::symbol("s0");
  for (int k = 0; k < 10; ++k) requests.push_back({bytes, k, k + 1});
  CHECK(plan_arena(requests).bytes == Expr(2) * bytes);
}

TEST_CASE("buffers of one batch size share memory though their widths differ") {
  Expr s0 = Expr::symbol("s0");
  std::vector<ArenaRequest> requests{{Expr(3072) * s0, 0, 1}, {Expr(1024) * s0, 2, 3}, {Expr(2048) * s0, 2, 3}};
  CHECK(plan_arena(requests).bytes == Expr(3072) * s0);
}

TEST_CASE("an empty arena has no bytes") { CHECK(plan_arena({}).bytes.is_constant(0)); }

}  // namespace
}  // namespace cxxinductor::schedule

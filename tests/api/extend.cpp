// Passes that a C++ program registers.
#include <ATen/ATen.h>
#include <cxxinductor/extend.h>
#include <cxxinductor/function.h>

#include <atomic>
#include <stdexcept>

#include "unit/catch.h"
#include "unit/replaced.h"

namespace {

at::Tensor eager(const at::Tensor& x) { return at::relu(x) + 1; }

auto compiled() {
  cxxinductor::Options options;
  options.cache = "off";
  return cxxinductor::compile([](at::Tensor x) { return eager(x); }, options);
}

}  // namespace

TEST_CASE("a registered pass changes what functions compile to, until it is unregistered", "[extend]") {
  const at::Tensor x = at::randn({8});
  std::atomic<int> calls = 0;
  cxxinductor::register_graph_pass({"api-neg", "lower", "1", [&](const std::string& text) {
                                      ++calls;
                                      return replaced(text, "relu(", "neg(");
                                    }});
  const auto changed = compiled();
  CHECK(at::equal(changed(x), -x + 1));
  CHECK(calls >= 1);
  CHECK_THAT(changed.explain(), mentions("registered passes: api-neg (after lower)"));
  CHECK_THROWS_WITH(cxxinductor::register_graph_pass({"api-neg", "fuse", "1", [](const std::string& text) { return text; }}),
                    mentions("the pass api-neg is registered already, after lower with the version 1"));
  cxxinductor::unregister_graph_pass("api-neg");
  cxxinductor::unregister_graph_pass("api-neg");
  CHECK(at::equal(compiled()(x), eager(x)));
}

TEST_CASE("a registered pass that raises sends the graph through ATen", "[extend]") {
  const at::Tensor x = at::randn({8});
  cxxinductor::register_graph_pass({"api-raises", "fuse", "1", [](const std::string&) -> std::string { throw std::runtime_error("no idea"); }});
  const auto function = compiled();
  CHECK(at::equal(function(x), eager(x)));
  CHECK_THAT(function.explain(), mentions("the pass api-raises (after fuse) raised: no idea"));
  cxxinductor::unregister_graph_pass("api-raises");
}

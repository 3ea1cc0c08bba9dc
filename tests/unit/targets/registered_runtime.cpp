// Targets that users register: what of them is checked, their options, and how they are found.
#include "targets/registered/registered_runtime.h"

#include <cmath>
#include <functional>

#include "support/error.h"
#include "targets/registry.h"
#include "unit/catch.h"

using namespace cxxinductor;

namespace {

RegisteredTarget valid() {
  return {.name = "mine",
          .version = "1",
          .options = {{"threads", "4", "of the host"}, {"level", "1", "of the compiler"}},
          .compile = [](const KernelSource& source, const TargetOptions&) { return source.text; },
          .load = [](const std::string&, const TargetOptions&) -> void* { return nullptr; },
          .unload = [](void*) {},
          .launch = [](void*, const KernelLaunch&) {}};
}

std::string refused(const std::function<void(RegisteredTarget&)>& change) {
  RegisteredTarget target = valid();
  change(target);
  try {
    targets::RegisteredRuntime runtime(std::move(target));
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

int threads() { return 2; }
targets::Registry registry() { return targets::Registry({.threads = &threads}); }

}  // namespace

TEST_CASE("what a registered target lacks is named", "[targets]") {
  CHECK(refused([](RegisteredTarget&) {}) == "accepted");
  CHECK(refused([](RegisteredTarget& t) { t.name = "no name"; }) == "register_target: expected a name of letters, digits and '_', found 'no name'");
  CHECK(refused([](RegisteredTarget& t) { t.name = "9th"; }) == "register_target: expected a name of letters, digits and '_', found '9th'");
  CHECK(refused([](RegisteredTarget& t) { t.name = "cuda"; }) == "register_target: expected a name that no device has, found 'cuda'");
  CHECK(refused([](RegisteredTarget& t) { t.version = ""; }) == "register_target(mine): expected a version of one line, found ''");
  CHECK(refused([](RegisteredTarget& t) { t.figures.multiprocessors = 0; }) == "register_target(mine): expected multiprocessors from 1 to 1048576, found 0");
  CHECK(refused([](RegisteredTarget& t) { t.figures.launch_seconds = NAN; }) == "register_target(mine): expected launch_seconds from 0 to 1, found nan");
  CHECK(refused([](RegisteredTarget& t) { t.figures.shared_bytes_per_block = 1024; }) ==
        "register_target(mine): expected shared_bytes_per_block from 49152 to 1073741824, found 1024");
  CHECK(refused([](RegisteredTarget& t) {
          t.options.push_back({"threads", "1", "again"});
        }) == "register_target(mine): expected options with names of their own, values without commas and a doc, found 'threads'");
  CHECK(refused([](RegisteredTarget& t) { t.launch = nullptr; }) == "register_target(mine): expected functions compile, load, unload and launch");
}

TEST_CASE("options of a registered target have its defaults", "[targets]") {
  const targets::RegisteredRuntime runtime(valid());
  CHECK(runtime.options_of("") == TargetOptions{{"level", "1"}, {"threads", "4"}});
  CHECK(runtime.options_of("threads=8") == TargetOptions{{"level", "1"}, {"threads", "8"}});
  CHECK(runtime.options_of("threads=8, level=") == TargetOptions{{"level", ""}, {"threads", "8"}});
  CHECK_THROWS_WITH(runtime.options_of("speed=1"), "option target_options: expected name=value with options of mine (threads, level), found 'speed=1'");
  CHECK_THROWS_WITH(runtime.options_of("threads"), "option target_options: expected name=value with options of mine (threads, level), found 'threads'");
}

TEST_CASE("a registered target takes the place of the host's", "[targets]") {
  targets::Registry found = registry();
  CHECK_THROWS_WITH(found.registered("mine"), "option target: expected a registered target (none is, see load_target), found 'mine'");
  found.add(valid());
  found.add(valid());
  targets::RegisteredRuntime& runtime = found.registered("mine");
  const Target target = runtime.describe(0);
  CHECK(target.is_for(Device()));
  CHECK(is_simt(target));
  CHECK(&found.of(target) == &runtime);
  CHECK(&found.of(target.device) != &runtime);
  CHECK(to_string(target).starts_with("mine cpu 1 "));
  CHECK_THROWS_WITH(found.registered("other"), "option target: expected a registered target (mine), found 'other'");
  RegisteredTarget newer = valid();
  newer.version = "2";
  CHECK_THROWS_WITH(found.add(newer), "register_target(mine): expected the version that is registered, '1', found '2'");
}

TEST_CASE("libraries that hold no target are refused", "[targets]") {
  CHECK_THROWS_AS(targets::open_target_library("/nowhere/libmine.so"), UserError);
  CHECK_THROWS_WITH(targets::open_target_library("libm.so.6"), "load_target: expected a function cxxinductor_target in libm.so.6");
}

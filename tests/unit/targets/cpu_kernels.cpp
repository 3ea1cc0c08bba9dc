// The CPU provider with units written by hand: compiling, caching, loading, threads, errors. No code generator.
#include "targets/cpu/cpu_kernels.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "support/error.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;

namespace {

// Kernels that add one: units of 10 elements of `symbols[0]`.
CpuUnitSource add_one_source(const std::vector<const plan::Kernel*>& kernels) {
  CpuUnitSource source;
  source.text = "extern \"C\" __attribute__((visibility(\"default\"))) void* cxxi_math[1]; void* cxxi_math[1];\n";
  for (const plan::Kernel* kernel : kernels) {
    source.text += "extern \"C\" __attribute__((visibility(\"default\"))) void " + kernel->name +
                   "(void* const* b, const long long* s, long long begin, long long end) {\n"
                   "  const float* in = (const float*)b[0]; float* out = (float*)b[1];\n"
                   "  for (long long i = begin * 10; i < end * 10 && i < s[0]; ++i) out[i] = in[i] + (cxxi_math[0] ? 1 : 100);\n"
                   "}\n";
  }
  source.math_symbols = {"malloc"};
  return source;
}

plan::Plan plan_of(int kernels) {
  PlanBuilder b;
  auto from = b.input("x", {s0});
  for (int k = 0; k < kernels; ++k) {
    const auto id = b.kernel("k_" + std::to_string(k), 2, {false, true}, {"n"});
    plan::Segment segment;
    segment.stmts.resize(40);
    b.plan.kernels[id].segments = {segment};
    const bool last = k + 1 == kernels;
    const auto to = b.buffer("b" + std::to_string(k), last ? plan::Buffer::Kind::Standalone : plan::Buffer::Kind::Arena, {s0});
    if (last) b.plan.steps.emplace_back(plan::Allocate{to});
    b.launch(id, {from, to}, {s0}, sym::ceil_div(s0, 10));
    from = to;
  }
  b.output(from);
  return b.plan;
}

struct CpuLoader {
  explicit CpuLoader(std::string compiler_path = "", std::string temporary = "/tmp")
      : host(3), compiler({std::move(compiler_path), std::move(temporary)}), pool(2) {}
  std::shared_ptr<CpuKernelProvider> provider(DiskCache* cache = nullptr, CpuEmitter emitter = add_one_source) {
    return std::make_shared<CpuKernelProvider>(Target(), std::move(emitter), compiler, pool, cache, host);
  }
  std::vector<double> run(const plan::Plan& plan, std::shared_ptr<CpuKernelProvider> kernels, int64_t n) {
    kernels->prepare(plan);
    const Executable executable(plan, kernels, host);
    std::vector<Value> inputs;
    inputs.emplace_back(make_tensor(host, {n}));
    return numbers_of(executable.run(host, std::move(inputs))[0].tensor);
  }
  PlainHost host;
  HostCompiler compiler;
  CompilePool pool;
};

std::vector<double> expected_numbers(int64_t n, int steps) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < n; ++i) numbers.push_back(static_cast<double>(i % 97) - 20 + steps);
  return numbers;
}

}  // namespace

TEST_CASE("kernels are compiled in several units and run on the host's threads") {
  CpuLoader loader;
  auto kernels = loader.provider();
  CHECK(loader.run(plan_of(5), kernels, 1234) == expected_numbers(1234, 5));
  CHECK(kernels->counters().units == 2);
  CHECK(kernels->counters().compiled == 2);
}

TEST_CASE("a second provider takes the object from the cache; a damaged entry is compiled again") {
  TemporaryFolder folder;
  CpuLoader loader;
  DiskCache cache(folder.path(), "test");
  auto first = loader.provider(&cache);
  CHECK(loader.run(plan_of(1), first, 100) == expected_numbers(100, 1));
  CHECK(first->counters().compiled == 1);
  auto second = loader.provider(&cache);
  CHECK(loader.run(plan_of(1), second, 100) == expected_numbers(100, 1));
  CHECK(second->counters().from_cache == 1);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file.put('\x55');
  }
  auto third = loader.provider(&cache);
  CHECK(loader.run(plan_of(1), third, 100) == expected_numbers(100, 1));
  CHECK(third->counters().compiled == 1);
  // Whole entries whose bytes are no object are compiled again too.
  DiskCache other(folder.path() + "/other", "test");
  std::string key = "cpu object\n" + loader.compiler.identity();
  for (const std::string& flag : cpu_compile_flags(Target())) key += "\n" + flag;
  const plan::Plan plan = plan_of(1);
  key += "\n" + add_one_source({&plan.kernels[plan::KernelId(0)]}).text;
  REQUIRE(other.put(key, "not an object"));
  auto fourth = loader.provider(&other);
  CHECK(loader.run(plan, fourth, 100) == expected_numbers(100, 1));
  CHECK(fourth->counters().compiled == 1);
}

TEST_CASE("objects for one instruction set are not taken for another") {
  TemporaryFolder folder;
  CpuLoader loader;
  DiskCache cache(folder.path(), "test");
  for (const char* arch : {"x86-64", "x86-64-v2"}) {
    for (const bool again : {false, true}) {
      CpuKernelProvider kernels(cpu_target(arch, 2), add_one_source, loader.compiler, loader.pool, &cache, loader.host);
      kernels.prepare(plan_of(1));
      INFO(arch);
      CHECK(kernels.counters().from_cache == (again ? 1 : 0));
    }
  }
}

TEST_CASE("preparing can be interrupted") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/c++";
  std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = --version ] && echo slow 1.0 && exit 0\ncase $1 in -print*) exit 1;; esac\n"
                         "touch "
                      << folder.path() << "/begun; exec sleep 100\n";
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
  CpuLoader loader(path);
  const auto begun = [&] { return std::filesystem::exists(folder.path() + "/begun"); };
  CHECK_THROWS_AS(loader.provider()->prepare(plan_of(3), begun), Interrupted);
}

TEST_CASE("without a compiler preparing is a user error that says what to install") {
  CpuLoader loader("/nowhere/c++");
  CHECK_THROWS_AS(loader.provider()->prepare(plan_of(1)), UserError);
  CHECK_THROWS_WITH(loader.provider()->prepare(plan_of(1)), mentions("no host compiler") && mentions("install g++"));
}

TEST_CASE("a temporary folder that does not exist is a user error") {
  CpuLoader loader("", "/nowhere/tmp");
  CHECK_THROWS_WITH(loader.provider()->prepare(plan_of(1)), mentions("no temporary folder under '/nowhere/tmp'"));
}

TEST_CASE("text that does not compile, or lacks a kernel, is an internal error that names the kernel") {
  CpuLoader loader;
  const auto broken = loader.provider(nullptr, [](const auto&) { return CpuUnitSource{"this is no C++", {}}; });
  CHECK_THROWS_AS(broken->prepare(plan_of(1)), InternalError);
  CHECK_THROWS_WITH(loader.provider(nullptr,
                                    [](const auto&) {
                                      return CpuUnitSource{"this is no C++", {}};
                                    })
                        ->prepare(plan_of(1)),
                    mentions("did not compile k_0") && mentions("error"));
  CHECK_THROWS_WITH(loader.provider(nullptr,
                                    [](const auto&) {
                                      return CpuUnitSource{"int nothing;", {}};
                                    })
                        ->prepare(plan_of(1)),
                    mentions("has no kernel k_0"));
}

TEST_CASE("a compiler that is there but does not work is an internal error with its words") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/c++";
  std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = --version ] && echo broken 1.0 && exit 0\n"
                         "echo no space left on device >&2\n[ -e $0.dies ] && kill -9 $$\nexit 4\n";
  REQUIRE(::chmod(path.c_str(), 0700) == 0);
  CpuLoader loader(path);
  CHECK_THROWS_WITH(loader.provider()->prepare(plan_of(1)), mentions("did not compile k_0 (exit code 4)") && mentions("no space left on device"));
  std::ofstream(path + ".dies") << "";
  CHECK_THROWS_AS(loader.provider()->prepare(plan_of(1)), InternalError);
}

TEST_CASE("eight processes compile the same kernels through one cache, two of them are killed") {
  TemporaryFolder folder, temporary;
  const auto run_through_cache = [&] {
    CpuLoader loader("", temporary.path());
    DiskCache cache(folder.path(), "test");
    return loader.run(plan_of(2), loader.provider(&cache), 100) == expected_numbers(100, 2);
  };
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(run_through_cache() ? 0 : 1);
    children.push_back(child);
  }
  ::usleep(150000);
  for (size_t c = 6; c < 8; ++c) ::kill(children[c], SIGKILL);
  for (size_t c = 0; c < 8; ++c) {
    int status = 0;
    ::waitpid(children[c], &status, 0);
    if (c < 6) CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  CHECK(run_through_cache());
}

TEST_CASE("a compiler's name is never read by a shell") {
  TemporaryFolder folder;
  CpuLoader loader("c++; touch " + folder.path() + "/touched");
  CHECK_THROWS_AS(loader.provider()->prepare(plan_of(1)), UserError);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/touched"));
}

TEST_CASE("a failed check becomes an error with the op, the index, the bound and the line") {
  CpuLoader loader;
  PlanBuilder b;
  const auto x = b.input("x", {s0});
  const auto id = b.kernel("k_check", 1, {false}, {"n"});
  plan::Kernel& kernel = b.plan.kernels[id];
  loops::Stmt check;
  check.kind = loops::Check{plan::StmtId(0), s0, "embedding: index out of range"};
  check.origin = b.plan.origins.push_back({"model.py", 12, "", ""});
  kernel.region.body.push_back(check);
  b.launch(id, {x}, {s0}, 1);
  const auto emit = [](const std::vector<const plan::Kernel*>&) {
    return CpuUnitSource{
        "extern \"C\" __attribute__((visibility(\"default\"))) void k_check(void* const* b, const long long* s, long "
        "long, long long) {"
        " long long* r = (long long*)b[1]; if (s[0] == 5) { r[0] = 1; r[1] = 0; r[2] = -3; r[3] = s[0]; } }",
        {}};
  };
  auto kernels = loader.provider(nullptr, emit);
  kernels->prepare(b.plan);
  const Executable executable(b.plan, kernels, loader.host);
  std::vector<Value> inputs;
  inputs.emplace_back(make_tensor(loader.host, {4}));
  CHECK_NOTHROW(executable.run(loader.host, inputs));
  inputs.clear();
  inputs.emplace_back(make_tensor(loader.host, {5}));
  CHECK_THROWS_AS(executable.run(loader.host, inputs), UserError);
  CHECK_THROWS_WITH(executable.run(loader.host, inputs),
                    mentions("embedding: index out of range: index -3 is out of bounds, expected 0 <= index < 5 (model.py:12)"));
}

TEST_CASE("objects are loaded, found and unloaded many times over") {
  CpuLoader loader;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::shared_ptr<CpuKernelProvider>> providers;
    for (int i = 0; i < 3; ++i) {
      providers.push_back(loader.provider());
      CHECK(loader.run(plan_of(1 + i), providers.back(), 33) == expected_numbers(33, 1 + i));
    }
  }
}

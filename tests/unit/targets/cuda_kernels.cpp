// The CUDA provider with NVRTC and a driver that fails on demand: no GPU, no code generator.
#include "targets/cuda/cuda_kernels.h"

#include <barrier>
#include <chrono>
#include <thread>

#include "support/error.h"
#include "targets/cuda/dynamic_library.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"
#include "unit/runtime/test_plans.h"
#include "unit/targets/fake_cuda/fake_driver.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;

namespace {

const std::string fake_driver = CXXINDUCTOR_FAKE_CUDA_DRIVER;

struct Controls {
  DynamicLibrary library{{fake_driver}, "the driver of the tests is not built"};
  decltype(&fake_cuda_fail) fail = reinterpret_cast<decltype(&fake_cuda_fail)>(library.find("fake_cuda_fail"));
  decltype(&fake_cuda_begin_capture) begin_capture = reinterpret_cast<decltype(&fake_cuda_begin_capture)>(library.find("fake_cuda_begin_capture"));
  decltype(&fake_cuda_end_capture) end_capture = reinterpret_cast<decltype(&fake_cuda_end_capture)>(library.find("fake_cuda_end_capture"));
  decltype(&fake_cuda_calls) calls = reinterpret_cast<decltype(&fake_cuda_calls)>(library.find("fake_cuda_calls"));
};

CudaUnitSource add_one_unit(const plan::Kernel& kernel, plan::Variant, const OriginTable&) {
  CudaUnitSource unit;
  unit.text = "extern \"C\" __global__ void " + kernel.name + "(float* a, long long n) { a[0] += n; }\n";
  unit.shape.block_x = 32;
  return unit;
}

CudaUnitSource broken_unit(const plan::Kernel& kernel, plan::Variant, const OriginTable&) {
  CudaUnitSource unit;
  unit.text = "extern \"C\" __global__ void " + kernel.name + "(float* a) { a[0] = undeclared_name; }\n";
  return unit;
}

plan::Plan plan_of(const std::vector<std::string>& names, bool checks = false) {
  PlanBuilder b;
  for (const std::string& name : names) {
    plan::Kernel& kernel = b.plan.kernels[b.kernel(name, 1, {true}, {"n"})];
    kernel.device = {DeviceType::Cuda, 0};
    if (!checks) continue;
    loops::Stmt check;
    check.kind = loops::Check{plan::StmtId(0), sym::Expr(5), "embedding: index out of range"};
    kernel.region.body.push_back(check);
  }
  return b.plan;
}

struct CudaLoader {
  std::unique_ptr<Nvrtc> nvrtc = find_nvrtc();
  int opened = 0;
  NvrtcSource nvrtc_source{[] { return nvrtc_candidates(nvrtc_places()); }, [this] { ++opened; }};
  Controls controls;
  CudaDriver driver{{fake_driver}};
  CompilePool pool{2};
  PlainHost host;

  std::unique_ptr<CudaKernelProvider> provider(DiskCache* cache = nullptr, CudaEmitter emitter = add_one_unit, PackagedCode packaged = {}) {
    return std::make_unique<CudaKernelProvider>(cuda_target("sm_80", 100), 0, std::move(emitter), nvrtc_source, driver, pool, cache, std::move(packaged));
  }
  void launch(CudaKernelProvider& provider, plan::Variant variant = {.vectorized = true}) {
    std::array<void*, 1> buffers{};
    const std::array<int64_t, 1> symbols{7};
    provider.get(plan::KernelId(0), variant).launch(host, {buffers, symbols, {1}}, nullptr);
  }
};

}  // namespace

TEST_CASE("source that NVRTC refuses is an internal error with the kernel's name and the compiler's words", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  const auto provider = loader.provider(nullptr, broken_unit);
  CHECK_THROWS_AS(provider->prepare(plan_of({"k_good", "k_bad"})), InternalError);
  CHECK_THROWS_WITH(loader.provider(nullptr, broken_unit)->prepare(plan_of({"k_bad"})), mentions("did not compile k_bad") && mentions("undeclared_name"));
}

TEST_CASE("a module that the driver refuses is an internal error that names the kernel and the call", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  for (const char* call : {"cuModuleLoadData", "cuModuleGetFunction"}) {
    const auto provider = loader.provider();
    loader.controls.fail(call, 1);  // the second kernel
    CHECK_THROWS_AS(provider->prepare(plan_of({"k_a", "k_b"})), InternalError);
    loader.controls.fail(call, 0);
    CHECK_THROWS_WITH(loader.provider()->prepare(plan_of({"k_a"})), mentions(call) && mentions("for kernel k_a"));
  }
  const auto provider = loader.provider();
  CHECK_NOTHROW(provider->prepare(plan_of({"k_a", "k_b"})));
}

TEST_CASE("NVRTC is not opened where all code is in the cache; a library that nobody has opened there is", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "test");
  loader.provider(&cache)->prepare(plan_of({"k_a"}));
  CHECK(loader.opened == 1);
  CudaLoader next;
  const auto second = next.provider(&cache);
  second->prepare(plan_of({"k_a"}));
  CHECK(second->counters().from_cache == 1);
  CHECK(next.opened == 0);
  CHECK(next.nvrtc_source.version(&cache) == loader.nvrtc->version());
  next.provider(&cache)->prepare(plan_of({"k_b"}));
  CHECK(next.opened == 1);
  // A file that is there comes first, whether it opens or not; one that is not there is passed over.
  std::vector<std::string> candidates{folder.path() + "/libnvrtc.so.13", fake_driver, loader.nvrtc->path()};
  CHECK_THROWS_WITH(NvrtcSource([&] { return candidates; }).version(&cache), mentions("nvrtcCreateProgram"));
  candidates.erase(candidates.begin() + 1);
  int opened = 0;
  NvrtcSource source([&] { return candidates; }, [&] { ++opened; });
  CHECK(source.version(&cache) == loader.nvrtc->version());
  CHECK(opened == 0);
  NvrtcSource uncached([&] { return candidates; }, [&] { ++opened; });
  CHECK(uncached.version(nullptr) == loader.nvrtc->version());
  CHECK(opened == 1);
}

TEST_CASE("NVRTC opens in the background where compiles are expected", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  for (int i = 0; i < 2; ++i) loader.nvrtc_source.start(loader.pool, "sm_80");
  loader.pool.finish();
  CHECK(loader.pool.progress().done == 1);
  CHECK(loader.opened == 1);
  loader.provider()->prepare(plan_of({"k_a"}));
  CHECK(loader.opened == 1);
  // Where it cannot, the first compile tells.
  NvrtcSource missing([] { return std::vector<std::string>{"/nowhere/libnvrtc.so"}; });
  missing.start(loader.pool, "sm_80");
  loader.pool.finish();
  CHECK_THROWS_WITH(missing.get(), mentions("/nowhere/libnvrtc.so"));
}

TEST_CASE("a module of the cache that the driver refuses is compiled again", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "test");
  const auto first = loader.provider(&cache);
  first->prepare(plan_of({"k_a"}));
  CHECK(first->counters().compiled == 1);
  const auto second = loader.provider(&cache);
  second->prepare(plan_of({"k_a"}));
  CHECK(second->counters().from_cache == 1);
  const auto third = loader.provider(&cache);
  loader.controls.fail("cuModuleLoadData", 0);
  third->prepare(plan_of({"k_a"}));
  CHECK(third->counters().compiled == 1);
  CHECK(third->counters().from_cache == 0);
  CHECK_NOTHROW(loader.launch(*third));
  // A damaged entry is a miss.
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) std::filesystem::resize_file(entry.path(), 300);
  const auto fourth = loader.provider(&cache);
  fourth->prepare(plan_of({"k_a"}));
  CHECK(fourth->counters().compiled == 1);
}

TEST_CASE("a variant that is first needed by a call is compiled where the driver refuses what the cache or the package holds", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "test");
  loader.provider(&cache)->prepare(plan_of({"k_a"}));
  const bool packaged = GENERATE(false, true);
  const auto provider = packaged ? loader.provider(nullptr, add_one_unit,
                                                   [](const std::string&) {
                                                     return std::optional<std::string>(
                                                         "\x7f"
                                                         "ELF");
                                                   })
                                 : loader.provider(&cache);
  provider->prepare(plan_of({"k_a"}));
  const auto held = [&] { return packaged ? provider->counters().from_package : provider->counters().from_cache; };
  CHECK(held() == 1);
  loader.controls.fail("cuModuleLoadData", 0);
  CHECK_NOTHROW(loader.launch(*provider, {.vectorized = false}));
  CHECK(provider->counters().compiled == 1);
  // In the background too.
  loader.controls.fail("cuModuleLoadData", 0);
  CHECK(provider->find(plan::KernelId(0), {.vectorized = true, .index64 = true}) == nullptr);
  loader.pool.finish();
  CHECK(provider->counters().late == 1);
  CHECK(provider->counters().compiled == 2);
  CHECK(held() == 1);
}

TEST_CASE("threads that compile the same variant at a time use one kernel of it", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  std::barrier both_compile(2);
  const auto provider = loader.provider(nullptr, [&](const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins) {
    if (!variant.vectorized) both_compile.arrive_and_wait();
    return add_one_unit(kernel, variant, origins);
  });
  provider->prepare(plan_of({"k_a"}));
  const LoadedKernel* other = nullptr;
  std::thread thread([&] { other = &provider->get(plan::KernelId(0), {.vectorized = false}); });
  const LoadedKernel* const kernel = &provider->get(plan::KernelId(0), {.vectorized = false});
  thread.join();
  CHECK(kernel == other);
  CHECK_NOTHROW(loader.launch(*provider, {.vectorized = false}));
}

TEST_CASE("a launch that fails is an internal error, and the next launch works", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  const auto provider = loader.provider();
  provider->prepare(plan_of({"k_a"}));
  loader.controls.fail("cuLaunchKernelEx", 0);
  CHECK_THROWS_AS(loader.launch(*provider), InternalError);
  loader.controls.fail("cuLaunchKernelEx", 0);
  CHECK_THROWS_WITH(loader.launch(*provider), mentions("cuLaunchKernelEx failed for kernel k_a") && mentions("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
  const int before = loader.controls.calls("cuLaunchKernelEx");
  CHECK_NOTHROW(loader.launch(*provider));
  CHECK(loader.controls.calls("cuLaunchKernelEx") == before + 1);
}

TEST_CASE("a variant that is first needed by a call and does not load is an error of that call only", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  const auto provider = loader.provider();
  provider->prepare(plan_of({"k_a"}));
  loader.controls.fail("cuModuleLoadData", 0);
  CHECK_THROWS_AS(loader.launch(*provider, {.vectorized = false}), InternalError);
  CHECK_NOTHROW(loader.launch(*provider));
  CHECK_NOTHROW(loader.launch(*provider, {.vectorized = false}));
}

TEST_CASE("modules and memory made and freed while another thread captures a graph leave the capture good", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  const plan::Plan plan = plan_of({"k_a"}, true);
  auto held = loader.provider();
  held->prepare(plan);
  loader.controls.begin_capture();
  CHECK(held->find(plan::KernelId(0), {.vectorized = false}) == nullptr);
  loader.pool.finish();  // a background thread has loaded it
  CHECK(held->counters().late == 1);
  loader.launch(*held, {.vectorized = false});
  CHECK_NOTHROW(loader.provider()->prepare(plan));  // and freed again
  held.reset();
  CHECK(loader.controls.end_capture());
  // The fake notices what it is there for: the mode of this thread is again what it was.
  loader.controls.begin_capture();
  const auto load = reinterpret_cast<int (*)(void**, const void*)>(loader.controls.library.find("cuModuleLoadData"));
  void* module = nullptr;
  CHECK(load(&module,
             "\x7f"
             "ELF") != 0);
  CHECK_FALSE(loader.controls.end_capture());
}

TEST_CASE("NVRTC is interrupted", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  // Takes far longer than a second to compile.
  CudaUnitSource slow;
  slow.text = "extern \"C\" __global__ void k_slow(float* a) {\n";
  for (int i = 0; i < 20000; ++i) slow.text += "  a[threadIdx.x + " + std::to_string(i) + "] += sinf(a[" + std::to_string(i * 3) + "]);\n";
  slow.text += "}\n";
  const auto start = std::chrono::steady_clock::now();
  const auto soon = [&] { return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(200); };
  const auto provider = loader.provider(nullptr, [&](const auto&...) { return slow; });
  CHECK_THROWS_AS(provider->prepare(plan_of({"k_slow"}), soon), Interrupted);
  WARN("interrupted after " << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s");
}

TEST_CASE("memory for the records of checks may be refused", "[cuda]") {
  CudaLoader loader;
  if (!loader.nvrtc) return;
  const auto provider = loader.provider();
  loader.controls.fail("cuMemHostAlloc", 0);
  CHECK_THROWS_WITH(provider->prepare(plan_of({"k_a"}, true)), mentions("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_CASE("no driver, no device, no NVRTC: user errors that name what is missing", "[cuda]") {
  Controls controls;
  controls.fail("cuInit", 0);
  CHECK_THROWS_AS(CudaDriver({fake_driver}), UserError);
  CudaDriver driver({fake_driver});
  CHECK(driver.properties(0).arch == "sm_90a");
  CHECK_THROWS_WITH(driver.properties(1), mentions("cuda:1 does not exist: the driver sees 1 devices"));
  CHECK_THROWS_WITH(CudaContext(driver, 1), mentions("cuDeviceGet"));
  controls.fail("cuDevicePrimaryCtxRetain", 0);
  CHECK_THROWS_AS(CudaContext(driver, 0), UserError);
  CHECK_THROWS_AS(DynamicLibrary({"/nowhere/libcuda.so.1"}, "no driver"), UserError);
  CHECK_THROWS_WITH(DynamicLibrary({"/nowhere/libcuda.so.1"}, "no driver"),
                    mentions("no driver; none of these opens") && mentions("/nowhere/libcuda.so.1: cannot open"));
  // A library that opens but is another one.
  CHECK_THROWS_WITH(Nvrtc({fake_driver}), mentions(fake_driver + " has no function nvrtcCreateProgram"));
}

TEST_CASE("attributes of a launch reach the driver", "[cuda]") {
  Controls controls;
  const auto last_launch = reinterpret_cast<decltype(&fake_cuda_last_launch)>(controls.library.find("fake_cuda_last_launch"));
  CudaDriver driver{{fake_driver}};
  CudaContext context(driver, 0);
  std::array<void*, 2> arguments{&driver, &driver};
  context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "plain");
  CHECK(last_launch().cluster == 1);
  CHECK_FALSE(last_launch().cooperative);
  CHECK_FALSE(last_launch().overlaps_previous);
  context.launch(nullptr, {4, 2, 3}, {.block_x = 32, .cluster = 4, .cooperative = true, .overlaps_previous = true}, nullptr, arguments.data(), "all");
  CHECK(last_launch().grid_z == 3);
  CHECK(last_launch().cluster == 4);
  CHECK(last_launch().cooperative);
  CHECK(last_launch().overlaps_previous);
  CHECK_THROWS_AS(context.launch(nullptr, {1, 1, 65536}, {}, nullptr, arguments.data(), "wide"), Unsupported);
}

#include "torch_bridge/providers.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include "ir/device_types.h"
#include "runtime/compile_pool.h"
#include "runtime/device_kernels.h"
#include "runtime/loaded_library.h"
#include "support/error.h"
#include "support/files.h"
#include "support/fork_locks.h"
#include "targets/registered/registered_runtime.h"
#include "targets/registry.h"
#include "torch_bridge/torch_host.h"

namespace cxxinductor::torch_bridge {
namespace {

// Where PyTorch's libraries are; empty when unknown.
std::string torch_folder() {
  const std::string path = runtime::library_path(reinterpret_cast<const void*>(&at::get_num_threads));
  return path.empty() ? path : parent_path(path);
}

std::string default_cache_folder() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/cxxinductor";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') return std::string(home) + "/.cache/cxxinductor";
  return {};
}

void stop_at_exit();

// The user's, of all caches. A process that sets none never makes it.
struct RemoteCache {
  std::shared_ptr<const runtime::RemoteStore> store;  // guarded by ForkLock::Leaf
};
constinit MadeOnce<RemoteCache, ForkLock::Services> made_remote_cache;

std::shared_ptr<const runtime::RemoteStore> remote_cache() {
  const RemoteCache* remote = made_remote_cache.find();
  if (!remote) return nullptr;
  const ForkGuard guard(ForkLock::Leaf);
  return remote->store;
}

// What all compiles of the process share. Never destroyed: threads may use it while the process ends.
struct Services {
  runtime::CompilePool pool;
  runtime::CompilePool graphs{2};  // for whole graphs, whose kernels `pool` compiles: a task of one waits for tasks of the other
  std::map<std::pair<std::string, int64_t>, std::unique_ptr<runtime::DiskCache>> caches;  // guarded by ForkLock::Services
  std::set<std::string> told_problems;                                                    // of caches; the same

  explicit Services(int threads) : pool(threads) { stop_at_exit(); }

  runtime::DiskCache* cache(const Options& options) {
    if (options.cache == "off") return nullptr;
    // What is cached is as good as the build that made it, which has to be known.
    const std::string build = runtime::build_id(reinterpret_cast<const void*>(&target_for));
    const std::string folder = build.empty() ? "" : options.cache_dir.empty() ? default_cache_folder() : options.cache_dir;
    const int64_t limit = std::clamp<int64_t>(options.cache_size, 1, int64_t{1} << 40) << 20;
    const auto remote = remote_cache();
    const ForkGuard guard(ForkLock::Services);
    auto& found = caches[{folder, limit}];
    if (!found) found = std::make_unique<runtime::DiskCache>(folder, build, limit);
    found->set_remote(remote);
    return found.get();
  }
};

// Made by the first compile, whose options decide how many threads there are.
constinit MadeOnce<Services, ForkLock::Services> made_services;

Services& services(const Options& options) {
  return made_services.get([&] { return Services(static_cast<int>(options.compile_threads)); });
}

// The end of the process tears down libraries in the reverse order of their opening. Registered again with each library that
// tasks of the pool use, so that no task runs by then.
void stop_at_exit() {
  std::atexit([] {
    Services* services = made_services.find();
    if (!services) return;
    services->graphs.stop();
    services->pool.stop();
  });
}

// Apart from the Services, whose threads the options of the first compile decide: what compiles nothing asks for GPUs too. Never
// destroyed: kernels may outlive main's statics.
constinit MadeOnce<targets::Registry, ForkLock::Services> made_targets;

targets::Registry& registry() {
  return made_targets.get([] { return targets::Registry({.torch_folder = torch_folder(), .threads = &at::get_num_threads, .opened_library = &stop_at_exit}); });
}

targets::TargetRuntime& runtime_for(Device device, const Options& options) {
  if (options.target.empty() || !in_host_memory(device)) return registry().of(device.type);
  return registry().registered(options.target);
}

}  // namespace

void check_target(const Options& options) {
  if (!options.target.empty())
    registry().registered(options.target).options_of(options.target_options);
  else if (!options.target_options.empty())
    throw_user_error("option target_options: expected a target in option target, found none");
}

void add_target(const RegisteredTarget& target) { registry().add(target); }

std::string load_target(const std::string& path) {
  const RegisteredTarget opened = targets::open_target_library(path);
  add_target(opened);
  return opened.name;
}

runtime::DiskCache* disk_cache(const Options& options) { return services(options).cache(options); }

void set_remote_cache(std::shared_ptr<const runtime::RemoteStore> store) {
  RemoteCache& remote = made_remote_cache.get([] { return RemoteCache(); });
  const ForkGuard guard(ForkLock::Leaf);
  remote.store.swap(store);  // the old one is destroyed without the lock
}

std::string take_cache_problem(const Options& options) {
  Services& shared = services(options);
  const runtime::DiskCache* cache = shared.cache(options);
  const std::string problem = cache ? cache->status() : std::string();
  if (problem.empty()) return problem;
  const ForkGuard guard(ForkLock::Services);
  return shared.told_problems.insert(problem).second ? problem : std::string();
}

void open_torch_library(DeviceType type) {
  const std::string_view name = info(type).torch_library;
  if (name.empty()) return;
  const std::string path = join_path(torch_folder(), std::string(name));
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
  const char* message = dlerror();
  throw_user_error(
      "the model is on a device of type {}, but LibTorch's library for it does not open: {}; take a build of LibTorch with it, or export the model for "
      "the CPU",
      to_string(type), message ? message : path);
}

void start_compilers(const Targets& targets, const Options& options) {
  Services& shared = services(options);
  const targets::CompileResources resources{shared.pool, shared.cache(options), options, torch_host()};
  for (Device device : targets.devices()) registry().of(targets.of(device)).start_compiler(targets.of(device), resources);
}

bool has_compiler(Device device, const Options& options) {
  Services& shared = services(options);
  return runtime_for(device, options).has_compiler({shared.pool, shared.cache(options), options, torch_host()});
}

runtime::CompilePool::Progress compile_progress() {
  const Services* services = made_services.find();
  return services ? services->pool.progress() : runtime::CompilePool::Progress();
}

void wait_for_compiles() {
  Services* services = made_services.find();
  if (!services) return;
  services->graphs.finish();  // which may leave tasks to the other
  services->pool.finish();
}

runtime::CompilePool& graph_compiles(const Options& options) { return services(options).graphs; }

void* make_stream(Device device) { return registry().of(device.type).make_stream(device.index); }

bool is_recording(Device device, void* stream) {
  const targets::Registry* known = made_targets.find();
  return known && known->of(device.type).is_recording(stream);
}

Target target_for(Device device, const Options& options) { return runtime_for(device, options).describe(device.index); }

Targets targets_for(const std::vector<Device>& devices, const Options& options) {
  Targets targets;
  for (Device device : devices) targets.add(device, target_for(device, options));
  return targets;
}

std::optional<Target> find_target(Device device, const std::string& arch) { return registry().of(device.type).describe(device.index, arch); }

Target target_of_arch(const std::string& arch, int multiprocessors) { return *registry().of(device_type_of_arch(arch)).target_of_arch(arch, multiprocessors); }

Target target_of_arch(Device device, const std::string& arch) {
  targets::TargetRuntime& kind = registry().of(device.type);
  if (auto here = kind.describe(device.index, arch)) return *here;
  if (auto target = kind.target_of_arch(arch, std::nullopt)) return *target;
  throw_user_error("expected an architecture of devices of type {}, as {}, found '{}'", to_string(device.type), kind.known_archs(), arch);
}

std::string_view known_archs(DeviceType type) { return registry().of(type).known_archs(); }

DeviceType device_type_of_arch(const std::string& arch) {
  std::string known;
  for (const DeviceTypeInfo& row : device_types()) {
    if (registry().of(row.type).target_of_arch(arch, std::nullopt)) return row.type;
    known += fmt::format("{}{} ({})", known.empty() ? "" : "; ", known_archs(row.type), row.text);
  }
  throw_user_error("expected an architecture of {}, found '{}'", known, arch);
}

std::shared_ptr<runtime::KernelProvider> make_provider(const plan::Plan& plan, const Targets& targets, const Options& options, runtime::Host& host,
                                                       const std::optional<std::string>& source, const runtime::PackagedCode& packaged) {
  CXXI_CHECK(!source || plan.kernels.size() == 1, "one source for {} kernels", plan.kernels.size());
  Services& shared = services(options);
  const targets::CompileResources resources{shared.pool, shared.cache(options), options, host};
  std::map<Device, std::shared_ptr<runtime::KernelProvider>> providers;
  std::set<Device> devices;
  for (const plan::Kernel& kernel : plan.kernels) devices.insert(kernel.device);
  // Recordings of library calls alone need the device, too.
  if (options.cuda_graphs != "off") std::ranges::copy_if(plan.devices, std::inserter(devices, devices.end()), has_streams);
  for (const Device device : devices) {
    const Target& target = targets.of(device);
    providers[device] = registry().of(target).make_provider(device, target, resources, source, packaged);
  }
  return std::make_shared<runtime::DeviceKernels>(std::move(providers));
}

runtime::CodeByHash compile_for_package(const plan::Plan& plan, const Targets& targets, const Options& options) {
  std::set<Device> devices;
  for (const plan::Kernel& kernel : plan.kernels) devices.insert(kernel.device);
  Services& shared = services(options);
  const targets::CompileResources resources{shared.pool, shared.cache(options), options, torch_host()};
  runtime::CodeByHash code;
  for (Device device : devices) {
    const Target& target = targets.of(device);
    code.merge(registry().of(target).compile_for_package(plan, device, target, resources));
  }
  return code;
}

}  // namespace cxxinductor::torch_bridge

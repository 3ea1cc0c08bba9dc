// Where the compiler meets this machine: targets, kernel providers, cache folder, where NVRTC lies.
#pragma once

#include <cxxinductor/target.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/target.h"
#include "runtime/compile_pool.h"
#include "runtime/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/packaged_code.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {

// The GPU's architecture and size, or this CPU's, or, for the host's memory, the registered target that the options name. UserError when the
// driver cannot be asked, and where none is registered.
Target target_for(Device device, const Options& options);
// Of several devices, the first being the main one.
Targets targets_for(const std::vector<Device>& devices, const Options& options);
// UserError where the options name a target that is not registered, or options that it does not have.
void check_target(const Options& options);
// cxxinductor/target.h.
void add_target(const RegisteredTarget& target);
std::string load_target(const std::string& path);
// Opens LibTorch's library for these devices beside the one for the CPU, which is all that programs need to link. UserError when it does
// not open.
void open_torch_library(DeviceType type);
// Kernels for these targets are going to be compiled: their compilers start in the background.
void start_compilers(const Targets& targets, const Options& options);
// Whether this machine can compile kernels for the device.
bool has_compiler(Device device, const Options& options);
// Kernels (CPU: units of kernels) given to the compilers of this process and compiled, so far.
runtime::CompilePool::Progress compile_progress();
// Waits for graphs and kernels that no call waits for.
void wait_for_compiles();
// Whose background tasks compile whole graphs (option wait).
runtime::CompilePool& graph_compiles(const Options& options);
// A stream of the device that nobody else uses; it lives as long as the process.
void* make_stream(Device device);
// Whether what is queued on the stream becomes part of a recording (a CUDA graph).
bool is_recording(Device device, void* stream);
// The target of a device for code of this architecture ("sm_80", "x86-64-v3"), which may be older than the device's own. None where
// the machine does not run it.
std::optional<Target> find_target(Device device, const std::string& arch);
// As the machine's own, for devices that need not be there. UserError for an unknown name.
Target target_of_arch(Device device, const std::string& arch);
// With so many multiprocessors.
Target target_of_arch(const std::string& arch, int multiprocessors);
// Whose architecture it is. UserError for an unknown name.
DeviceType device_type_of_arch(const std::string& arch);
// What the names of a kind of device look like, for messages.
std::string_view known_archs(DeviceType type);

// source: compiled in the place of the text that codegen would emit, for a plan of one kernel. packaged: code of this plan.
std::shared_ptr<runtime::KernelProvider> make_provider(const plan::Plan& plan, const Targets& targets, const Options& options, runtime::Host& host,
                                                       const std::optional<std::string>& source = std::nullopt, const runtime::PackagedCode& packaged = {});
// The machine code of all kernels of the plan, for devices that need not be there.
runtime::CodeByHash compile_for_package(const plan::Plan& plan, const Targets& targets, const Options& options);
// The cache on disk; null where options turn it off.
runtime::DiskCache* disk_cache(const Options& options);
// A store that all caches on disk ask for what they lack; null: none. Compiles that began before may not see it.
void set_remote_cache(std::shared_ptr<const runtime::RemoteStore> store);
// Why the cache on disk is not used, or could not be written to, where the process was not told that before; empty when all is well or
// the cache is off.
std::string take_cache_problem(const Options& options);

}  // namespace cxxinductor::torch_bridge

#include "targets/cuda/driver.h"

#include <array>
#include <cstring>

#include "support/error.h"
#include "support/fork_locks.h"
#include "targets/cuda/driver_functions.h"

namespace cxxinductor::targets {

// The header maps some names to versioned ones (cuCtxPushCurrent_v2): the string must be taken after that.
#define CXXI_NAME_OF(symbol) #symbol
#define CXXI_LOAD(member, symbol) member = reinterpret_cast<decltype(member)>(library.find(CXXI_NAME_OF(symbol)))

CudaDriver::Functions::Functions(const std::vector<std::string>& names)
    : library(names,
              "there is no CUDA driver, so graphs on a GPU cannot be compiled or run; graphs on the CPU are all the "
              "same") {
  CXXI_LOAD(init, cuInit);
  CXXI_LOAD(device_count, cuDeviceGetCount);
  CXXI_LOAD(device_get, cuDeviceGet);
  CXXI_LOAD(device_name, cuDeviceGetName);
  CXXI_LOAD(device_attribute, cuDeviceGetAttribute);
  CXXI_LOAD(retain, cuDevicePrimaryCtxRetain);
  CXXI_LOAD(release, cuDevicePrimaryCtxRelease);
  CXXI_LOAD(get_current, cuCtxGetCurrent);
  CXXI_LOAD(push_current, cuCtxPushCurrent);
  CXXI_LOAD(pop_current, cuCtxPopCurrent);
  CXXI_LOAD(exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
  CXXI_LOAD(load_module, cuModuleLoadData);
  CXXI_LOAD(unload_module, cuModuleUnload);
  CXXI_LOAD(get_function, cuModuleGetFunction);
  CXXI_LOAD(set_attribute, cuFuncSetAttribute);
  CXXI_LOAD(launch, cuLaunchKernelEx);
  CXXI_LOAD(is_capturing, cuStreamIsCapturing);
  CXXI_LOAD(allocate_host, cuMemHostAlloc);
  CXXI_LOAD(device_pointer, cuMemHostGetDevicePointer);
  CXXI_LOAD(free_host, cuMemFreeHost);
  CXXI_LOAD(error_name, cuGetErrorName);
  CXXI_LOAD(error_text, cuGetErrorString);
  CXXI_LOAD(create_stream, cuStreamCreate);
  CXXI_LOAD(query_stream, cuStreamQuery);
  CXXI_LOAD(begin_capture, cuStreamBeginCapture);
  CXXI_LOAD(end_capture, cuStreamEndCapture);
  CXXI_LOAD(capture_info, cuStreamGetCaptureInfo);
  CXXI_LOAD(graph_nodes, cuGraphGetNodes);
  CXXI_LOAD(graph_edges, cuGraphGetEdges);
  CXXI_LOAD(add_dependencies, cuGraphAddDependencies);
  CXXI_LOAD(remove_dependencies, cuGraphRemoveDependencies);
  CXXI_LOAD(node_type, cuGraphNodeGetType);
  CXXI_LOAD(kernel_node, cuGraphKernelNodeGetParams);
  CXXI_LOAD(memset_node, cuGraphMemsetNodeGetParams);
  CXXI_LOAD(memcpy_node, cuGraphMemcpyNodeGetParams);
  CXXI_LOAD(function_parameter, cuFuncGetParamInfo);
  CXXI_LOAD(kernel_parameter, cuKernelGetParamInfo);
  CXXI_LOAD(clone_graph, cuGraphClone);
  CXXI_LOAD(find_in_clone, cuGraphNodeFindInClone);
  CXXI_LOAD(root_nodes, cuGraphGetRootNodes);
  CXXI_LOAD(add_kernel_node, cuGraphAddKernelNode);
  CXXI_LOAD(set_node_attribute, cuGraphKernelNodeSetAttribute);
  CXXI_LOAD(set_kernel_node, cuGraphKernelNodeSetParams);
  CXXI_LOAD(set_memset_node, cuGraphMemsetNodeSetParams);
  CXXI_LOAD(set_memcpy_node, cuGraphMemcpyNodeSetParams);
  CXXI_LOAD(instantiate, cuGraphInstantiateWithFlags);
  CXXI_LOAD(upload_graph, cuGraphUpload);
  CXXI_LOAD(patch_kernel_node, cuGraphExecKernelNodeSetParams);
  CXXI_LOAD(patch_memset_node, cuGraphExecMemsetNodeSetParams);
  CXXI_LOAD(patch_memcpy_node, cuGraphExecMemcpyNodeSetParams);
  CXXI_LOAD(launch_graph, cuGraphLaunch);
  CXXI_LOAD(destroy_graph, cuGraphDestroy);
  CXXI_LOAD(destroy_executable_graph, cuGraphExecDestroy);
}
#undef CXXI_LOAD
#undef CXXI_NAME_OF

std::string CudaDriver::Functions::describe(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  error_name(result, &name);
  error_text(result, &text);
  return fmt::format("{} ({})", text ? text : "unknown error", name ? name : "no name");
}

CudaDriver::CudaDriver(std::vector<std::string> names) {
  names.emplace_back("libcuda.so.1");
  functions_ = std::make_unique<Functions>(names);
  functions_->check(functions_->init(0), "cuInit", "this machine");
}
CudaDriver::~CudaDriver() = default;

int CudaDriver::device_count() const {
  int count = 0;
  functions_->check(functions_->device_count(&count), "cuDeviceGetCount", "this machine");
  return count;
}

bool CudaDriver::is_capturing(void* stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = functions_->is_capturing(static_cast<CUstream>(stream), &status);
  // The default stream may not be asked while another one is captured: it is not captured then.
  return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CudaDeviceProperties CudaDriver::properties(int device) const {
  const std::string what = fmt::format("cuda:{}", device);
  const int count = device_count();
  if (device < 0 || device >= count) throw_user_error("{} does not exist: the driver sees {} devices", what, count);
  CUdevice handle = 0;
  functions_->check(functions_->device_get(&handle, device), "cuDeviceGet", what);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    functions_->check(functions_->device_attribute(&value, which, handle), "cuDeviceGetAttribute", what);
    return value;
  };
  char name[256] = {};
  functions_->check(functions_->device_name(name, sizeof name - 1, handle), "cuDeviceGetName", what);
  CudaDeviceProperties properties;
  properties.name = name;
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  // From 9.0 on, the features that are of one architecture alone have an "a".
  properties.arch = fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
  properties.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  properties.threads_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  return properties;
}

CudaContext::CudaContext(CudaDriver& driver, int device) : driver_(driver), state_(std::make_unique<State>()) {
  const std::string what = fmt::format("cuda:{}", device);
  const CudaDriver::Functions& cuda = driver_.functions();
  cuda.check(cuda.device_get(&state_->device, device), "cuDeviceGet", what);
  cuda.check(cuda.retain(&state_->context, state_->device), "cuDevicePrimaryCtxRetain", what);
}

CurrentContext::CurrentContext(const CudaDriver::Functions& cuda, CUcontext context) : cuda_(cuda) {
  CUcontext current = nullptr;
  if (cuda.get_current(&current) == CUDA_SUCCESS && current == context) [[likely]]
    return;
  cuda.check(cuda.push_current(context), "cuCtxPushCurrent", "the device's primary context");
  pushed_ = true;
}
CurrentContext::~CurrentContext() {
  CUcontext popped = nullptr;
  if (pushed_) cuda_.pop_current(&popped);
}

CudaContext::~CudaContext() {
  const CudaDriver::Functions& cuda = driver_.functions();
  const BesideCapture scope(cuda);
  // At the end of the process the driver may be gone already: failures here have no consequence.
  if (cuda.push_current(state_->context) == CUDA_SUCCESS) {
    for (CUmodule module : state_->modules) cuda.unload_module(module);
    for (void* memory : state_->mapped) cuda.free_host(memory);
    CUcontext popped = nullptr;
    cuda.pop_current(&popped);
  }
  cuda.release(state_->device);
}

CudaFunction CudaContext::load(const std::string& cubin, const std::string& function, const plan::LaunchShape& shape) {
  const CudaDriver::Functions& cuda = driver_.functions();
  const CurrentContext current(cuda, state_->context);
  const BesideCapture scope(cuda);
  CUmodule module = nullptr;
  cuda.check_kernel(cuda.load_module(&module, cubin.data()), "cuModuleLoadData", function);
  {
    const ForkGuard guard(ForkLock::Leaf);
    state_->modules.push_back(module);
  }
  CUfunction loaded = nullptr;
  cuda.check_kernel(cuda.get_function(&loaded, module, function.c_str()), "cuModuleGetFunction", function);
  // The limit without is 48 KB together with what the kernel declares itself.
  const auto set = [&](CUfunction_attribute attribute, int64_t value) {
    cuda.check_kernel(cuda.set_attribute(loaded, attribute, static_cast<int>(value)), "cuFuncSetAttribute", function);
  };
  if (shape.dynamic_shared_bytes > 0) set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shape.dynamic_shared_bytes);
  // All devices with clusters run 8 blocks; larger ones have to be asked for.
  if (shape.cluster > 8) set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  return loaded;
}

void CudaContext::launch(CudaFunction function, runtime::Grid grid, const plan::LaunchShape& shape, void* stream, void** arguments,
                         const std::string& what) const {
  if (grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535) [[unlikely]]
    throw_unsupported("kernel {} would need {} x {} x {} blocks", what, grid.x, grid.y, grid.z);
  const CudaDriver::Functions& cuda = driver_.functions();
  const CurrentContext current(cuda, state_->context);
  std::array<CUlaunchAttribute, 3> attributes;
  CUlaunchConfig launch{};
  launch.gridDimX = static_cast<unsigned>(grid.x);
  launch.gridDimY = static_cast<unsigned>(grid.y);
  launch.gridDimZ = static_cast<unsigned>(grid.z);
  launch.blockDimX = static_cast<unsigned>(shape.block_x);
  launch.blockDimY = static_cast<unsigned>(shape.block_y);
  launch.blockDimZ = 1;
  launch.sharedMemBytes = static_cast<unsigned>(shape.dynamic_shared_bytes);
  launch.hStream = static_cast<CUstream>(stream);
  launch.attrs = attributes.data();
  const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    attributes[launch.numAttrs].id = id;
    return attributes[launch.numAttrs++].value;
  };
  if (shape.cluster > 1) {
    auto& size = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    size.x = static_cast<unsigned>(shape.cluster);
    size.y = size.z = 1;
  }
  if (shape.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (shape.overlaps_previous) add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
  cuda.check_kernel(cuda.launch(&launch, static_cast<CUfunction>(function), arguments, nullptr), "cuLaunchKernelEx", what);
}

void* CudaContext::create_stream() const {
  const CudaDriver::Functions& cuda = driver_.functions();
  const CurrentContext current(cuda, state_->context);
  CUstream stream = nullptr;
  cuda.check(cuda.create_stream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate", "recording CUDA graphs");
  return stream;
}

CudaContext::Mapped CudaContext::allocate_mapped(size_t ints, const std::string& what) {
  const CudaDriver::Functions& cuda = driver_.functions();
  const CurrentContext current(cuda, state_->context);
  const BesideCapture scope(cuda);
  void* host = nullptr;
  const size_t bytes = ints * sizeof(int);
  cuda.check(cuda.allocate_host(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc", what);
  {
    const ForkGuard guard(ForkLock::Leaf);
    state_->mapped.push_back(host);
  }
  std::memset(host, 0, bytes);
  CUdeviceptr device = 0;
  cuda.check(cuda.device_pointer(&device, host, 0), "cuMemHostGetDevicePointer", what);
  return {static_cast<int*>(host), reinterpret_cast<void*>(device)};
}

}  // namespace cxxinductor::targets

// The driver's functions that this target calls, by name. Includes cuda.h: only for sources of this folder.
#pragma once

#include <cuda.h>

#include "support/error.h"
#include "targets/cuda/driver.h"
#include "targets/cuda/dynamic_library.h"

namespace cxxinductor::targets {

struct CudaDriver::Functions {
  explicit Functions(const std::vector<std::string>& names);
  std::string describe(CUresult result) const;
  // Errors of the system: no driver, no device, no memory.
  void check(CUresult result, const char* call, const std::string& what) const {
    if (result != CUDA_SUCCESS) [[unlikely]]
      throw_user_error("{} failed for {}: {}", call, what, describe(result));
  }
  // Errors with generated code.
  void check_kernel(CUresult result, const char* call, const std::string& kernel) const {
    if (result != CUDA_SUCCESS) [[unlikely]]
      throw_internal("{} failed for kernel {}: {}", call, kernel, describe(result));
  }

  DynamicLibrary library;
  decltype(&::cuInit) init;
  decltype(&::cuDeviceGetCount) device_count;
  decltype(&::cuDeviceGet) device_get;
  decltype(&::cuDeviceGetName) device_name;
  decltype(&::cuDeviceGetAttribute) device_attribute;
  decltype(&::cuDevicePrimaryCtxRetain) retain;
  decltype(&::cuDevicePrimaryCtxRelease) release;
  decltype(&::cuCtxGetCurrent) get_current;
  decltype(&::cuCtxPushCurrent) push_current;
  decltype(&::cuCtxPopCurrent) pop_current;
  decltype(&::cuThreadExchangeStreamCaptureMode) exchange_capture_mode;
  decltype(&::cuModuleLoadData) load_module;
  decltype(&::cuModuleUnload) unload_module;
  decltype(&::cuModuleGetFunction) get_function;
  decltype(&::cuFuncSetAttribute) set_attribute;
  decltype(&::cuLaunchKernelEx) launch;
  decltype(&::cuStreamIsCapturing) is_capturing;
  decltype(&::cuMemHostAlloc) allocate_host;
  decltype(&::cuMemHostGetDevicePointer) device_pointer;
  decltype(&::cuMemFreeHost) free_host;
  decltype(&::cuGetErrorName) error_name;
  decltype(&::cuGetErrorString) error_text;
  decltype(&::cuStreamCreate) create_stream;
  decltype(&::cuStreamQuery) query_stream;
  decltype(&::cuStreamBeginCapture) begin_capture;
  decltype(&::cuStreamEndCapture) end_capture;
  decltype(&::cuStreamGetCaptureInfo) capture_info;
  decltype(&::cuGraphGetNodes) graph_nodes;
  decltype(&::cuGraphGetEdges) graph_edges;
  decltype(&::cuGraphAddDependencies) add_dependencies;
  decltype(&::cuGraphRemoveDependencies) remove_dependencies;
  decltype(&::cuGraphNodeGetType) node_type;
  decltype(&::cuGraphKernelNodeGetParams) kernel_node;
  decltype(&::cuGraphMemsetNodeGetParams) memset_node;
  decltype(&::cuGraphMemcpyNodeGetParams) memcpy_node;
  decltype(&::cuFuncGetParamInfo) function_parameter;
  decltype(&::cuKernelGetParamInfo) kernel_parameter;
  decltype(&::cuGraphClone) clone_graph;
  decltype(&::cuGraphNodeFindInClone) find_in_clone;
  decltype(&::cuGraphGetRootNodes) root_nodes;
  decltype(&::cuGraphAddKernelNode) add_kernel_node;
  decltype(&::cuGraphKernelNodeSetAttribute) set_node_attribute;
  decltype(&::cuGraphKernelNodeSetParams) set_kernel_node;
  decltype(&::cuGraphMemsetNodeSetParams) set_memset_node;
  decltype(&::cuGraphMemcpyNodeSetParams) set_memcpy_node;
  decltype(&::cuGraphInstantiateWithFlags) instantiate;
  decltype(&::cuGraphUpload) upload_graph;
  decltype(&::cuGraphExecKernelNodeSetParams) patch_kernel_node;
  decltype(&::cuGraphExecMemsetNodeSetParams) patch_memset_node;
  decltype(&::cuGraphExecMemcpyNodeSetParams) patch_memcpy_node;
  decltype(&::cuGraphLaunch) launch_graph;
  decltype(&::cuGraphDestroy) destroy_graph;
  decltype(&::cuGraphExecDestroy) destroy_executable_graph;
};

// The thread's current context, for a scope: what the caller had is put back, since torch knows its device by it.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver::Functions& cuda, CUcontext context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const CudaDriver::Functions& cuda_;
  bool pushed_ = false;
};

// While any thread captures a graph in the global mode, as torch does by default, loading a module or allocating memory is an
// error in all threads that are not in the relaxed mode, and it ends the capture. Here it is safe: nothing is queued on the
// capturing stream.
class BesideCapture {
 public:
  explicit BesideCapture(const CudaDriver::Functions& cuda) : cuda_(cuda) { cuda_.exchange_capture_mode(&mode_); }
  ~BesideCapture() { cuda_.exchange_capture_mode(&mode_); }
  BesideCapture(const BesideCapture&) = delete;
  BesideCapture& operator=(const BesideCapture&) = delete;

 private:
  const CudaDriver::Functions& cuda_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then what the thread had
};

struct CudaContext::State {
  CUdevice device = 0;
  CUcontext context = nullptr;
  std::vector<CUmodule> modules;  // both are guarded by ForkLock::Leaf
  std::vector<void*> mapped;
};

}  // namespace cxxinductor::targets

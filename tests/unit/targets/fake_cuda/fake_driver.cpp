// A CUDA driver without a GPU, for tests of what happens when the real one refuses: one device, host memory, launches
// that only count. It is opened by name in place of libcuda.so.1; tests say which call fails next.
#include <cuda.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "unit/targets/fake_cuda/fake_driver.h"

namespace {

std::mutex mutex;
std::map<std::string, int> failing_calls;  // name -> calls until it fails
std::map<std::string, int> calls;
thread_local CUcontext current_context = nullptr;
thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
bool capturing = false, capture_good = true;
int module_object = 0, function_object = 0, context_object = 0;

// Of calls that a capture forbids.
CUresult count_unsafe(const char* name, CUresult failure = CUDA_ERROR_UNKNOWN);

CUresult count(const char* name, CUresult failure = CUDA_ERROR_UNKNOWN) {
  const std::lock_guard lock(mutex);
  ++calls[name];
  const auto failing = failing_calls.find(name);
  if (failing == failing_calls.end()) return CUDA_SUCCESS;
  if (failing->second-- > 0) return CUDA_SUCCESS;
  failing_calls.erase(failing);
  return failure;
}

CUresult count_unsafe(const char* name, CUresult failure) {
  {
    const std::lock_guard lock(mutex);
    if (capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
      capture_good = false;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return count(name, failure);
}

}  // namespace

extern "C" {

void fake_cuda_begin_capture() {
  const std::lock_guard lock(mutex);
  capturing = capture_good = true;
}
bool fake_cuda_end_capture() {
  const std::lock_guard lock(mutex);
  capturing = false;
  return capture_good;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, capture_mode);
  return CUDA_SUCCESS;
}
void fake_cuda_fail(const char* call, int after) {
  const std::lock_guard lock(mutex);
  failing_calls[call] = after;
}
int fake_cuda_calls(const char* call) {
  const std::lock_guard lock(mutex);
  return calls[call];
}

CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuInit(unsigned) { return count("cuInit", CUDA_ERROR_NO_DEVICE); }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* devices) {
  *devices = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Fake", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice) {
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = reinterpret_cast<CUcontext>(&context_object);
  return count("cuDevicePrimaryCtxRetain", CUDA_ERROR_OUT_OF_MEMORY);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current_context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  current_context = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  *context = current_context;
  current_context = nullptr;
  return CUDA_SUCCESS;
}
// As the real one, it wants an ELF file.
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  *module = reinterpret_cast<CUmodule>(&module_object);
  const CUresult wanted = count_unsafe("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  if (wanted != CUDA_SUCCESS) return wanted;
  return std::memcmp(image, "\x7f" "ELF", 4) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleUnload(CUmodule) { return count_unsafe("cuModuleUnload"); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char*) {
  *function = reinterpret_cast<CUfunction>(&function_object);
  return count("cuModuleGetFunction", CUDA_ERROR_NOT_FOUND);
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return count("cuFuncSetAttribute"); }
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void**, void**) {
  return count("cuLaunchKernel", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}
CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const CUresult result = count_unsafe("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  *memory = result == CUDA_SUCCESS ? std::malloc(bytes) : nullptr;
  return result;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* memory, unsigned) {
  *device = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return count_unsafe("cuMemFreeHost");
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_INVALID_IMAGE:
      *name = "CUDA_ERROR_INVALID_IMAGE";
      break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
      break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
      break;
    default:
      *name = "CUDA_ERROR_OTHER";
  }
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "told to fail";
  return CUDA_SUCCESS;
}

}  // extern "C"

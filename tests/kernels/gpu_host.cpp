#include "kernels/gpu_host.h"

#include <cstring>

#include "codegen/cuda/emit.h"
#include "kernels/cuda_program.h"
#include "schedule/schedule.h"
#include "targets/cuda/dynamic_library.h"
#include "unit/make_plan.h"
#include "unit/targets/find_nvrtc.h"

namespace cxxinductor::tests {
namespace {

struct DeviceTensor {
  std::shared_ptr<GpuMachine> machine;
  void* data;
  std::vector<int64_t> dims;  // sizes, then strides
  std::atomic<int> references = 1;
};
void retain(void* object) { ++static_cast<DeviceTensor*>(object)->references; }
void release(void* object) {
  auto* tensor = static_cast<DeviceTensor*>(object);
  if (--tensor->references > 0) return;
  tensor->machine->free(tensor->data);
  delete tensor;
}
constexpr runtime::OwnerOperations operations{retain, release};

int64_t bytes_of(DType dtype, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return (last + 1) * byte_size(dtype);
}

}  // namespace

// The driver's calls that tests need beside those of the runtime; plain C types of its stable interface.
struct GpuMachine::Calls {
  Calls() : library({"libcuda.so.1"}, "of the CUDA driver") {
    load(allocate, "cuMemAlloc_v2");
    load(free, "cuMemFree_v2");
    load(to_device, "cuMemcpyHtoD_v2");
    load(to_host, "cuMemcpyDtoH_v2");
    load(copy, "cuMemcpyDtoDAsync_v2");
    load(synchronize, "cuCtxSynchronize");
    load(create_event, "cuEventCreate");
    load(record_event, "cuEventRecord");
    load(wait_event, "cuEventSynchronize");
    load(elapsed, "cuEventElapsedTime");
    load(device_get, "cuDeviceGet");
    load(retain_context, "cuDevicePrimaryCtxRetain");
    load(set_context, "cuCtxSetCurrent");
  }
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(library.find(name));
  }
  static void check(int result, const char* call) {
    if (result != 0) throw_user_error("{} failed with error {}", call, result);
  }
  targets::DynamicLibrary library;
  int (*allocate)(unsigned long long*, size_t);
  int (*free)(unsigned long long);
  int (*to_device)(unsigned long long, const void*, size_t);
  int (*to_host)(void*, unsigned long long, size_t);
  int (*copy)(unsigned long long, unsigned long long, size_t, void*);
  int (*synchronize)();
  int (*create_event)(void**, unsigned);
  int (*record_event)(void*, void*);
  int (*wait_event)(void*);
  int (*elapsed)(float*, void*, void*);
  int (*device_get)(int*, int);
  int (*retain_context)(void**, int);
  int (*set_context)(void*);
};

std::shared_ptr<GpuMachine> find_gpu(std::string* why) {
  try {
    return std::make_shared<GpuMachine>();
  } catch (const UserError& error) {
    *why = error.what();
    return nullptr;
  }
}

GpuMachine::GpuMachine() : nvrtc([] { return targets::nvrtc_candidates(targets::nvrtc_places()); }), calls_(std::make_unique<Calls>()) {
  nvrtc.get();  // UserError where there is none
  const targets::CudaDeviceProperties properties = driver.properties(0);
  target = cuda_target(properties.arch, properties.multiprocessors);
  int device = 0;
  void* context = nullptr;
  Calls::check(calls_->device_get(&device, 0), "cuDeviceGet");
  Calls::check(calls_->retain_context(&context, device), "cuDevicePrimaryCtxRetain");
  Calls::check(calls_->set_context(context), "cuCtxSetCurrent");
}
GpuMachine::~GpuMachine() = default;

void* GpuMachine::allocate(int64_t bytes) {
  unsigned long long address = 0;
  Calls::check(calls_->allocate(&address, static_cast<size_t>(std::max<int64_t>(bytes, 1))), "cuMemAlloc");
  return reinterpret_cast<void*>(address);
}
void GpuMachine::free(void* memory) { calls_->free(reinterpret_cast<unsigned long long>(memory)); }
void GpuMachine::to_device(void* device, const void* host, int64_t bytes) {
  Calls::check(calls_->to_device(reinterpret_cast<unsigned long long>(device), host, static_cast<size_t>(bytes)), "cuMemcpyHtoD");
}
void GpuMachine::to_host(void* host, const void* device, int64_t bytes) {
  Calls::check(calls_->to_host(host, reinterpret_cast<unsigned long long>(device), static_cast<size_t>(bytes)), "cuMemcpyDtoH");
}
void GpuMachine::copy_async(void* to, const void* from, int64_t bytes) {
  Calls::check(calls_->copy(reinterpret_cast<unsigned long long>(to), reinterpret_cast<unsigned long long>(from), static_cast<size_t>(bytes), nullptr),
               "cuMemcpyDtoDAsync");
}
void GpuMachine::synchronize() { Calls::check(calls_->synchronize(), "cuCtxSynchronize"); }

double GpuMachine::time(const std::function<void()>& work) {
  static void* const first = [this] {
    void* event = nullptr;
    Calls::check(calls_->create_event(&event, 0), "cuEventCreate");
    return event;
  }();
  static void* const last = [this] {
    void* event = nullptr;
    Calls::check(calls_->create_event(&event, 0), "cuEventCreate");
    return event;
  }();
  Calls::check(calls_->record_event(first, nullptr), "cuEventRecord");
  work();
  Calls::check(calls_->record_event(last, nullptr), "cuEventRecord");
  Calls::check(calls_->wait_event(last), "cuEventSynchronize");
  float milliseconds = 0;
  Calls::check(calls_->elapsed(&milliseconds, first, last), "cuEventElapsedTime");
  return milliseconds;
}

runtime::Owner GpuHost::allocate(Device device, int64_t bytes, void** data) {
  if (device.type == DeviceType::Cpu) return PlainHost::allocate(device, bytes, data);
  *data = machine_->allocate(bytes);
  return {new DeviceTensor{machine_, *data, {}}, &operations};
}

runtime::TensorRef GpuHost::empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (device.type == DeviceType::Cpu) return PlainHost::empty_strided(dtype, device, sizes, strides);
  auto* tensor = new DeviceTensor{machine_, machine_->allocate(bytes_of(dtype, sizes, strides)), {}};
  tensor->dims.assign(sizes.begin(), sizes.end());
  tensor->dims.insert(tensor->dims.end(), strides.begin(), strides.end());
  runtime::TensorRef made;
  made.data = tensor->data;
  made.dtype = dtype;
  made.device = device;
  made.rank = static_cast<uint32_t>(sizes.size());
  made.sizes_data = tensor->dims.data();
  made.strides_data = tensor->dims.data() + sizes.size();
  made.owner = runtime::Owner(tensor, &operations);
  return made;
}

runtime::TensorRef GpuHost::upload(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, const std::vector<double>& values) {
  const runtime::TensorRef staged = PlainHost::empty_strided(dtype, {}, sizes, strides);
  std::vector<Scalar> elements;
  for (double n : values) elements.push_back(is_float(dtype) ? Scalar::from_real(dtype, n) : Scalar::from_integer(dtype, static_cast<int64_t>(n)));
  runtime::write_elements(runtime::view_of(staged), elements);
  runtime::TensorRef made = empty_strided(dtype, {DeviceType::Cuda, 0}, sizes, strides);
  machine_->to_device(made.data, staged.data, bytes_of(dtype, sizes, strides));
  return made;
}

std::vector<double> GpuHost::download(const runtime::TensorRef& tensor) {
  const runtime::TensorRef staged = PlainHost::empty_strided(tensor.dtype, {}, tensor.sizes(), tensor.strides());
  machine_->to_host(staged.data, tensor.data, bytes_of(tensor.dtype, tensor.sizes(), tensor.strides()));
  std::vector<double> values;
  for (const Scalar& s : runtime::read_elements(runtime::view_of(staged))) values.push_back(s.as_real());
  return values;
}

GpuProgram::GpuProgram(const std::string& text, std::shared_ptr<GpuMachine> machine)
    : GpuProgram(schedule::test::make_plan(schedule::fuse(loops::parse(text), machine->target, Options(), nullptr), machine->target, Options()), machine) {}

GpuProgram::GpuProgram(plan::Plan planned, std::shared_ptr<GpuMachine> machine) : host(machine), plan(std::move(planned)) {
  const auto emit = [](const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins) {
    return targets::CudaUnitSource{codegen::emit_cuda({&kernel}, variant, origins), plan::launch_shape(kernel), codegen::cuda_has_checks(kernel)};
  };
  provider = std::make_shared<targets::CudaKernelProvider>(machine->target, 0, emit, machine->nvrtc, machine->driver, pool_, nullptr);
  provider->prepare(plan);
  executable = std::make_unique<runtime::Executable>(plan, provider, host);
}

std::vector<std::vector<double>> GpuProgram::run(std::vector<runtime::TensorRef> inputs) {
  std::vector<runtime::Value> values;
  for (runtime::TensorRef& input : inputs) values.emplace_back(std::move(input));
  std::vector<std::vector<double>> results;
  for (const runtime::Value& value : executable->run(host, std::move(values))) results.push_back(host.download(value.tensor));
  return results;
}

}  // namespace cxxinductor::tests

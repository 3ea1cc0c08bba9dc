#include "torch_bridge/device/registration.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "model/infer/infer.h"
#include "support/error.h"
#include "torch_bridge/device/attention.h"
#include "torch_bridge/device/autocast.h"
#include "torch_bridge/device/generator.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/fake_tensor.h"
#include "torch_bridge/record/recorder.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr c10::DeviceType device_type = c10::DeviceType::PrivateUse1;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  explicit Guard(const LazyDevice& device) : device_(device) {}

  c10::DeviceType type() const override { return device_type; }
  c10::Device exchangeDevice(c10::Device device) const override { return {device_type, std::exchange(current_index(), device.index())}; }
  c10::Device getDevice() const override { return {device_type, current_index()}; }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current_index() = device.index();
  }
  // Calls are recorded in their order, whatever the stream.
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getDefaultStream(c10::Device device) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*is_high_priority*/) const override { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  bool queryStream(const c10::Stream& /*stream*/) const override { return true; }
  void synchronizeStream(const c10::Stream& /*stream*/) const override { lazy_device().flush(); }
  void record(void** /*event*/, const c10::Stream& /*stream*/, const c10::DeviceIndex /*index*/, const c10::EventFlag /*flag*/) const override {}
  void block(void* /*event*/, const c10::Stream& /*stream*/) const override {}
  void synchronizeEvent(void* /*event*/) const override { lazy_device().flush(); }
  bool queryEvent(void* /*event*/) const override { return true; }
  void synchronizeDevice(const c10::DeviceIndex /*index*/) const override { lazy_device().flush(); }
  c10::DeviceIndex deviceCount() const noexcept override { return device_.count(); }

 private:
  const LazyDevice& device_;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  explicit Hooks(LazyDevice& device) : device_(device) {
    for (c10::DeviceIndex index = 0; index < device.count(); ++index) generators_.push_back(make_default_generator(device, index));
  }

  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return device_.count(); }
  void setCurrentDevice(c10::DeviceIndex index) const override { current_index() = index; }
  c10::DeviceIndex getCurrentDevice() const override { return current_index(); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override { return std::exchange(current_index(), index); }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return index < 0 ? current_index() : exchangeDevice(index); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override {
    return generators_.at(static_cast<size_t>(index < 0 ? current_index() : index));
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return make_generator(device_, index < 0 ? current_index() : index); }
  c10::Device getDeviceFromPtr(void* /*data*/) const override { return {device_type, current_index()}; }
  // What is copied to the device may be pinned for the GPU behind it.
  bool isPinnedPtr(const void* data) const override { return has_cuda() && cuda().isPinnedPtr(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return has_cuda() ? cuda().getPinnedMemoryAllocator() : c10::GetAllocator(c10::kCPU); }
  void resizePrivateUse1Bytes(const c10::Storage& /*storage*/, size_t /*bytes*/) const override {
    TORCH_CHECK(false, "memory of a recorded device is resized by aten::resize_ alone");
  }

 private:
  bool has_cuda() const { return device_.backing(0).is_cuda(); }
  static const at::AcceleratorHooksInterface& cuda() { return at::globalContext().getAcceleratorHooksInterface(c10::kCUDA); }

  LazyDevice& device_;
  std::vector<at::Generator> generators_;
};

// Of the process, as PyTorch's registries are; none of them can be taken back.
constinit std::atomic<LazyDevice*> the_device{nullptr};

void on_call(const c10::OperatorHandle& op, torch::jit::Stack& stack) { lazy_device().call(op, stack); }
void on_factory(const c10::OperatorHandle& op, torch::jit::Stack* stack) { lazy_device().call(op, *stack); }

// A tensor that PyTorch made of a storage's address has no recording key.
at::Tensor with_recording_key(const at::Tensor& tensor) {
  if (tensor.key_set().has(recording_key) || tensor.device().type() != device_type) return tensor;
  TORCH_CHECK(buffer_of(tensor) != nullptr, "a tensor of memory that is not the recorded device's");
  return make_device_tensor(tensor.storage(), form_of(tensor));
}

// copy_ where calls do not arrive by the recording key: torch.tensor() and the like keep it away while they make a
// tensor.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& target, bool non_blocking) {
  torch::jit::Stack stack{with_recording_key(target), with_recording_key(self), non_blocking};
  lazy_device().call(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""), stack);
  return target;
}

// Above autograd, which knows the gradients of the kernel that is chosen.
void attend(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (!flash_attention(*stack)) op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
}

bool is_compatible(const at::Tensor& /*self*/, const at::Tensor& /*from*/) { return true; }

// Factories have no tensor whose keys would bring their calls to us.
bool is_factory(const c10::FunctionSchema& schema) {
  const auto has = [&](c10::TypeKind kind) {
    return std::any_of(schema.arguments().begin(), schema.arguments().end(), [&](const c10::Argument& argument) {
      c10::TypePtr type = argument.real_type();
      while (type->kind() == c10::TypeKind::OptionalType || type->kind() == c10::TypeKind::ListType) type = type->containedTypes().front();
      return type->kind() == kind;
    });
  };
  return has(c10::TypeKind::DeviceObjType) && !has(c10::TypeKind::TensorType);
}

// Of kernels of the device, for as long as the process lives.
struct Kernels {
  torch::Library device{torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__};
  torch::Library autograd{torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__};
  torch::Library no_cast{torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__};
  torch::Library autocast{torch::Library::IMPL, "aten", c10::DispatchKey::AutocastPrivateUse1, __FILE__, __LINE__};

  Kernels() {
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (!name.name.starts_with("aten::")) continue;
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (!op || !is_factory(op->schema())) continue;
      if (name.name != "aten::empty" && !model::OpRule::find(name.name, name.overload_name, DispatcherSchemas())) continue;
      device.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&on_factory>());
    }
    device.impl("_copy_from", &copy_from);
    // Module::to hands the device's tensors to parameters of the CPU, and back.
    device.impl("_has_compatible_shallow_copy_type", &is_compatible);
    autograd.impl("_has_compatible_shallow_copy_type", &is_compatible);
    autograd.impl("scaled_dot_product_attention", torch::CppFunction::makeFromBoxedFunction<&attend>());
    no_cast.fallback(torch::CppFunction::makeFallthrough());
    add_autocast(autocast);
  }
};

c10::DeviceType choose_backing(std::optional<c10::DeviceType> wanted) {
  const c10::DeviceType backing = wanted ? *wanted : at::hasCUDA() ? c10::kCUDA : c10::kCPU;
  if (backing != c10::kCPU && backing != c10::kCUDA)
    throw_user_error("register_device: expected a backing of cpu or cuda, found {}", c10::DeviceTypeName(backing, true));
  if (backing == c10::kCUDA && !at::hasCUDA()) throw_user_error("register_device: expected a CUDA device to back it, PyTorch finds none");
  return backing;
}

// What PyTorch reads in "NAME:0", and no name of its own. A wrong one would take the slot for good.
void check_name(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), is_letter);
  bool is_taken = name == "privateuseone";
  for (int type = 0; type < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++type)
    if (c10::isValidDeviceType(static_cast<c10::DeviceType>(type)) && static_cast<c10::DeviceType>(type) != device_type)
      is_taken = is_taken || name == c10::DeviceTypeName(static_cast<c10::DeviceType>(type), /*lower_case=*/true);
  if (!is_word || is_taken) throw_user_error("register_device: expected a name of letters and underscores that is no device of PyTorch's, found '{}'", name);
}

}  // namespace

void register_lazy_device(const std::string& name, std::optional<c10::DeviceType> backing, const Options& options) {
  if (the_device.load() != nullptr) throw_user_error("register_device: a device is registered already, as '{}'", c10::get_privateuse1_backend());
  if (at::isPrivateUse1HooksRegistered() || c10::is_privateuse1_backend_registered() || c10::impl::hasDeviceGuardImpl(device_type))
    throw_user_error("register_device: PyTorch has one slot for devices of extensions (PrivateUse1), and '{}' has taken it", c10::get_privateuse1_backend());
  check_name(name);
  const c10::DeviceType chosen = choose_backing(backing);
  const c10::DeviceIndex count = chosen == c10::kCUDA ? c10::impl::getDeviceGuardImpl(c10::kCUDA)->deviceCount() : c10::DeviceIndex{2};
  c10::register_privateuse1_backend(name);
  auto* device = new LazyDevice(chosen, count, options);
  the_device.store(device);
  c10::impl::registerDeviceGuard(device_type, new Guard(*device));
  c10::SetAllocator(device_type, device_allocator());
  at::RegisterPrivateUse1HooksInterface(new Hooks(*device));
  new Kernels();
  register_attention_choice();
  handle_other_calls(&on_call);
}

LazyDevice& lazy_device() {
  LazyDevice* device = the_device.load(std::memory_order_acquire);
  if (device == nullptr) throw_user_error("no device is recorded: call register_device before");
  return *device;
}

}  // namespace cxxinductor::torch_bridge

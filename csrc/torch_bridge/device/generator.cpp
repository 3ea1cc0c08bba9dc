#include "torch_bridge/device/generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/GeneratorImpl.h>

#include <mutex>
#include <utility>

#include "torch_bridge/device/lazy_device.h"

namespace cxxinductor::torch_bridge {
namespace {

class BackedGenerator final : public c10::GeneratorImpl {
 public:
  BackedGenerator(LazyDevice& device, c10::DeviceIndex index, at::Generator backing, bool is_default)
      : GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        owner_(device),
        index_(index),
        backing_(std::move(backing)),
        is_default_(is_default) {}

  const at::Generator& backing() const { return backing_; }
  bool is_default() const { return is_default_; }

 private:
  template <class Do>
  auto with(const Do& run) const {
    return owner_.with_generator(index_, [&] {
      at::Generator generator = backing_;
      const std::lock_guard lock(generator.mutex());
      return run();
    });
  }

 public:
  void set_current_seed(uint64_t seed) override {
    with([&] { backing_.set_current_seed(seed); });
  }
  void set_offset(uint64_t offset) override {
    with([&] { backing_.set_offset(offset); });
  }
  uint64_t get_offset() const override {
    return with([&] { return backing_.get_offset(); });
  }
  uint64_t current_seed() const override {
    return with([&] { return backing_.current_seed(); });
  }
  uint64_t seed() override {
    return with([&] { return backing_.seed(); });
  }
  void set_state(const c10::TensorImpl& state) override {
    with([&] { backing_.unsafeGetGeneratorImpl()->set_state(state); });
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return with([&] { return backing_.unsafeGetGeneratorImpl()->get_state(); });
  }

 private:
  GeneratorImpl* clone_impl() const override { return new BackedGenerator(owner_, index_, backing_.clone(), /*is_default=*/false); }

  LazyDevice& owner_;
  const c10::DeviceIndex index_;
  mutable at::Generator backing_;
  const bool is_default_;
};

const BackedGenerator* as_backed(const at::Generator& generator) { return dynamic_cast<const BackedGenerator*>(generator.unsafeGetGeneratorImpl()); }

}  // namespace

at::Generator make_default_generator(LazyDevice& device, c10::DeviceIndex index) {
  return at::Generator(c10::make_intrusive<BackedGenerator>(device, index, at::globalContext().defaultGenerator(device.backing(index)), true));
}

at::Generator make_generator(LazyDevice& device, c10::DeviceIndex index) {
  const c10::Device backing = device.backing(index);
  at::Generator made =
      backing.is_cpu() ? at::detail::createCPUGenerator() : at::globalContext().getAcceleratorHooksInterface(backing.type()).getNewGenerator(backing.index());
  return at::Generator(c10::make_intrusive<BackedGenerator>(device, index, std::move(made), false));
}

bool is_default_generator(const at::Generator& generator) {
  const BackedGenerator* backed = as_backed(generator);
  return backed != nullptr && backed->is_default();
}

at::Tensor generator_state(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(c10::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

at::Generator backing_generator(const at::Generator& generator) {
  const BackedGenerator* backed = as_backed(generator);
  return backed == nullptr ? generator : backed->backing();
}

}  // namespace cxxinductor::torch_bridge

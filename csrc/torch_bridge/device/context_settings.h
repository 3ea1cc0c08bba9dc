// Settings of torch's that belong to the process and decide what an op computes or how: cuDNN and its TF32, what matrix products may
// round to, the kernels of attention, determinism, the default dtype.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cxxinductor::torch_bridge {

class ContextSettings {
 public:
  static constexpr size_t count = 30;

  static ContextSettings current();
  bool are_current() const;
  int64_t hash() const;
  const auto& values() const { return values_; }  // in an order of this build's
  bool operator==(const ContextSettings&) const = default;

 private:
  friend class ContextSettingsScope;
  std::array<int64_t, count> values_{};
};

// While it lives, torch has these settings, in all threads: other ones that compute with torch at that time see them too, as they see
// any change that a program makes.
class ContextSettingsScope {
 public:
  explicit ContextSettingsScope(const ContextSettings& settings);
  ~ContextSettingsScope();
  ContextSettingsScope(const ContextSettingsScope&) = delete;
  ContextSettingsScope& operator=(const ContextSettingsScope&) = delete;

 private:
  static void change(const ContextSettings& from, const ContextSettings& to);
  ContextSettings inside_, before_;
};

}  // namespace cxxinductor::torch_bridge

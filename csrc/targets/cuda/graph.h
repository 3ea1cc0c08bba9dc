// CUDA graphs as the runtime's DeviceGraph: capture of a stream, the arguments of its nodes, and how they are patched in the executable
// graph.
#pragma once

#include <functional>
#include <memory>

#include "runtime/graphs/device_graph.h"
#include "targets/cuda/driver.h"

namespace cxxinductor::targets {

class NodeUpdateKernels;
// What a device has for graphs that update themselves (node_updates.h). Null while it is compiled, which the first call starts, and
// where it cannot be. May be empty.
using NodeUpdateSource = std::function<NodeUpdateKernels*()>;

class CudaGraphDevice final : public runtime::GraphDevice {
 public:
  // The context must outlive the device; graphs keep what they need of it.
  CudaGraphDevice(const CudaContext& context, double bytes_per_second, double step_seconds, NodeUpdateSource updates)
      : context_(context), bytes_per_second_(bytes_per_second), step_seconds_(step_seconds), updates_(std::move(updates)) {}
  std::unique_ptr<runtime::GraphRecorder> record(void* stream, std::function<bool(const void*)> own) override;
  double bytes_per_second() const override { return bytes_per_second_; }
  double step_seconds() const override { return step_seconds_; }

 private:
  const CudaContext& context_;
  const double bytes_per_second_, step_seconds_;
  const NodeUpdateSource updates_;
};

}  // namespace cxxinductor::targets

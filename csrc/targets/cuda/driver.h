// The CUDA driver: devices, modules, launches. Opened with dlopen, so that this library loads where there is no GPU.
// Everything happens in the devices' primary contexts, which are torch's too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/plan/launch_shape.h"
#include "runtime/kernels.h"

namespace cxxinductor::targets {

struct CudaDeviceProperties {
  std::string name;
  std::string arch;  // "sm_90a": the exact architecture that kernels are compiled for
  int multiprocessors = 1;
  int threads_per_multiprocessor = 2048;
};

// A function of a loaded module. Opaque: CUfunction.
using CudaFunction = void*;

class CudaDriver {
 public:
  // UserError when there is no driver or it does not start.
  explicit CudaDriver(std::vector<std::string> names = {});
  ~CudaDriver();
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  int device_count() const;
  CudaDeviceProperties properties(int device) const;
  // Whether what is queued on the stream becomes part of a CUDA graph.
  bool is_capturing(void* stream) const;

  struct Functions;
  const Functions& functions() const { return *functions_; }

 private:
  std::unique_ptr<Functions> functions_;
};

// A device's primary context, retained. Calls make it the thread's current context and put back what the thread had.
// UserError when the device cannot be used; InternalError when the driver refuses a module or a launch. Modules and memory
// may be made and freed by any thread while another one captures a CUDA graph.
class CudaContext {
 public:
  CudaContext(CudaDriver& driver, int device);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  // Loads a module for the life of the context object.
  CudaFunction load(const std::string& cubin, const std::string& function, const plan::LaunchShape& shape);
  // Unsupported where the grid exceeds what devices have; `what` names the kernel in errors.
  void launch(CudaFunction function, runtime::Grid grid, const plan::LaunchShape& shape, void* stream, void** arguments, const std::string& what) const;

  // Host memory that kernels read or write; zeroed, never moved, freed with the context object. what: its purpose, for errors.
  struct Mapped {
    int* host = nullptr;
    void* device = nullptr;
  };
  Mapped allocate_mapped(size_t ints, const std::string& what);
  // A stream that does not wait for the default stream; it lives as long as the process.
  void* create_stream() const;

  struct State;  // of driver_functions.h
  const State& state() const { return *state_; }
  const CudaDriver& driver() const { return driver_; }

 private:
  CudaDriver& driver_;
  std::unique_ptr<State> state_;
};

}  // namespace cxxinductor::targets

// A device of PyTorch whose ops are recorded, and run compiled: for programs that call LibTorch op by op, training loops above all.
//
//   cxxinductor::register_device();                       // "cxxi", on the GPU if there is one, else on the CPU
//   model->to(torch::Device("cxxi"));
//   for (auto& batch : *loader) {
//     optimizer.zero_grad();
//     loss = criterion(model->forward(batch.data.to("cxxi")), batch.target.to("cxxi"));
//     loss.backward();
//     optimizer.step();
//     std::cout << loss.item<float>() << '\n';            // a sync point: the step runs here, as one compiled graph
//   }
#pragma once

#include <c10/core/DeviceType.h>
#include <cxxinductor/error.h>
#include <cxxinductor/options.h>

#include <cstdint>
#include <optional>
#include <string>

namespace cxxinductor {

// Makes the device, once in a process and before its first backward pass. Calls on its tensors are recorded below autograd. They run
// at sync points: item(), copies to other devices, printing, ops whose result sizes depend on elements, ops that cannot be recorded,
// mark_step(), and 20000 calls, or 256 MiB of inputs that the program has dropped, without any of these. Results are those of eager
// PyTorch on the backing device. Random numbers come from the backing device's generator; they are drawn at the sync point.
//
// Recordings are compiled for their ops. Floats that differ between recordings are inputs from the second one on, sizes are
// symbols from the third set of sizes on. Unless options.wait says otherwise, a recording runs through ATen while the compiler works.
//
// backing: kCUDA (an index for each GPU) or kCPU (two indices). None: CUDA where PyTorch finds a GPU.
// Error::Kind::User where PyTorch's slot for devices (PrivateUse1) is taken, or there is no such backing.
void register_device(const std::string& name = "cxxi", std::optional<c10::DeviceType> backing = std::nullopt,
                     const Options& options = without_waiting());

// Runs what is recorded: a sync point. Error::Kind::User before register_device.
void mark_step();

// Since the device was registered.
struct DeviceCounters {
  int64_t calls = 0;         // recorded
  int64_t runs = 0;             // of recordings
  int64_t uncompiled_runs = 0;  // of these, op by op through ATen: the compiler was not done, or would have to work too often
  int64_t compiled = 0;         // forms of recordings
  int64_t through_aten = 0;     // ops that could not be recorded, and ran through ATen on the backing device
  int64_t early_starts = 0;     // runs that began before their recording had ended
  int64_t early_drops = 0;      // of these, dropped: the recording ended as another one
};
DeviceCounters device_counters();

// What became of the recordings, for people: ops that ran through ATen, and how often; kernels and memory of each recording.
std::string explain_device();

}  // namespace cxxinductor

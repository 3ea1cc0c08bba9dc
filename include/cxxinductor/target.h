// A target of your own: what compiles and runs the kernels of graphs whose tensors lie in the host's memory, in the place of the host compiler. A
// simulator, another compiler, a processor that shares the host's memory. The compiler stays as it is: it plans for your figures and prints its kernels
// in a form that it has.
//
//   extern "C" const cxxinductor::RegisteredTarget* cxxinductor_target() { ... }      // of a shared library; this header is all that it needs
//   cxxinductor::load_target("libmine.so");                                           // or cxxinductor.load_target in Python
//   cxxinductor::Options options{.target = "mine", .target_options = "threads=4"};    // of graphs that are compiled with it
//
// What a target is called, its version, its figures and its options are part of the keys of all caches. examples/host_simt is a whole one.
#pragma once

#include <cxxinductor/error.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cxxinductor {

// Changes with this header: a library that was built against another one is refused.
inline constexpr int target_interface = 1;

// The machine, as the compiler divides work for it. All kernels give the same results whatever these are.
struct TargetFigures {
  int multiprocessors = 1;                     // that run blocks side by side
  int64_t shared_bytes_per_block = 48 * 1024;  // at least that
  // Of one multiprocessor while all of them work. They decide what is worth fusing.
  double bytes_per_second = 10e9;
  double instructions_per_second = 200e9;
  double launch_seconds = 2.5e-6;  // what a second kernel adds to a first
};

// An option of the target's own, which users set in the option target_options.
struct TargetOption {
  std::string name, value, doc;  // value: the default
};
using TargetOptions = std::map<std::string, std::string>;  // all that are declared, by name

// Kernels to compile: CUDA C++ for threads in blocks, which includes no headers but its own `files`. Each entry is a function
//   extern "C" __global__ void entry(...)
// A block has up to 1024 threads, which exchange registers in warps of 32; accesses to memory have up to 16 bytes. Besides the words of CUDA,
// __syncthreads and the functions of math.h, the text uses what the files in intrinsics/cuda define, which say what each function computes: another
// machine compiles files of its own by these names, as examples/host_simt does. It has neither tensor cores nor clusters.
struct KernelSource {
  std::string text;
  std::map<std::string, std::string> files;  // by name, as in #include "cuda/prelude.cuh": what the text includes, and what that includes
  std::vector<std::string> entries;
};

struct KernelLaunch {
  const char* entry;
  std::array<uint32_t, 3> grid, block;  // as gridDim and blockDim
  int64_t shared_bytes;                 // dynamic shared memory of a block
  void* const* arguments;               // the address of each argument, in the order of the entry's parameters
};

struct RegisteredTarget {
  int interface = target_interface;
  std::string name;     // letters, digits and '_': the value of option target
  std::string version;  // one line that changes when what compile makes of a text may change; with that of the compiler that it calls
  TargetFigures figures = {};
  std::vector<TargetOption> options = {};

  // What these throw becomes an error that names the target and the kernel: where compiling fails, the graph runs through ATen. All are called by
  // several threads at once.
  std::function<std::string(const KernelSource& source, const TargetOptions& options)> compile;  // code, as bytes: they are cached on disk
  std::function<void*(const std::string& code, const TargetOptions& options)> load;              // a module; not null
  std::function<void(void* module)> unload;
  std::function<void(void* module, const KernelLaunch& launch)> launch;  // returns when the kernel has ended
};

// For graphs that are compiled afterwards. Error::Kind::User where the target is not valid, or another one has the name; again with the same version
// does nothing.
void register_target(const RegisteredTarget& target);
// Registers what cxxinductor_target of a shared library returns, and returns its name. The library stays open for the life of the process.
std::string load_target(const std::string& path);

}  // namespace cxxinductor

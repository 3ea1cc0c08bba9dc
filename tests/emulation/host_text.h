// CUDA text compiled for the host: its kernels run thread by thread (emulation.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "emulation/block.h"
#include "targets/cpu/shared_object.h"

namespace cxxinductor::tests {

class HostText {
 public:
  // text: a unit that includes its templates (codegen::Templates::Included). kernels: names of its __global__ functions. what: in messages.
  HostText(const std::string& text, const std::vector<std::string>& kernels, const std::string& what);
  // args: addresses of the arguments. seed: of the order of threads and the time of asynchronous work. Returns "" or what went wrong.
  std::string run(size_t kernel, void* const* args, unsigned threads, int64_t blocks, uint64_t seed) const;

 private:
  using Function = void (*)(void* const* args, cxxi_emulation::Launcher& launcher);
  std::unique_ptr<targets::SharedObject> object_;
  std::vector<Function> functions_;
};

}  // namespace cxxinductor::tests

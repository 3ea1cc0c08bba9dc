// A compiled and loaded unit of CPU kernels, for tests that call kernels directly.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpu/emit.h"
#include "runtime/plain_host.h"
#include "targets/cpu/cpu_kernels.h"

namespace cxxinductor::tests {

// The widest target of this machine.
inline Target machine_target() { return cpu_target(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") ? "x86-64-v4" : "x86-64-v3", 4); }
// The least that kernels run on.
inline Target narrow_target() { return cpu_target("x86-64-v3", 2); }

class CpuUnit {
 public:
  CpuUnit(const std::vector<const plan::Kernel*>& kernels, const Target& target, std::string compiler = "") : source(codegen::emit_cpu(kernels, target, {})) {
    targets::HostCompiler host_compiler({std::move(compiler)});
    object_ = std::make_unique<targets::SharedObject>(host_compiler.compile(source, targets::cpu_compile_flags(target), kernels.front()->name),
                                                      std::vector<std::string>{"/tmp"});
    runtime::PlainHost host;
    auto** math = static_cast<void**>(object_->find("cxxi_math"));
    for (const std::string& name : codegen::cpu_math_symbols(kernels, target)) *math++ = host.find_symbol(name.c_str());
  }
  void run(const std::string& kernel, const std::vector<void*>& buffers, const std::vector<int64_t>& symbols, int64_t begin, int64_t end) const {
    using Function = void (*)(void* const*, const int64_t*, int64_t, int64_t);
    reinterpret_cast<Function>(object_->find(kernel))(buffers.data(), symbols.data(), begin, end);
  }
  std::string source;

 private:
  std::unique_ptr<targets::SharedObject> object_;
};

}  // namespace cxxinductor::tests

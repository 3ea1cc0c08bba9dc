// NVRTC, opened when a graph is planned or something is compiled. Its version, which is part of the keys of compiled code, is remembered in the cache on
// disk beside what tells the library's file from others: a process that finds its plans and all its code there does not open the library, which takes
// longer than the rest of its start.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "targets/cuda/nvrtc.h"

namespace cxxinductor::runtime {
class CompilePool;
class DiskCache;
}  // namespace cxxinductor::runtime

namespace cxxinductor::targets {

class NvrtcSource {
 public:
  // candidates: of Nvrtc, looked for again while none of them opens. opened: called once one has opened.
  explicit NvrtcSource(std::function<std::vector<std::string>()> candidates, std::function<void()> opened = {})
      : candidates_(std::move(candidates)), opened_(std::move(opened)) {}

  // Both: UserError where there is no NVRTC. The result lives as long as this.
  const Nvrtc& get();
  // Something will be compiled for the architecture: has a thread of the pool, which must end before this does, open the library and compile a first
  // kernel, which takes longer than later ones. Once; errors are left to the first compile.
  void start(runtime::CompilePool& pool, const std::string& arch);
  // cache may be null. Opens the library where the cache does not know it, and where only the loader knows which file it is.
  std::string version(runtime::DiskCache* cache);

 private:
  const std::function<std::vector<std::string>()> candidates_;
  const std::function<void()> opened_;
  std::unique_ptr<Nvrtc> nvrtc_;  // guarded by ForkLock::Loader
  std::atomic<bool> started_ = false;
  std::string version_;  // guarded by ForkLock::Leaf; empty before it is known
};

}  // namespace cxxinductor::targets

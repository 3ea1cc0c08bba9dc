#include "targets/cuda/nvrtc_source.h"

#include "runtime/compile_pool.h"
#include "runtime/disk_cache.h"
#include "support/files.h"
#include "support/fork_locks.h"

namespace cxxinductor::targets {
namespace {

bool is_path(const std::string& name) { return name.find('/') != std::string::npos; }

std::string version_key(const std::string& file) { return "nvrtc version\n" + file; }

// Of the library that would be opened: the first that is there. If it does not open, nobody has remembered its version.
std::string remembered_version(const std::vector<std::string>& candidates, runtime::DiskCache& cache) {
  for (const std::string& candidate : candidates) {
    if (!is_path(candidate)) return {};
    const std::string file = describe_file(candidate);
    if (file.empty()) continue;
    const auto found = cache.get(version_key(file));
    return found ? std::string(reinterpret_cast<const char*>(found->data()), found->size()) : std::string();
  }
  return {};
}

}  // namespace

const Nvrtc& NvrtcSource::get() {
  // While the library opens, forks wait, and so do other threads that open libraries.
  const ForkGuard guard(ForkLock::Loader);
  if (!nvrtc_) {
    nvrtc_ = std::make_unique<Nvrtc>(candidates_());
    if (opened_) opened_();
  }
  return *nvrtc_;
}

void NvrtcSource::start(runtime::CompilePool& pool, const std::string& arch) {
  if (started_.exchange(true)) return;
  const auto compile_first = [this, arch](const InterruptCheck& interrupted) {
    try {
      get().compile_to_cubin("extern \"C\" __global__ void first() {}\n", arch, "first", {}, interrupted);
    } catch (const std::exception&) {
      // Whoever needs a kernel meets the same error.
    }
  };
  pool.run_in_background(this, {"first", 1, compile_first});
}

std::string NvrtcSource::version(runtime::DiskCache* cache) {
  {
    const ForkGuard guard(ForkLock::Leaf);
    if (!version_.empty()) return version_;
  }
  // Without a lock: the cache may ask a remote store.
  std::string version = cache ? remembered_version(candidates_(), *cache) : std::string();
  if (version.empty()) {
    const Nvrtc& nvrtc = get();
    version = nvrtc.version();
    const std::string file = is_path(nvrtc.path()) ? describe_file(nvrtc.path()) : std::string();
    if (cache && !file.empty()) cache->put(version_key(file), version);
  }
  const ForkGuard guard(ForkLock::Leaf);
  return version_ = std::move(version);
}

}  // namespace cxxinductor::targets

#include "targets/cuda/nvrtc.h"

#include <nvrtc.h>

#include <atomic>

#include "support/error.h"
#include "targets/cuda/dynamic_library.h"

namespace cxxinductor::targets {

struct Nvrtc::Functions {
  explicit Functions(const std::vector<std::string>& names)
      : library(names,
                "CUDA kernels cannot be compiled: NVRTC was not found (it comes with PyTorch's CUDA builds and with CUDA Toolkits; "
                "option nvrtc, or CXXINDUCTOR_NVRTC, names another place); graphs on the CPU are compiled all the same") {
    load(create, "nvrtcCreateProgram");
    load(destroy, "nvrtcDestroyProgram");
    load(compile, "nvrtcCompileProgram");
    load(log_size, "nvrtcGetProgramLogSize");
    load(log, "nvrtcGetProgramLog");
    load(cubin_size, "nvrtcGetCUBINSize");
    load(cubin, "nvrtcGetCUBIN");
    load(version, "nvrtcVersion");
    load(error_text, "nvrtcGetErrorString");
    set_flow_callback = reinterpret_cast<SetFlowCallback*>(library.find_optional("nvrtcSetFlowCallback"));
  }
  std::string text_of(nvrtcResult result) const {
    const char* text = error_text(result);
    return text != nullptr ? text : fmt::format("error {}", static_cast<int>(result));
  }
  template <class Function>
  void load(Function& function, const char* name) {
    function = reinterpret_cast<Function>(library.find(name));
  }
  void check(nvrtcResult result, const char* call, const std::string& what) const {
    if (result != NVRTC_SUCCESS) throw_internal("{} failed for {}: {}", call, what, text_of(result));
  }

  DynamicLibrary library;
  decltype(&::nvrtcCreateProgram) create;
  decltype(&::nvrtcDestroyProgram) destroy;
  decltype(&::nvrtcCompileProgram) compile;
  decltype(&::nvrtcGetProgramLogSize) log_size;
  decltype(&::nvrtcGetProgramLog) log;
  decltype(&::nvrtcGetCUBINSize) cubin_size;
  decltype(&::nvrtcGetCUBIN) cubin;
  decltype(&::nvrtcVersion) version;
  decltype(&::nvrtcGetErrorString) error_text;
  // Spelled out, for headers that are older than the library; null in libraries before 12.8.
  using SetFlowCallback = nvrtcResult(nvrtcProgram, int (*)(void*, void*), void*);
  SetFlowCallback* set_flow_callback = nullptr;
};

namespace {

// What the compiler asks while it runs. Once it was told to stop, the answer stays.
struct StopState {
  const InterruptCheck& interrupted;
  std::atomic<bool> stopped = false;

  static int ask(void* payload, void*) {
    auto& state = *static_cast<StopState*>(payload);
    if (!state.stopped && state.interrupted()) state.stopped = true;
    return state.stopped ? 1 : 0;
  }
};

}  // namespace

Nvrtc::Nvrtc(const std::vector<std::string>& candidates) {
  functions_ = std::make_unique<Functions>(candidates);
  int major = 0, minor = 0;
  functions_->check(functions_->version(&major, &minor), "nvrtcVersion", "this machine");
  version_ = fmt::format("{}.{}", major, minor);
  // NVRTC asks for it by name when it first compiles, and its folder in a wheel is none that the loader searches.
  functions_->library.open_beside("libnvrtc-builtins.so." + version_);
}
Nvrtc::~Nvrtc() = default;

const std::string& Nvrtc::version() const { return version_; }
const std::string& Nvrtc::path() const { return functions_->library.path(); }

std::span<const char* const> Nvrtc::options() {
  // 177, 550: a coordinate that no access of a kernel needs, a value that no later segment reads. 186: comparing an
  // unsigned with zero, which templates over all integers do.
  static constexpr const char* all[] = {"--std=c++17", "--minimal", "--diag-suppress=177,186,550"};
  return all;
}

CubinResult Nvrtc::compile_to_cubin(const std::string& source, const std::string& arch, const std::string& what, const std::vector<std::string>& more_options,
                                    const InterruptCheck& interrupted) const {
  const Functions& nvrtc = *functions_;
  const std::string architecture = "--gpu-architecture=" + arch;
  std::vector<const char*> flags = {architecture.c_str()};
  flags.insert(flags.end(), options().begin(), options().end());
  for (const std::string& option : more_options) flags.push_back(option.c_str());

  nvrtcProgram created = nullptr;
  nvrtc.check(nvrtc.create(&created, source.c_str(), (what + ".cu").c_str(), 0, nullptr, nullptr), "nvrtcCreateProgram", what);
  const auto destroy = [&nvrtc](nvrtcProgram program) { nvrtc.destroy(&program); };
  const std::unique_ptr<std::remove_pointer_t<nvrtcProgram>, decltype(destroy)> program(created, destroy);
  StopState stop{interrupted};
  if (interrupted && nvrtc.set_flow_callback) nvrtc.check(nvrtc.set_flow_callback(program.get(), &StopState::ask, &stop), "nvrtcSetFlowCallback", what);
  const nvrtcResult result = nvrtc.compile(program.get(), static_cast<int>(flags.size()), flags.data());
  if (stop.stopped) throw Interrupted();

  CubinResult out;
  size_t size = 0;
  nvrtc.check(nvrtc.log_size(program.get(), &size), "nvrtcGetProgramLogSize", what);
  out.log.resize(size);
  nvrtc.check(nvrtc.log(program.get(), out.log.data()), "nvrtcGetProgramLog", what);
  while (!out.log.empty() && (out.log.back() == '\0' || out.log.back() == '\n')) out.log.pop_back();
  if (result != NVRTC_SUCCESS) throw_internal("NVRTC {} did not compile {} for {} ({}):\n{}", version_, what, arch, nvrtc.text_of(result), out.log);
  nvrtc.check(nvrtc.cubin_size(program.get(), &size), "nvrtcGetCUBINSize", what);
  out.cubin.resize(size);
  nvrtc.check(nvrtc.cubin(program.get(), out.cubin.data()), "nvrtcGetCUBIN", what);
  return out;
}

}  // namespace cxxinductor::targets

#include "emulation/host_text.h"

#include <fmt/format.h>

#include <iterator>
#include <sstream>

#include "emulation/scheduler.h"
#include "support/error.h"
#include "targets/cpu/host_compiler.h"

namespace cxxinductor::tests {

HostText::HostText(const std::string& text, const std::vector<std::string>& kernels, const std::string& what) {
  std::string unit = "#include <emulation.h>\n" + text;
  for (const std::string& kernel : kernels)
    unit += fmt::format(
        "extern \"C\" void run_{0}(void* const* args, cxxi_emulation::Launcher& launcher) {{ cxxi_emulation::launch(&{0}, args, launcher); }}\n", kernel);
  // The folder of the precompiled header comes first, then that of the intrinsics' host versions, which hide those of kernels_templates. Some are
  // those of examples/host_simt.
  std::vector<std::string> flags = {"-shared", "-I" CXXINDUCTOR_EMULATION_FOLDER, "-I" CXXINDUCTOR_SOURCE_DIR "/tests/emulation",
                                    "-I" CXXINDUCTOR_SOURCE_DIR "/kernels_templates", "-I" CXXINDUCTOR_SOURCE_DIR "/examples"};
  const auto names_it = [&text](std::string_view word) { return text.find(word) != std::string::npos; };
  const bool shares_memory = names_it("__shared__") || names_it("CXXI_DYNAMIC_SHARED");
  std::istringstream words(std::string(CXXINDUCTOR_EMULATION_FLAGS) + (shares_memory ? " " CXXINDUCTOR_EMULATION_WATCH : ""));
  flags.insert(flags.end(), std::istream_iterator<std::string>(words), {});
  targets::HostCompiler compiler({});
  object_ = std::make_unique<targets::SharedObject>(compiler.compile(unit, flags, what), std::vector<std::string>{"/tmp"});
  for (const std::string& kernel : kernels) {
    void* function = object_->find("run_" + kernel);
    CXXI_CHECK(function != nullptr, "no kernel {}", kernel);
    functions_.push_back(reinterpret_cast<Function>(function));
  }
}

std::string HostText::run(size_t kernel, void* const* args, unsigned threads, int64_t blocks, uint64_t seed) const {
  cxxi_emulation::Scheduler scheduler(threads, blocks, seed);
  functions_.at(kernel)(args, scheduler);
  return scheduler.error();
}

}  // namespace cxxinductor::tests

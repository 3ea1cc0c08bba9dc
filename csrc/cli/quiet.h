// Keeps PyTorch's warnings from the user where they are no news.
#pragma once

#include <c10/util/Exception.h>
#include <cxxinductor/cxxinductor.h>

#include <string>

namespace cxxinductor::cli {

// For a scope.
class Quiet {
 private:
  struct Silence : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Silence silence_;
  c10::WarningUtils::WarningHandlerGuard guard_{&silence_};
};

// A model that is meant to run op by op, which is what the warning would be about.
inline Model load_quietly(const std::string& path, const Options& options) {
  const Quiet quiet;
  return load(path, options);
}

}  // namespace cxxinductor::cli

// A loops program on the host's memory, compiled and run by a registered target: text -> plan -> its code -> Executable.
#pragma once

#include <memory>

#include "ir/loops/text.h"
#include "runtime/executable.h"
#include "runtime/plain_host.h"
#include "schedule/schedule.h"
#include "targets/registered/registered_runtime.h"

namespace cxxinductor::tests {

// As CpuProgram (cpu_program.h).
class TargetProgram {
 public:
  TargetProgram(const loops::Program& program, targets::RegisteredRuntime& runtime) {
    const Target target = runtime.describe(0);
    plan::Plan plan = schedule::test::make_plan(program, target, Options());
    auto provider = runtime.make_provider({}, target, {pool_, nullptr, options_, host}, {}, {});
    provider->prepare(plan);
    executable = std::make_unique<runtime::Executable>(std::move(plan), std::move(provider), host);
  }

 private:
  Options options_;
  runtime::CompilePool pool_{2};

 public:
  runtime::PlainHost host;
  std::unique_ptr<runtime::Executable> executable;
};

}  // namespace cxxinductor::tests

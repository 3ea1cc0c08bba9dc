// The devices of a model's calls, and what the importer is told of their targets.
#pragma once

#include <set>

#include "frontend/import_environment.h"
#include "ir/device_types.h"
#include "ir/target.h"
#include "model/call_graph.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {

// Of the tensors, those of subgraphs too; the CPU where there are none.
std::set<Device> devices_of(const model::CallGraph& calls);
// Without targets.
frontend::ImportEnvironment import_environment(const Options& options, bool deterministic);
// Sets gpus and simt_on_host: by the targets that this process compiles for, or by those given, which may lack the host's.
void add_targets(frontend::ImportEnvironment& environment, const std::set<Device>& devices, const Options& options);
void add_targets(frontend::ImportEnvironment& environment, const std::set<Device>& devices, const Targets& targets);

}  // namespace cxxinductor::torch_bridge

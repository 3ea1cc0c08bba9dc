// For programs that load the library and do nothing else: with CXXINDUCTOR_JIT=1 PyTorch's own executor of TorchScript gets a pass that
// groups the regions of each graph it optimizes. It calls the pass after a profiling run, for graphs that need no gradients. Region::run
// checks the arguments of every call, and runs the code as written where there is no compiled form for them.
#include <torch/csrc/jit/passes/pass_manager.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "cxxinductor/cxxinductor.h"
#include "support/error.h"
#include "torch_bridge/jit/region_group.h"
#include "torch_bridge/process_check.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;

std::atomic<int> graphs{0};
std::atomic<bool> has_warned{false};

// They count what they see; in a region that would be at the wrong time.
void remove_profiles(Block* block) {
  for (auto it = block->nodes().begin(); it != block->nodes().end();) {
    Node* const node = *it;
    ++it;
    for (Block* inner : node->blocks()) remove_profiles(inner);
    if (node->kind() != torch::jit::prim::profile && node->kind() != torch::jit::prim::profile_ivalue) continue;
    if (!node->outputs().empty()) node->output()->replaceAllUsesWith(node->input());
    node->destroy();
  }
}

// The program knows nothing of the library: what is wrong with its environment is no reason to end it.
std::optional<Options> environment() {
  try {
    return options_from_environment();
  } catch (const UserError& error) {
    if (!has_warned.exchange(true)) TORCH_WARN("cxxinductor: CXXINDUCTOR_JIT compiles nothing: ", error.what());
    return std::nullopt;
  }
}

void compile_regions(const std::shared_ptr<Graph>& graph) {
  const std::optional<Options> options = environment();
  if (!options) return;
  remove_profiles(graph->block());
  group_regions(graph, fmt::format("graph_{}", graphs.fetch_add(1)), *options);
}

struct RegisteredPass {
  RegisteredPass() {
    const char* wanted = std::getenv("CXXINDUCTOR_JIT");
    if (wanted == nullptr || std::string_view(wanted) != "1" || !other_copies().empty()) return;
    torch::jit::registerPrePass([](std::shared_ptr<Graph>& graph) { compile_regions(graph); });
  }
};
const RegisteredPass registered;

}  // namespace
}  // namespace cxxinductor::torch_bridge

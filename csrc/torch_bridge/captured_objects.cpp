#include "torch_bridge/captured_objects.h"

#include <atomic>
#include <utility>

namespace cxxinductor::torch_bridge {
namespace {

struct Kept {
  std::shared_ptr<const void> object;
  Kept* next;
};
constinit std::atomic<Kept*> all_kept{nullptr};

}  // namespace

void keep_for_captured_graphs(std::shared_ptr<const void> object) {
  auto* kept = new Kept{std::move(object), all_kept.load()};
  while (!all_kept.compare_exchange_weak(kept->next, kept)) {
  }
}

}  // namespace cxxinductor::torch_bridge

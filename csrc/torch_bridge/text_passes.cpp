#include "torch_bridge/text_passes.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "driver/dump.h"
#include "passes/pass_manager.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace cxxinductor::torch_bridge {
namespace {

// Never destroyed: functions of passes may be Python's, which is gone when static data is.
constinit MadeOnce<driver::TextPasses, ForkLock::Leaf> made_passes;

driver::TextPasses& all_passes() {
  return made_passes.get([] { return driver::TextPasses(); });
}

std::vector<std::string> names_of(const driver::TextPasses& passes) {
  std::vector<std::string> names;
  for (const auto& pass : passes) names.push_back(pass->name);
  return names;
}

}  // namespace

void add_text_pass(driver::TextPass pass) {
  driver::check_text_pass(pass);
  driver::TextPasses& all = all_passes();
  const auto added = std::make_shared<const driver::TextPass>(std::move(pass));
  const ForkGuard guard(ForkLock::Leaf);
  const auto found = std::ranges::find(all, added->name, [](const auto& old) { return old->name; });
  if (found == all.end()) {
    all.push_back(added);
  } else if ((*found)->stage != added->stage || (*found)->version != added->version) {
    throw_user_error("the pass {} is registered already, after {} with the version {}", added->name, (*found)->stage, (*found)->version);
  }
}

void remove_text_pass(std::string_view name) {
  driver::TextPasses& all = all_passes();
  std::shared_ptr<const driver::TextPass> removed;  // destroyed without the lock
  const ForkGuard guard(ForkLock::Leaf);
  const auto found = std::ranges::find(all, name, [](const auto& pass) { return std::string_view(pass->name); });
  if (found == all.end()) return;
  removed = std::move(*found);
  all.erase(found);
}

driver::TextPasses registered_text_passes() {
  driver::TextPasses& all = all_passes();
  const ForkGuard guard(ForkLock::Leaf);
  return all;
}

void check_pass_names(const Options& options) {
  const std::vector<std::string> names = names_of(registered_text_passes());
  passes::check_skip_passes(options, names);
  driver::check_dump(options, names);
}

void set_options_and_passes(driver::Request& request, const Options& options) {
  request.options = options;
  request.text_passes = registered_text_passes();
  driver::leave_out_skipped(request.text_passes, request.options);
}

}  // namespace cxxinductor::torch_bridge

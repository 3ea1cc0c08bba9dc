#include "runtime/graphs/graph_cache.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace cxxinductor::runtime {
namespace {
constexpr size_t most_sets = 64;  // kinds of calls
}  // namespace

GraphCounters& graph_counters() {
  static GraphCounters counters;
  return counters;
}

std::shared_ptr<GraphSet> GraphCache::find(std::span<const int64_t> key, std::span<const int64_t> values,
                                           const std::function<std::vector<bool>()>& held_inputs) {
  std::vector<std::shared_ptr<GraphSet>> dropped;  // without the lock: the driver may take its time
  std::unique_lock lock(mutex_);
  const auto found = std::ranges::find_if(sets_, [&](const auto& set) { return std::ranges::equal(set->key, key); });
  if (found != sets_.end()) {
    std::rotate(sets_.begin(), found, found + 1);
  } else {
    // A set that is dropped here lives on in calls that use it.
    const auto is_current = [&](const auto& set) { return set->key.front() >= key.front(); };
    const auto outdated = std::ranges::stable_partition(sets_, is_current);
    dropped.assign(std::make_move_iterator(outdated.begin()), std::make_move_iterator(outdated.end()));
    sets_.erase(outdated.begin(), outdated.end());
    if (sets_.size() == most_sets) {
      dropped.push_back(std::move(sets_.back()));
      sets_.pop_back();
    }
    sets_.insert(sets_.begin(), std::make_shared<GraphSet>());
    sets_.front()->key.assign(key.begin(), key.end());
  }
  const std::shared_ptr<GraphSet> set = sets_.front();
  if (set->has_stretches) [[likely]]
    return set;
  if (set->calls < calls_before_) {
    ++set->calls;
    return nullptr;
  }
  const Refusals refused = refused_;
  lock.unlock();
  std::vector<Stretch> stretches = find_stretches(plan_, tables_, values, held_inputs(), refused);
  lock.lock();
  if (std::exchange(set->has_stretches, true)) return set;  // another thread was faster
  for (Stretch& stretch : stretches) set->stretches.push_back({.stretch = std::move(stretch)});
  return set;
}

void GraphCache::refuse(const std::string& callee, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (refused_.calls.emplace(callee, reason).second) divide_anew();
}

void GraphCache::refuse(const std::map<uint32_t, std::string>& steps) {
  const std::lock_guard lock(mutex_);
  const size_t before = refused_.steps.size();
  refused_.steps.insert(steps.begin(), steps.end());
  if (refused_.steps.size() > before) divide_anew();
}

void GraphCache::note(const std::string& reason, const Stretch& stretch) {
  const std::lock_guard lock(mutex_);
  noted_[{reason, stretch.first}] = static_cast<int>(stretch.launches + stretch.calls);
}

void GraphCache::divide_anew() {
  for (std::shared_ptr<GraphSet>& set : sets_) {
    auto fresh = std::make_shared<GraphSet>();
    fresh->key = set->key;
    fresh->calls = set->calls;
    set = std::move(fresh);
  }
}

// Another thread of the parent was changing all of it, so nothing is destroyed.
void GraphCache::forget_in_child() {
  std::construct_at(&sets_);
  std::construct_at(&refused_);
  std::construct_at(&noted_);
}

std::vector<std::pair<std::string, int>> GraphCache::reasons() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, int> counts;
  for (const auto& [noted, steps] : noted_) counts[noted.first] += steps;
  for (const StepRecord& step : tables_.steps) {
    const std::string reason = why_not_recorded(plan_, tables_, step, refused_);
    if (reason.empty()) continue;
    const std::string what = step.kind == StepRecord::Kind::Extern ? tables_.externs[step.index].name + ": " : std::string();
    ++counts[what + reason];
  }
  return {counts.begin(), counts.end()};
}

}  // namespace cxxinductor::runtime

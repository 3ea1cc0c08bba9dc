#include "driver/plan_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "driver/compile.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "runtime/disk_cache.h"
#include "support/error.h"
#include "support/options.h"

namespace cxxinductor::driver {
namespace {

using Json = nlohmann::json;

Json to_json(const std::vector<plan::MissedFusion>& missed_fusions) {
  Json list = Json::array();
  for (const plan::MissedFusion& missed : missed_fusions) list.push_back({missed.producer, missed.consumer, missed.reason, missed.bytes});
  return list;
}

std::vector<plan::MissedFusion> missed_fusions_of(const Json& list) {
  std::vector<plan::MissedFusion> missed_fusions;
  for (const Json& missed : list)
    missed_fusions.push_back({missed.at(0).get<std::string>(), missed.at(1).get<std::string>(), missed.at(2).get<std::string>(),
                              missed.at(3).get<int64_t>()});
  return missed_fusions;
}

StoredPlan read_entry(const Json& entry) {
  StoredPlan stored;
  stored.plan = plan::parse(entry.at("plan").get_ref<const std::string&>());
  stored.plan.missed_fusions = missed_fusions_of(entry.at("missed_fusions"));
  if (const auto found = entry.find("const_graph"); found != entry.end())
    stored.const_graph = passes::ConstGraph{graph::parse(found->at("graph").get_ref<const std::string&>()),
                                            found->at("inputs").get<std::vector<uint32_t>>()};
  return stored;
}

}  // namespace

std::string options_key(Options options) {
  const Options defaults;
  options.cache_dir = defaults.cache_dir;
  options.cache_size = defaults.cache_size;
  options.dump_dir = defaults.dump_dir;
  options.explain = defaults.explain;
  options.time = defaults.time;
  options.progress = defaults.progress;
  options.compile_threads = defaults.compile_threads;
  options.compile_timeout = defaults.compile_timeout;
  return to_string(options);
}

std::string plan_key(const Request& request) {
  std::string key = fmt::format("plan\noptions {}\n", options_key(request.options));
  for (Device device : request.targets.devices())
    key += fmt::format("target {} {}\n", to_string(device), to_string(request.targets.of(device)));
  for (const auto& [device, bytes] : *request.eager_peaks) key += fmt::format("eager_peak {} {}\n", to_string(device), bytes);
  return key + fmt::format("late_inputs [{}]\n", fmt::join(request.late_inputs, ", ")) + graph::print(request.graph);
}

std::optional<StoredPlan> read_plan(runtime::DiskCache& cache, const std::string& key, runtime::EntryLock& lock,
                                    const InterruptCheck& interrupted) {
  runtime::DiskCache::Claim claim = cache.claim(key, runtime::DiskCache::kPatience, interrupted);
  lock = std::move(claim.lock);
  if (!claim.bytes) return std::nullopt;
  try {
    const Json entry = Json::from_cbor(*claim.bytes);
    if (entry.at("key").get_ref<const std::string&>() != key) return std::nullopt;
    return read_entry(entry);
  } catch (const Json::exception&) {
  } catch (const Error&) {
  }
  return std::nullopt;
}

void write_plan(runtime::DiskCache& cache, const std::string& key, const plan::Plan& plan,
                const std::optional<passes::ConstGraph>& const_graph) {
  Json entry{{"key", key}, {"plan", plan::print(plan)}, {"missed_fusions", to_json(plan.missed_fusions)}};
  if (const_graph) entry["const_graph"] = {{"graph", graph::print(const_graph->graph)}, {"inputs", const_graph->inputs}};
  std::string bytes;
  Json::to_cbor(entry, bytes);
  cache.put(key, bytes);
}

}  // namespace cxxinductor::driver

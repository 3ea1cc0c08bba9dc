#include "driver/plan_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/compile.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "ir/registered_ops.h"
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
    missed_fusions.push_back({missed.at(0).get<std::string>(), missed.at(1).get<std::string>(), missed.at(2).get<std::string>(), missed.at(3).get<int64_t>()});
  return missed_fusions;
}

// An entry is a list of texts, each behind its size: CBOR's reader takes a string apart into its bytes, which would be most of the time that
// an entry takes.
void append_text(std::string& entry, std::string_view text) {
  const uint64_t size = text.size();
  entry.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}

// Takes the first text off. Error where there is none.
std::string_view take_text(std::string_view& entry) {
  uint64_t size = 0;
  if (entry.size() >= sizeof size) std::memcpy(&size, entry.data(), sizeof size);
  if (entry.size() < sizeof size || entry.size() - sizeof size < size) throw_user_error("a plan's entry ends early");
  const std::string_view text = entry.substr(sizeof size, size);
  entry.remove_prefix(sizeof size + size);
  return text;
}

// What follows the key: the plan, notes about it as CBOR, and the text of the graph that is computed once, empty where there is none.
StoredPlan read_entry(std::string_view texts) {
  StoredPlan stored;
  stored.plan = plan::parse(take_text(texts));
  const Json details = Json::from_cbor(take_text(texts));
  stored.plan.missed_fusions = missed_fusions_of(details.at("missed_fusions"));
  if (const std::string_view graph = take_text(texts); !graph.empty())
    stored.const_graph = passes::ConstGraph{graph::parse(graph), details.at("const_inputs").get<std::vector<uint32_t>>()};
  return stored;
}

}  // namespace

std::string options_key(Options options) {
  const Options defaults;
  for (const OptionInfo& option : option_table())
    if (!decides_what_is_compiled(option)) set_option(options, option.name, get_option(defaults, option.name));
  return to_string(options);
}

namespace {

// What the user registered of the ops that the graph names, or of all, if passes of the user's may bring others in.
std::string registered_texts_of(const Request& request) {
  std::set<std::string_view> texts;
  if (!request.text_passes.empty())
    for (const std::string_view text : registered_texts()) texts.insert(text);
  for (const graph::Node& node : request.graph.nodes) {
    if (const auto* elementwise = node.as<graph::Elementwise>()) texts.insert(registered_text(elementwise->op));
    if (const auto* reduce = node.as<graph::Reduce>()) texts.insert(registered_text(reduce->reduction));
  }
  texts.erase("");
  return fmt::format("{}", fmt::join(texts, "\n"));
}

}  // namespace

std::string plan_key(const Request& request) {
  std::string key = fmt::format("plan\noptions {}\n", options_key(request.options));
  for (Device device : request.targets.devices()) key += fmt::format("target {} {}\n", to_string(device), to_string(request.targets.of(device)));
  for (const std::shared_ptr<const TextPass>& pass : request.text_passes) key += fmt::format("pass {} {} {}\n", pass->name, pass->stage, pass->version);
  return key + fmt::format("late_inputs [{}]\n", fmt::join(request.late_inputs, ", ")) + registered_texts_of(request) + graph::print(request.graph);
}

std::optional<StoredPlan> read_plan(runtime::DiskCache& cache, const std::string& key, runtime::EntryLock& lock, const InterruptCheck& interrupted) {
  runtime::DiskCache::Claim claim = cache.claim(key, runtime::DiskCache::kPatience, interrupted);
  lock = std::move(claim.lock);
  if (!claim.bytes) return std::nullopt;
  try {
    std::string_view texts(reinterpret_cast<const char*>(claim.bytes->data()), claim.bytes->size());
    if (take_text(texts) != key) return std::nullopt;
    return read_entry(texts);
  } catch (const Json::exception&) {
  } catch (const Error&) {
  }
  return std::nullopt;
}

void write_plan(runtime::DiskCache& cache, const std::string& key, const plan::Plan& plan, const std::optional<passes::ConstGraph>& const_graph) {
  Json details{{"missed_fusions", to_json(plan.missed_fusions)}};
  if (const_graph) details["const_inputs"] = const_graph->inputs;
  std::string details_text, entry;
  Json::to_cbor(details, details_text);
  append_text(entry, key);
  append_text(entry, plan::print(plan));
  append_text(entry, details_text);
  append_text(entry, const_graph ? graph::print(const_graph->graph) : std::string());
  cache.put(key, entry);
}

}  // namespace cxxinductor::driver

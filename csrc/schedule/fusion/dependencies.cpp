#include "schedule/fusion/dependencies.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "ir/callees.h"
#include "ir/device_types.h"
#include "ir/loops/stmt_properties.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::BufferId;

constexpr int64_t label_gap = int64_t{1} << 24;
constexpr size_t path_budget = 4096;  // edges looked at before two steps count as too far apart

void sort_unique(std::vector<BufferId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// What defines a symbol or asserts something about one raises where that is out of range.
bool may_raise(const loops::ExternCall& call) { return cxxinductor::may_raise(call.callee) || loops::checks_symbols(call); }

void extern_accesses(const loops::ExternCall& call, RegionSummary& summary) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (const auto* view = std::get_if<loops::View>(&call.operands[i])) summary.reads.push_back(view->buffer);
  for (uint32_t i : call.mutated_operands)
    if (const auto* view = std::get_if<loops::View>(&call.operands[i])) summary.writes.push_back(view->buffer);
  summary.writes.insert(summary.writes.end(), call.results.begin(), call.results.end());
  sort_unique(summary.reads);
  sort_unique(summary.writes);
  summary.may_raise = may_raise(call);
}

}  // namespace

RegionSummary summarize(const loops::Region& region) {
  RegionSummary summary;
  for (const loops::Stmt& stmt : region.body) {
    if (const auto* load = stmt.as<loops::Load>()) summary.reads.push_back(load->buffer);
    if (const auto* store = stmt.as<loops::Store>()) {
      summary.writes.push_back(store->buffer);
      if (store->update) summary.reads.push_back(store->buffer);
    }
    if (const auto state = row_state(stmt)) summary.reduced |= state->over;
    if (stmt.as<loops::Check>()) ++summary.checks;
    if (const auto* apply = stmt.as<loops::Apply>()) {
      ++summary.applies;
      if (info(apply->op).traits.transcendental) ++summary.transcendental;
    }
  }
  summary.all = loops::all_vars(region);
  sort_unique(summary.reads);
  sort_unique(summary.writes);
  summary.may_raise = summary.checks > 0 && info(region.device.type).raises_at_once;
  return summary;
}

bool may_raise(const loops::Step& step) {
  if (const auto* call = std::get_if<loops::ExternCall>(&step)) return may_raise(*call);
  const auto& region = std::get<loops::Region>(step);
  return info(region.device.type).raises_at_once &&
         std::any_of(region.body.begin(), region.body.end(), [](const loops::Stmt& stmt) { return stmt.as<loops::Check>(); });
}

bool writes_input(const loops::Program& program, const loops::Step& step) {
  const auto is_input = [&](BufferId id) { return program.buffers[id].role == loops::Buffer::Role::Input; };
  if (const auto* region = std::get_if<loops::Region>(&step)) {
    const std::vector<loops::Access> accesses = loops::accesses(*region);
    return std::any_of(accesses.begin(), accesses.end(), [&](const loops::Access& access) { return access.store && is_input(access.buffer); });
  }
  const auto& call = std::get<loops::ExternCall>(step);
  return std::any_of(call.mutated_operands.begin(), call.mutated_operands.end(), [&](uint32_t i) {
    const auto* view = std::get_if<loops::View>(&call.operands[i]);
    return view && is_input(view->buffer);
  });
}

bool intersect(const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId id) { return std::binary_search(b.begin(), b.end(), id); });
}

Dependencies::Dependencies(loops::Program program) : program_(std::move(program)) {
  readers_.resize(program_.buffers.size());
  writers_.resize(program_.buffers.size());
  live_out_.resize(program_.buffers.size(), false);
  for (size_t b = 0; b < program_.buffers.size(); ++b) live_out_[BufferId(b)] = program_.buffers[BufferId(b)].role != loops::Buffer::Role::Temporary;
  for (const loops::ProgramOutput& output : program_.outputs) {
    if (output.kind == loops::ProgramOutput::Kind::Tensor) live_out_[output.buffer] = true;
    if (output.kind == loops::ProgramOutput::Kind::View) live_out_[output.view.buffer] = true;
  }
  dies_.resize(program_.buffers.size(), false);
  for (size_t b = 0; b < dies_.size(); ++b) dies_[BufferId(b)] = live_out_[BufferId(b)] == 0;
  for (const loops::ProgramInput& input : program_.inputs)
    if (input.donated) dies_[input.buffer] = true;
  find_memories();
  definers_ = loops::find_definers(program_);
  for (loops::Step& step : program_.steps) {
    Node added;
    if (const auto* region = std::get_if<loops::Region>(&step))
      added.summary = summarize(*region);
    else
      extern_accesses(std::get<loops::ExternCall>(step), added.summary);
    added.step = std::move(step);
    StepId id = steps_.push_back(std::move(added));
    node(id).parent = id;
    node(id).place = id.index();
    node(id).label = static_cast<int64_t>(id.index() + 1) * label_gap;
    node(id).previous = tail_;
    if (tail_.valid())
      node(tail_).next = id;
    else
      head_ = id;
    tail_ = id;
    note_accesses(id);
  }
  program_.steps.clear();
  build_edges();
}

loops::BufferId Dependencies::add_buffer(loops::Buffer buffer) {
  BufferId id = program_.buffers.push_back(std::move(buffer));
  readers_.resize(program_.buffers.size());
  writers_.resize(program_.buffers.size());
  live_out_.resize(program_.buffers.size(), false);
  dies_.resize(program_.buffers.size(), true);  // what is added is a temporary
  memory_of_.push_back(static_cast<uint32_t>(memory_writers_.size()));
  memory_writers_.emplace_back();
  input_memory_.push_back(0);
  return id;
}

void Dependencies::note_accesses(StepId id) {
  for (BufferId b : node(id).summary.reads) readers_[b].push_back(id);
  for (BufferId b : node(id).summary.writes) {
    writers_[b].push_back(id);
    memory_writers_[memory_of_[b]].push_back(id);
  }
}

void Dependencies::find_memories() {
  std::vector<uint32_t> alias(program_.buffers.size());
  for (uint32_t b = 0; b < alias.size(); ++b) alias[b] = b;
  auto root = [&](BufferId b) {
    uint32_t i = b.index();
    while (alias[i] != i) i = alias[i] = alias[alias[i]];
    return i;
  };
  for (const loops::Step& step : program_.steps)
    if (const auto* call = std::get_if<loops::ExternCall>(&step))
      for (size_t r = 0; r < call->results.size() && r < call->alias_of.size(); ++r)
        if (int from = call->alias_of[r]; from >= 0)
          if (const auto* view = std::get_if<loops::View>(&call->operands[static_cast<size_t>(from)])) alias[root(call->results[r])] = root(view->buffer);
  for (size_t b = 0; b < alias.size(); ++b) memory_of_.push_back(root(BufferId(b)));
  memory_writers_.resize(alias.size());
  input_memory_.resize(alias.size(), 0);
  for (const loops::ProgramInput& input : program_.inputs)
    if (input.kind == loops::ProgramInput::Kind::Tensor) input_memory_[memory_of_[input.buffer]] = 1;
}

void Dependencies::build_edges() {
  const size_t memories = memory_writers_.size();
  std::vector<StepId> last_writer(memories);
  std::vector<std::vector<StepId>> readers_since(memories);
  for (size_t s = 0; s < steps_.size(); ++s) {
    StepId id(s);
    for (BufferId b : node(id).summary.reads) {
      if (StepId writer = last_writer[memory_of_[b]]; writer.valid()) add_edge(writer, id);
      readers_since[memory_of_[b]].push_back(id);
    }
    for (BufferId b : node(id).summary.writes) {
      uint32_t memory = memory_of_[b];
      if (last_writer[memory].valid()) add_edge(last_writer[memory], id);
      for (StepId reader : readers_since[memory]) add_edge(reader, id);
      readers_since[memory].clear();
      last_writer[memory] = id;
    }
    follow_definers(id);
    const auto* call = std::get_if<loops::ExternCall>(&node(id).step);
    if (!call) continue;
    if (call->ordered && call->results.empty())
      for (const std::string& symbol : loops::used_symbols(program_, node(id).step, definers_)) assertions_[symbol].push_back(id);
    if (call->ordered) follow_ordered(id, *call);
  }
  order_writes_and_raises();
}

// Collectives keep their order, and so do other ordered calls. What nothing is known of may be both. A wait follows what it
// waits for, and nothing else.
void Dependencies::follow_ordered(StepId id, const loops::ExternCall& call) {
  if (waits_for_collective(call.callee)) return;
  const bool collective = starts_collective(call.callee), unknown = !collective && is_opaque_callee(call.callee);
  const auto follow = [&](StepId& last) {
    if (last.valid()) add_edge(last, id);
    last = id;
  };
  if (collective || unknown) follow(last_collective_);
  if (!collective) follow(last_ordered_);
}

// Runs of steps that may raise and runs of steps that write inputs take turns. Each step waits for those of the run before
// its own, hence for all earlier steps of the other sort. A step that is both belongs to both.
void Dependencies::order_writes_and_raises() {
  std::vector<StepId> raising, writing;  // of the last run of each sort
  bool in_writes = false;
  const auto follow = [&](const std::vector<StepId>& earlier, StepId id) {
    for (StepId other : earlier) add_edge(other, id);
  };
  for (size_t s = 0; s < steps_.size(); ++s) {
    const StepId id(s);
    if (node(id).summary.may_raise) {
      if (std::exchange(in_writes, false)) raising.clear();
      follow(writing, id);
      raising.push_back(id);
    }
    if (writes_input(id)) {
      if (!std::exchange(in_writes, true)) writing.clear();
      follow(raising, id);
      writing.push_back(id);
    }
  }
}

bool Dependencies::writes_input(StepId id) const {
  const auto& writes = node(id).summary.writes;
  return std::any_of(writes.begin(), writes.end(), [&](BufferId b) { return input_memory_[memory_of_[b]] != 0; });
}

bool Dependencies::order_of_raise_and_write(StepId a, StepId b) const {
  return (node(a).summary.may_raise && writes_input(b)) || (node(b).summary.may_raise && writes_input(a));
}

void Dependencies::add_edge(StepId a, StepId b) {
  if (a == b) return;
  node(a).after.push_back(b);
  node(b).before.push_back(a);
}

void Dependencies::follow_definers(StepId id) {
  for (const std::string& symbol : loops::used_symbols(program_, node(id).step, definers_)) {
    add_edge(StepId(definers_.find(symbol)->second), id);
    for (StepId assertion : assertions_[symbol])
      if (before(assertion, id)) add_edge(assertion, id);
  }
}

StepId Dependencies::find(StepId id) const {
  while (node(id).parent != id) id = node(id).parent;
  return id;
}

const loops::Region* Dependencies::region(StepId id) const { return std::get_if<loops::Region>(&node(id).step); }

const loops::ExternCall* Dependencies::call(StepId id) const { return std::get_if<loops::ExternCall>(&node(id).step); }

std::vector<StepId> Dependencies::order() const {
  std::vector<StepId> ids;
  for (StepId id = head_; id.valid(); id = node(id).next) ids.push_back(id);
  return ids;
}

bool Dependencies::reads(StepId id, BufferId buffer) const {
  return alive(id) && std::binary_search(node(id).summary.reads.begin(), node(id).summary.reads.end(), buffer);
}

std::optional<StepId> Dependencies::producer(BufferId buffer) const {
  if (program_.buffers[buffer].role == loops::Buffer::Role::Input) return std::nullopt;
  const std::vector<StepId> found = writers(buffer);
  if (found.size() != 1 || !region(found.front())) return std::nullopt;
  return found.front();
}

std::vector<StepId> Dependencies::writers(BufferId buffer) const {
  std::vector<StepId> found;
  for (StepId id : writers_[buffer]) {
    id = find(id);
    const auto& writes = node(id).summary.writes;
    if (!node(id).removed && std::binary_search(writes.begin(), writes.end(), buffer) && std::find(found.begin(), found.end(), id) == found.end())
      found.push_back(id);
  }
  return found;
}

std::vector<StepId> Dependencies::readers(BufferId buffer) const {
  std::vector<StepId> found;
  std::unordered_set<StepId> seen;
  for (StepId id : readers_[buffer])
    if (id = find(id); reads(id, buffer) && seen.insert(id).second) found.push_back(id);
  return found;
}

bool Dependencies::has_other_users(BufferId buffer, StepId a, StepId b) const {
  if (live_out_[buffer]) return true;
  for (StepId id : readers_[buffer])
    if (id = find(id); id != a && id != b && reads(id, buffer)) return true;
  return false;
}

bool Dependencies::overwritten_between(BufferId buffer, StepId a, StepId b) const {
  for (StepId id : memory_writers_[memory_of_[buffer]])
    if (id = find(id); alive(id) && id != b && !before(id, a) && before(id, b)) return true;
  return false;
}

Dependencies::Path Dependencies::path_between(StepId first, StepId second, std::vector<StepId>* between) const {
  between->clear();
  std::unordered_set<StepId> seen;
  std::vector<StepId> work;
  size_t budget = path_budget;
  bool found = false;
  auto visit = [&](StepId from, bool direct) {
    for (StepId id : node(from).before) {
      if (budget-- == 0) return false;
      id = find(id);
      if (id == first && !direct) found = true;
      if (id == second || id == first || node(id).removed || !before(first, id) || !seen.insert(id).second) continue;
      work.push_back(id);
    }
    return true;
  };
  if (!visit(second, true)) return Path::TooFar;
  for (size_t next = 0; next < work.size(); ++next) {
    if (!visit(work[next], false)) return Path::TooFar;
    if (!found) continue;
    *between = {work[next]};
    return Path::Exists;
  }
  *between = std::move(work);
  std::sort(between->begin(), between->end(), [&](StepId a, StepId b) { return before(a, b); });
  return Path::None;
}

void Dependencies::unlink(StepId id) {
  Node& n = node(id);
  (n.previous.valid() ? node(n.previous).next : head_) = n.next;
  (n.next.valid() ? node(n.next).previous : tail_) = n.previous;
}

void Dependencies::relabel() {
  int64_t label = 0;
  for (StepId id = head_; id.valid(); id = node(id).next) node(id).label = label += label_gap;
}

void Dependencies::link_before(StepId id, StepId next) {
  StepId previous = node(next).previous;
  auto low = [&] { return previous.valid() ? node(previous).label : 0; };
  if (node(next).label - low() < 2) relabel();
  Node& n = node(id);
  n.label = low() + (node(next).label - low()) / 2;
  n.previous = previous;
  n.next = next;
  (previous.valid() ? node(previous).next : head_) = id;
  node(next).previous = id;
}

StepId Dependencies::merge(StepId first, StepId second, const std::vector<StepId>& between, loops::Region fused) {
  for (StepId id : between) {
    unlink(id);
    link_before(id, first);
  }
  // The step with more edges survives, so that edges move few times in all.
  auto edges = [&](StepId id) { return node(id).before.size() + node(id).after.size(); };
  StepId survivor = edges(first) >= edges(second) ? first : second;
  StepId gone = survivor == first ? second : first;
  if (survivor == second) {
    unlink(second);
    link_before(second, first);
  }
  unlink(gone);
  node(gone).parent = survivor;
  Node& kept = node(survivor);
  kept.place = std::min(node(first).place, node(second).place);
  kept.before.insert(kept.before.end(), node(gone).before.begin(), node(gone).before.end());
  kept.after.insert(kept.after.end(), node(gone).after.begin(), node(gone).after.end());
  node(gone) = Node{.step = {}, .summary = {}, .parent = survivor, .removed = true};
  kept.summary = summarize(fused);
  kept.step = std::move(fused);
  ++kept.version;
  return survivor;
}

void Dependencies::replace_after_inlining(StepId reader, StepId producer, loops::Region region) {
  RegionSummary now = summarize(region);
  for (BufferId b : now.reads) {
    if (reads(reader, b)) continue;
    readers_[b].push_back(reader);
    for (StepId writer : memory_writers_[memory_of_[b]])
      if (writer = find(writer); alive(writer) && writer != reader && writer != producer)
        before(writer, reader) ? add_edge(writer, reader) : add_edge(reader, writer);
  }
  node(reader).summary = std::move(now);
  node(reader).step = std::move(region);
  ++node(reader).version;
  follow_definers(reader);
}

void Dependencies::replace(StepId id, loops::Region region) {
  node(id).summary = summarize(region);
  node(id).step = std::move(region);
  ++node(id).version;
}

void Dependencies::insert_before(StepId next, loops::Region region) {
  Node added;
  added.summary = summarize(region);
  added.step = std::move(region);
  added.before = node(next).before;
  StepId id = steps_.push_back(std::move(added));
  node(id).parent = id;
  node(id).place = node(next).place;
  link_before(id, next);
  for (StepId earlier : node(id).before) node(find(earlier)).after.push_back(id);
  // What may overwrite next's inputs comes after next, hence after this step.
  add_edge(id, next);
  note_accesses(id);
  for (BufferId b : node(id).summary.writes) readers_[b].push_back(next);
}

void Dependencies::remove(StepId id) {
  unlink(id);
  node(id).removed = true;
  node(id).summary = {};
}

loops::Program Dependencies::snapshot() const {
  loops::Program now = program_;
  for (StepId id : order()) now.steps.push_back(node(id).step);
  return now;
}

loops::Program Dependencies::finish() && {
  for (StepId id : order()) program_.steps.push_back(std::move(node(id).step));
  return std::move(program_);
}

}  // namespace cxxinductor::schedule

#include "schedule/plan/in_place.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/live_ranges.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::Stmt;
using loops::StmtId;
using loops::VarSet;
using plan::Kernel;

// A position in the order in which one point is executed.
struct Place {
  size_t segment = 0, position = 0;
  auto operator<=>(const Place&) const = default;
};

std::optional<Place> last_place(const Kernel& kernel, StmtId id) {
  for (size_t s = kernel.segments.size(); s-- > 0;) {
    const std::vector<StmtId>& stmts = kernel.segments[s].stmts;
    const auto found = std::find(stmts.begin(), stmts.end(), id);
    if (found != stmts.end()) return Place{s, static_cast<size_t>(found - stmts.begin())};
  }
  return std::nullopt;
}

VarSet all_variables(const plan::Mapping& mapping) {
  VarSet all;
  for (loops::VarId v : mapping.space) all |= VarSet::of(v);
  for (loops::VarId v : mapping.row) all |= VarSet::of(v);
  if (const loops::VarId serial = serial_variable(mapping); serial.valid()) all |= VarSet::of(serial);
  return all;
}

// The one store to a parameter; nothing if there are several, or if it does not write all elements.
std::optional<StmtId> only_store(const Kernel& kernel, size_t param) {
  std::optional<StmtId> found;
  for (size_t i = 0; i < kernel.region.body.size(); ++i) {
    const auto* store = kernel.region.body[StmtId(i)].as<loops::Store>();
    if (!store || store->buffer.index() != param) continue;
    if (found || store->mask.valid() || store->update) return std::nullopt;
    found = StmtId(i);
  }
  return found;
}

}  // namespace

bool may_share(const Kernel& kernel, size_t read, size_t written) {
  const plan::Param& from = kernel.params[read];
  const plan::Param& to = kernel.params[written];
  if (traits(kernel.mapping).exchanges || from.dtype != to.dtype || from.written || to.read) return false;
  const std::optional<StmtId> store = only_store(kernel, written);
  // A store that varies over less than the whole space is executed by one of several threads that load for it.
  if (!store || kernel.region.body[*store].vars != all_variables(kernel.mapping)) return false;
  const sym::Expr offset = kernel.offsets[*store];
  const std::optional<Place> end = last_place(kernel, *store);
  if (!end || loops::depends_on_data(offset)) return false;
  for (size_t i = 0; i < kernel.region.body.size(); ++i) {
    const StmtId id(i);
    const Stmt& stmt = kernel.region.body[id];
    const auto* load = stmt.as<loops::Load>();
    if (!load || load->buffer.index() != read) continue;
    const std::optional<Place> place = last_place(kernel, id);
    if (id > *store) return false;  // the order of the region counts, whatever the row loops
    if (stmt.vars != kernel.region.body[*store].vars || kernel.offsets[id] != offset || !place || *place > *end) return false;
  }
  return true;
}

namespace {

void merge_in_kernel(Kernel& kernel, size_t read, size_t written) {
  kernel.params[read].written = true;
  kernel.params[read].aligned |= kernel.params[written].aligned;
  kernel.params.erase(kernel.params.begin() + static_cast<std::ptrdiff_t>(written));
  const auto renumber = [&](loops::BufferId& id) {
    if (id.index() == written) id = loops::BufferId(read);
    if (id.index() > written) id = loops::BufferId(id.index() - 1);
  };
  for (Stmt& stmt : kernel.region.body) {
    if (auto* load = stmt.as<loops::Load>()) renumber(load->buffer);
    if (auto* store = stmt.as<loops::Store>()) renumber(store->buffer);
  }
}

// One parameter for both, at the position of `read`; its argument is that of `written`.
void merge_parameters(LaunchInPlace& in_place, size_t read, size_t written) {
  std::vector<plan::BufferId>& args = in_place.launch.args;
  CXXI_CHECK(read != written && read < args.size() && written < args.size(), "parameters {} and {} of {}", read, written, args.size());
  args[read] = args[written];
  args.erase(args.begin() + static_cast<std::ptrdiff_t>(written));
  merge_in_kernel(in_place.kernel, read, written);
  for (Kernel& special : in_place.specializations) merge_in_kernel(special, read, written);
}

class Sharing {
 public:
  Sharing(const plan::Plan& plan, const IdVector<plan::BufferId, BufferLiveness>& liveness) : plan_(plan), liveness_(liveness), donated_(plan.buffers.size()) {
    for (const plan::Input& input : plan.inputs)
      if (input.donated) donated_[input.buffer] = 1;
    for (const plan::Step& step : plan.steps)
      if (computes(step)) launches_.push_back(std::get_if<plan::Launch>(&step));
  }

  SharedMemory run() {
    for (size_t time = 0; time < launches_.size(); ++time) share(time, false);
    std::vector<BufferReuse> donations;
    for (size_t time = 0; time < launches_.size(); ++time) find(time, true, donations);
    std::vector<char> needed(launches_.size(), 0);
    for (const auto& [device, held] : bytes_by_time()) {
      // The peak if all donated inputs are reused: no other reuse is needed below it.
      std::vector<int64_t> left = held;
      for (const BufferReuse& donation : donations)
        if (plan_.buffers[donation.to].device == device) left[donation.time] -= bytes(donation.to);
      const int64_t peak = left.empty() ? 0 : *std::max_element(left.begin(), left.end());
      for (size_t time = 0; time < held.size(); ++time)
        if (held[time] > peak) needed[time] = 1;
    }
    for (size_t time = 0; time < launches_.size(); ++time)
      if (needed[time] != 0) share(time, true);
    return std::move(found_);
  }

 private:
  int64_t bytes(plan::BufferId id) const {
    const plan::Buffer& buffer = plan_.buffers[id];
    return bytes_hint(buffer.dtype, buffer.sizes, buffer.strides, plan_.assumptions);
  }
  bool is_input(plan::BufferId id) const { return plan_.buffers[id].kind == plan::Buffer::Kind::Input; }

  // Live bytes at each time, of each device; a result and the buffer that it replaces count once.
  std::map<Device, std::vector<int64_t>> bytes_by_time() const {
    std::map<Device, std::vector<int64_t>> by_device;
    for (size_t b = 0; b < liveness_.size(); ++b) {
      const plan::BufferId id(b);
      const BufferLiveness& life = liveness_[id];
      const bool input = is_input(id);
      if (life.last < 0 || life.is_alias || (input && !donated_[id])) continue;
      std::vector<int64_t>& held = by_device[plan_.buffers[id].device];
      held.resize(launches_.size(), 0);
      const size_t first = input ? 0 : static_cast<size_t>(life.first);
      const size_t end = life.is_output || life.aliased_output ? held.size() : static_cast<size_t>(life.last) + 1;
      for (size_t t = first; t < end; ++t) held[t] += bytes(id);
    }
    for (const BufferReuse& reuse : found_.reuses) by_device[plan_.buffers[reuse.to].device][reuse.time] -= bytes(reuse.to);
    return by_device;
  }

  bool is_new(plan::BufferId id, size_t time) const {
    const BufferLiveness& life = liveness_[id];
    return !is_input(id) && !life.extern_owned && !life.is_alias && life.first == static_cast<int>(time);
  }
  bool dies(plan::BufferId id, size_t time, bool donated) const {
    const BufferLiveness& life = liveness_[id];
    const bool input = is_input(id);
    // Of what others brought it is seen at run time whether somebody holds it.
    if (life.escapes && !input && !life.extern_owned) return false;
    return life.last == static_cast<int>(time) && life.first < life.last + (input ? 1 : 0) && !life.is_output && !life.aliased_output && !life.is_alias &&
           !life.has_alias && input == donated && (!input || donated_[id]);
  }
  bool alike(plan::BufferId a, plan::BufferId b) const {
    const plan::Buffer &x = plan_.buffers[a], &y = plan_.buffers[b];
    return x.dtype == y.dtype && x.device == y.device && x.bytes == y.bytes;
  }

  bool is_read_in_slices(const plan::Launch& launch, size_t read) const {
    for (size_t i = 0; i < launch.args.size(); ++i) {
      plan::BufferId root = launch.args[i];
      for_each_base(plan_, launch.args[i], [&](plan::BufferId base) { root = base; });
      if (i != read && root == launch.args[read]) return true;
    }
    return false;
  }

  // Whether all kernels of the launch, as it is by now, may have one parameter for both.
  bool all_may_share(const LaunchInPlace* in_place, const plan::Launch& launch, size_t read, size_t written) const {
    if (in_place)
      return may_share(in_place->kernel, read, written) &&
             std::ranges::all_of(in_place->specializations, [&](const Kernel& special) { return may_share(special, read, written); });
    return may_share(plan_.kernels[launch.kernel], read, written) && std::ranges::all_of(launch.specializations, [&](const plan::Specialization& special) {
             return may_share(plan_.kernels[special.kernel], read, written);
           });
  }

  const LaunchInPlace* in_place(size_t time) const {
    const auto found = found_.launches.find(time);
    return found == found_.launches.end() ? nullptr : &found->second;
  }

  // At most one result per dying buffer, and one dying buffer per result.
  void find(size_t time, bool donated, std::vector<BufferReuse>& found) const {
    if (!launches_[time]) return;
    const LaunchInPlace* changed = in_place(time);
    const plan::Launch& launch = changed ? changed->launch : *launches_[time];
    const std::vector<plan::Param>& params = changed ? changed->kernel.params : plan_.kernels[launch.kernel].params;
    std::set<size_t> taken;
    for (size_t w = 0; w < launch.args.size(); ++w) {
      if (!params[w].written || params[w].read || !is_new(launch.args[w], time)) continue;
      for (size_t r = 0; r < launch.args.size(); ++r) {
        if (taken.contains(r) || !params[r].read || !dies(launch.args[r], time, donated) || !alike(launch.args[r], launch.args[w]) ||
            is_read_in_slices(launch, r) || !all_may_share(changed, launch, r, w))
          continue;
        taken.insert(r);
        found.push_back({time, launch.args[r], launch.args[w]});
        break;
      }
    }
  }

  void share(size_t time, bool donated) {
    std::vector<BufferReuse> found;
    find(time, donated, found);
    if (found.empty()) return;
    LaunchInPlace& changed = found_.launches[time];
    if (changed.launch.args.empty()) {
      changed.launch = *launches_[time];
      changed.kernel = plan_.kernels[changed.launch.kernel];
      for (const plan::Specialization& special : changed.launch.specializations) changed.specializations.push_back(plan_.kernels[special.kernel]);
    }
    const auto position = [&](plan::BufferId id) { return static_cast<size_t>(std::ranges::find(changed.launch.args, id) - changed.launch.args.begin()); };
    for (const BufferReuse& reuse : found) {
      merge_parameters(changed, position(reuse.from), position(reuse.to));
      found_.reuses.push_back(reuse);
    }
  }

  const plan::Plan& plan_;
  const IdVector<plan::BufferId, BufferLiveness>& liveness_;
  IdVector<plan::BufferId, char> donated_;
  std::vector<const plan::Launch*> launches_;  // by time; null: another step
  SharedMemory found_;
};

}  // namespace

SharedMemory share_memory(const plan::Plan& plan, const IdVector<plan::BufferId, BufferLiveness>& liveness) { return Sharing(plan, liveness).run(); }

}  // namespace cxxinductor::schedule

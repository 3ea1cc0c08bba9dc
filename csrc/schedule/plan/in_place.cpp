#include "schedule/plan/in_place.h"

#include <algorithm>
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
    if (stmt.vars != kernel.region.body[*store].vars || kernel.offsets[id] != offset || !place || *place > *end)
      return false;
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

}  // namespace

void merge_parameters(MappedKernel& mapped, size_t read, size_t written) {
  CXXI_CHECK(read != written && read < mapped.args.size() && written < mapped.args.size(), "parameters {} and {} of {}",
             read, written, mapped.args.size());
  mapped.args[read] = mapped.args[written];
  mapped.args.erase(mapped.args.begin() + static_cast<std::ptrdiff_t>(written));
  merge_in_kernel(mapped.kernel, read, written);
  for (SpecialKernel& special : mapped.specializations) merge_in_kernel(special.kernel, read, written);
}

namespace {

using loops::BufferId;

class Sharing {
 public:
  Sharing(const loops::Program& program, const BufferSlices& slices, const IdVector<BufferId, BufferLiveness>& liveness,
          std::vector<std::optional<MappedKernel>>& mapped)
      : program_(program), slices_(slices), liveness_(liveness), mapped_(mapped), donated_(program.buffers.size()) {
    for (const loops::ProgramInput& input : program.inputs)
      if (input.donated) donated_[input.buffer] = 1;
  }

  std::vector<BufferReuse> run() {
    for (size_t step = 0; step < mapped_.size(); ++step)
      if (mapped_[step]) share(step, false);
    const std::vector<int64_t> held = bytes_by_step();
    std::vector<BufferReuse> donations;
    for (size_t step = 0; step < mapped_.size(); ++step)
      if (mapped_[step]) find(step, true, donations);
    // The peak if all donated inputs are reused: no other reuse is needed below it.
    std::vector<int64_t> left = held;
    for (const BufferReuse& donation : donations) left[donation.step] -= bytes(donation.to);
    const int64_t peak = left.empty() ? 0 : *std::max_element(left.begin(), left.end());
    for (size_t step = 0; step < mapped_.size(); ++step)
      if (mapped_[step] && held[step] > peak) share(step, true);
    return std::move(found_);
  }

 private:
  int64_t bytes(BufferId id) const {
    const loops::Buffer& buffer = program_.buffers[id];
    return bytes_hint(buffer.dtype, buffer.sizes, buffer.strides, program_.assumptions);
  }

  // Live bytes at each step; a result and the buffer that it replaces count once.
  std::vector<int64_t> bytes_by_step() const {
    std::vector<int64_t> held(mapped_.size(), 0);
    for (size_t b = 0; b < liveness_.size(); ++b) {
      const BufferId id(b);
      const BufferLiveness& life = liveness_[id];
      const bool input = program_.buffers[id].role == loops::Buffer::Role::Input;
      if (life.last < 0 || life.is_alias || (input && !donated_[id])) continue;
      const size_t first = input ? 0 : static_cast<size_t>(life.first);
      const size_t end = life.is_output || life.aliased_output ? held.size() : static_cast<size_t>(life.last) + 1;
      for (size_t t = first; t < end; ++t) held[t] += bytes(id);
    }
    for (const BufferReuse& reuse : found_) held[reuse.step] -= bytes(reuse.to);
    return held;
  }

  bool is_new(BufferId id, size_t step) const {
    const BufferLiveness& life = liveness_[id];
    return program_.buffers[id].role != loops::Buffer::Role::Input && !life.extern_owned && !life.is_alias &&
           life.first == static_cast<int>(step);
  }
  bool dies(BufferId id, size_t step, bool donated) const {
    const BufferLiveness& life = liveness_[id];
    const bool input = program_.buffers[id].role == loops::Buffer::Role::Input;
    // Of what others brought it is seen at run time whether somebody holds it.
    if (life.escapes && !input && !life.extern_owned) return false;
    return life.last == static_cast<int>(step) && life.first < life.last + (input ? 1 : 0) && !life.is_output &&
           !life.aliased_output && !life.is_alias && !life.has_alias && input == donated && (!input || donated_[id]);
  }
  bool alike(BufferId a, BufferId b) const {
    const loops::Buffer &x = program_.buffers[a], &y = program_.buffers[b];
    return x.dtype == y.dtype && x.device == y.device &&
           simplify(storage_extent(x.sizes, x.strides, program_.assumptions), program_.assumptions) ==
               simplify(storage_extent(y.sizes, y.strides, program_.assumptions), program_.assumptions);
  }

  bool is_read_in_slices(const MappedKernel& mapped, size_t read) const {
    for (size_t i = 0; i < mapped.args.size(); ++i)
      if (i != read && root_of(slices_, mapped.args[i]) == mapped.args[read]) return true;
    return false;
  }

  // At most one result per dying buffer, and one dying buffer per result.
  void find(size_t step, bool donated, std::vector<BufferReuse>& found) const {
    const MappedKernel& mapped = *mapped_[step];
    std::set<size_t> taken;
    for (size_t w = 0; w < mapped.args.size(); ++w) {
      if (!mapped.kernel.params[w].written || mapped.kernel.params[w].read || !is_new(mapped.args[w], step)) continue;
      for (size_t r = 0; r < mapped.args.size(); ++r) {
        if (taken.contains(r) || !mapped.kernel.params[r].read || !dies(mapped.args[r], step, donated) ||
            !alike(mapped.args[r], mapped.args[w]) || is_read_in_slices(mapped, r) || !may_share(mapped.kernel, r, w) ||
            !std::all_of(mapped.specializations.begin(), mapped.specializations.end(),
                         [&](const SpecialKernel& special) { return may_share(special.kernel, r, w); }))
          continue;
        taken.insert(r);
        found.push_back({step, mapped.args[r], mapped.args[w]});
        break;
      }
    }
  }

  void share(size_t step, bool donated) {
    std::vector<BufferReuse> found;
    find(step, donated, found);
    MappedKernel& mapped = *mapped_[step];
    const auto position = [&](BufferId id) {
      return static_cast<size_t>(std::find(mapped.args.begin(), mapped.args.end(), id) - mapped.args.begin());
    };
    for (const BufferReuse& reuse : found) {
      merge_parameters(mapped, position(reuse.from), position(reuse.to));
      found_.push_back(reuse);
    }
  }

  const loops::Program& program_;
  const BufferSlices& slices_;
  const IdVector<BufferId, BufferLiveness>& liveness_;
  std::vector<std::optional<MappedKernel>>& mapped_;
  IdVector<BufferId, char> donated_;
  std::vector<BufferReuse> found_;
};

}  // namespace

std::vector<BufferReuse> share_memory(const loops::Program& program, const BufferSlices& slices,
                                   const IdVector<loops::BufferId, BufferLiveness>& liveness,
                                   std::vector<std::optional<MappedKernel>>& mapped) {
  return Sharing(program, slices, liveness, mapped).run();
}

}  // namespace cxxinductor::schedule

#include "kernels/body/slots.h"

#include <algorithm>

#include "ir/loops/stmt_properties.h"
#include "ir/plan/early_loads.h"
#include "ir/plan/serial_rows.h"

namespace cxxinductor::kernels {
namespace {

using loops::VarSet;
using plan::Kernel;
using plan::MemorySpace;
using plan::Segment;

bool contains(const std::vector<StmtId>& list, StmtId id) { return std::ranges::find(list, id) != list.end(); }

class SlotMaker {
 public:
  explicit SlotMaker(const Kernel& kernel) : kernel_(kernel), mapping_(kernel.mapping) {
    slot_.vector_var = vector_variable(mapping_);
    slot_.width = slot_.vector_var.valid() ? mapping_.vector_width : 1;
    const bool simt = is_simt(mapping_);
    slot_.masked_tail = simt && mapping_.vector_tail && slot_.width > 1 && !is_tiles(mapping_);
    slot_.lanes = simt ? LaneForm::Loop : LaneForm::Vector;
    slot_.checks_return = !simt;
  }

  // group: made around the body, if valid.
  Slot of_segment(size_t index, StmtId group) && {
    const Segment& segment = kernel_.segments.at(index);
    slot_.stmts = segment.stmts;
    if (segment.kind == Segment::Kind::PerRow && !in_column_arrays()) drop_listed_before(index);
    slot_.running = segment.kind == Segment::Kind::Epilogue ? VarSet() : VarSet::of(mapping_.space);
    if (segment.kind != Segment::Kind::PerRow) slot_.running |= VarSet::of(mapping_.row);
    if (const VarId serial = serial_variable(mapping_); serial.valid() && segment.kind != Segment::Kind::Epilogue) slot_.running |= VarSet::of(serial);
    if (segment.kind == Segment::Kind::PerRow) slot_.effects = {threads_of_row() > 1, has_dead_rows(kernel_)};
    if (is_pointwise(mapping_) && slot_.lanes == LaneForm::Vector && slot_.width > 1)
      slot_.uniform = plan::find_uniform_masks(kernel_, slot_.stmts, slot_.vector_var);
    group_ = group;
    if (group_.valid())
      std::erase(slot_.stmts, group_);
    else
      list_made_around();
    list_ahead(segment);
    list_operands();
    list_kept(segment);
    return std::move(slot_);
  }

  Slot of_value(StmtId value, VarId along, int width) && {
    const std::vector<bool> needed = loops::backward_slice(kernel_.region, value);
    for (size_t s = 0; s < needed.size(); ++s)
      if (needed[s]) slot_.stmts.emplace_back(s);
    slot_.vector_var = along;
    slot_.width = width;
    slot_.masked_tail = true;
    slot_.running = VarSet::of(mapping_.space) | VarSet::of(along);
    slot_.out = {{value, Where::Lanes}};
    return std::move(slot_);
  }

 private:
  const loops::Stmt& stmt(StmtId id) const { return kernel_.region.body[id]; }
  bool persistent(StmtId id) const { return kernel_.memory_spaces[id] == MemorySpace::Persistent; }

  // Loops over the vectors of a strip: what a segment leaves to a later one lies in an array of the strip's columns.
  bool in_column_arrays() const { return is_columns(mapping_) && slot_.lanes == LaneForm::Vector; }

  int threads_of_row() const {
    return std::visit(
        []<class Shape>(const Shape& shape) {
          if constexpr (requires { shape.threads_per_row; }) return shape.threads_per_row;
          return 1;
        },
        mapping_.shape);
  }

  // Values that an earlier per-row segment computes have their names for the rest of the row.
  void drop_listed_before(size_t index) {
    for (size_t s = 0; s < index; ++s)
      if (kernel_.segments[s].kind == Segment::Kind::PerRow) std::erase_if(slot_.stmts, [&](StmtId id) { return contains(kernel_.segments[s].stmts, id); });
  }

  // Loads that the kernel makes once, and those of a serial row that are made while the row before is computed.
  void list_made_around() {
    if (slot_.lanes == LaneForm::Vector) return;
    for (const auto& loads : {plan::uniform_loads(kernel_), plan::row_loads_ahead(kernel_)})
      for (StmtId id : loads)
        if (contains(slot_.stmts, id)) slot_.in.push_back({id, Where::Value});
  }

  void list_ahead(const Segment& segment) {
    if (segment.kind != Segment::Kind::RowLoop) return;
    for (const auto& loads : {plan::persistent_loads_of_block(kernel_), plan::persistent_loads_of_row(kernel_)})
      for (StmtId id : loads)
        if (contains(slot_.stmts, id)) slot_.in.push_back({id, Where::Persistent});
    for (StmtId id : loads_ahead(segment)) slot_.ahead.push_back({id, persistent(id) ? Where::Persistent : Where::Ahead});
  }

  // Loads that a thread makes for several groups at once.
  std::vector<StmtId> loads_ahead(const Segment& segment) const {
    const bool is_fixed = plan::groups_of_thread(mapping_) > 0;  // the segment says how many of them are loaded ahead; else the mapping does
    const bool loads = is_fixed ? segment.loads_ahead > 0 : plan::unrolled_groups(mapping_) > 1;
    return loads ? plan::early_loads_of_row_loop(kernel_, segment) : std::vector<StmtId>{};
  }

  void list_operands() {
    std::vector<StmtId> found;
    for (StmtId id : slot_.stmts)
      for (StmtId operand : loops::operands(stmt(id)))
        if (!contains(slot_.stmts, operand)) found.push_back(operand);
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (StmtId id : found) slot_.in.push_back({id, place_of(id)});
  }

  // Of a value of an earlier segment.
  Where place_of(StmtId id) const {
    if (plan::is_across(kernel_, id)) return kernel_.memory_spaces[id] == MemorySpace::Shared ? Where::SharedStates : Where::States;
    if (persistent(id)) return Where::Persistent;
    if (id == group_) return Where::Group;
    if (in_column_arrays()) return loops::is_of_state(stmt(id)) ? Where::States : Where::Columns;
    return is_columns(mapping_) && has_lanes(kernel_, slot_, id) ? Where::Columns : Where::Value;
  }

  void list_kept(const Segment& segment) {
    const bool columns = is_columns(mapping_) && segment.kind == Segment::Kind::PerRow;
    for (StmtId id : slot_.stmts) {
      if (is_effect(stmt(id)) || plan::is_across(kernel_, id)) continue;
      const bool arrayed =
          slot_.lanes == LaneForm::Loop ? has_lanes(kernel_, slot_, id) : !loops::is_of_state(stmt(id)) && kernel_.memory_spaces[id] == MemorySpace::Row;
      if (persistent(id)) slot_.out.push_back({id, Where::Persistent});
      if (columns && arrayed) slot_.out.push_back({id, Where::Columns});
    }
  }

  const Kernel& kernel_;
  const plan::Mapping& mapping_;
  Slot slot_;
  StmtId group_;
};

}  // namespace

Slot segment_slot(const Kernel& kernel, size_t segment) { return SlotMaker(kernel).of_segment(segment, {}); }

Slot segment_slot_of_groups(const Kernel& kernel, size_t segment, StmtId group) { return SlotMaker(kernel).of_segment(segment, group); }

Slot value_slot(const Kernel& kernel, StmtId value, VarId along, int width) { return SlotMaker(kernel).of_value(value, along, width); }

bool has_checks(const Kernel& kernel) {
  return std::ranges::any_of(kernel.region.body, [](const loops::Stmt& s) { return s.as<loops::Check>() != nullptr; });
}

std::vector<StmtId> reductions_of(const Kernel& kernel, const std::vector<StmtId>& stmts) {
  std::vector<StmtId> found;
  std::ranges::copy_if(stmts, std::back_inserter(found), [&](StmtId id) { return row_state(kernel.region.body[id]) && !plan::is_across(kernel, id); });
  return found;
}

std::vector<StmtId> summed_in_blocks(const Kernel& kernel, const std::vector<StmtId>& reduces) {
  std::vector<StmtId> found;
  std::ranges::copy_if(reduces, std::back_inserter(found), [&](StmtId id) { return std::ranges::binary_search(kernel.in_blocks, id); });
  return found;
}

bool has_lanes(const Kernel& kernel, const Slot& slot, StmtId id) {
  if (!slot.vector_var.valid() || !kernel.region.body[id].vars.contains(slot.vector_var)) return false;
  return slot.lanes == LaneForm::Loop ? slot.width > 1 : !slot.uniform.stmts.contains(id);
}

bool reduces_lanes(const Kernel& kernel, const Slot& slot, const loops::Reduce& reduce) {
  return has_lanes(kernel, slot, reduce.operand) || (slot.lanes == LaneForm::Loop && slot.width > 1 && reduce.over.contains(slot.vector_var));
}

bool is_wide(const Kernel& kernel, const Slot& slot, StmtId id) { return has_lanes(kernel, slot, id) && kernel.access[id] == plan::AccessKind::Vector; }

const Place* find_place(const std::vector<Place>& places, StmtId value) {
  const auto found = std::ranges::find(places, value, &Place::value);
  return found == places.end() ? nullptr : &*found;
}

}  // namespace cxxinductor::kernels

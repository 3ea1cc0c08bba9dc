// How a kernel divides its points among threads: a Mapping has a shape, which is one struct per way to do it, with the numbers that this way
// has and no others. A shape states its keyword, whether it is a GPU's or the CPU's, and once, in `fields`, its members: text form, range checks
// and whatever else walks them follow from the list. What follows from the numbers - threads, units, shared memory, checks - it computes itself (shapes/).
//
// Words used here and in plan.h:
//   vector variable  the last of `row` where rows lie along memory (Rows, SerialRows, CpuRows), the last of `space` for the other
//                    shapes. None (vector_width 1, every access Broadcast) when that list is empty.
//   group            vector_width consecutive values of the vector variable, starting at a multiple of vector_width.
//                    A run (one pass over the vector variable) has ceil_div(extent, vector_width) groups; its last
//                    group is partial only if Mapping::vector_tail. Groups are numbered row-major over (outer
//                    variables, group of the run): group g is group g % groups_per_run of run g / groups_per_run.
//   row              a point of `space` (row-major number); its elements are the points of `row` (row-major).
//   strip            columns_per_block (on the CPU columns_per_unit) consecutive columns, values of the last space variable, at one point of
//                    the outer space variables; the last strip may be cut. Number = outer point * ceil_div(columns, columns_per_block)
//                    + strip of the outer point.
//   unit             what a thread of the CPU executes at a time: grid_x of them are divided among threads.
#pragma once

#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/plan/shapes/columns.h"
#include "ir/plan/shapes/cpu.h"
#include "ir/plan/shapes/matmul.h"
#include "ir/plan/shapes/pointwise.h"
#include "ir/plan/shapes/rows.h"
#include "ir/plan/shapes/serial_rows.h"
#include "ir/plan/shapes/tiles.h"
#include "support/error.h"
#include "support/member_count.h"

namespace cxxinductor::plan {

using Shape = std::variant<Pointwise, Rows, SerialRows, Columns, Tiles, Matmul, CpuPointwise, CpuRows, CpuColumns, CpuTiles>;

// ---- All --------------------------------------------------------------------------------------------------------

struct Mapping {
  std::vector<VarId> space;  // outermost first; every variable of the region is in space or in row, or is serial
  std::vector<VarId> row;    // outermost first; empty for shapes without reductions
  int vector_width = 1;      // elements of a group, a power of two
  bool vector_tail = false;  // the vector variable's extent is not known to be a multiple of vector_width
  Shape shape;

  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&shape);
  }
  template <class Kind>
  Kind* as() {
    return std::get_if<Kind>(&shape);
  }
  // InternalError where the shape is another one.
  template <class Kind>
  const Kind& get() const {
    const Kind* found = as<Kind>();
    CXXI_CHECK(found, "a kernel is mapped otherwise than as {}", Kind::keyword);
    return *found;
  }
};

// Calls visit(field, value) for each field of a shape, in the order of the text form.
template <class OneShape, class Visit>
void for_each_field(OneShape& shape, Visit visit) {
  std::apply([&](const auto&... field) { (visit(field, shape.*field.member), ...); }, OneShape::fields);
}

ShapeTraits traits(const Mapping& mapping);
bool is_pointwise(const Mapping& mapping);
bool is_rows(const Mapping& mapping);  // serial ones too
bool is_columns(const Mapping& mapping);
bool is_tiles(const Mapping& mapping);
bool is_simt(const Mapping& mapping);  // of threads in blocks, as Target is; otherwise of loops over vectors
// Rows whose Persistent values survive from row loop to row loop.
bool is_persistent(const Mapping& mapping);
bool is_sequential(const Mapping& mapping);

VarId vector_variable(const Mapping& mapping);
VarId serial_variable(const Mapping& mapping);  // of SerialRows
VarId tile_variable(const Mapping& mapping);    // of Tiles and CpuTiles
int tile_size(const Mapping& mapping);          // likewise; of others 0
// Threads of a block; 1 on the CPU.
int block_threads(const Mapping& mapping);
// Groups (of Columns: points) that a thread executes at a time, the loop over them being unrolled; 1 on the CPU.
int unrolled_groups(const Mapping& mapping);
// Groups that a thread has where their number is fixed: of persistent rows and of tiles of GPUs; of others 0.
int groups_of_thread(const Mapping& mapping);
// Units below which a second thread does not pay; 1 on GPUs.
int grain(const Mapping& mapping);

// Blocks or units of a launch, not simplified.
sym::Expr units(const Mapping& mapping, const loops::Region& region);
// Updates that one thread makes of one state of a reduction; 1 where states stay in registers, or where nothing is reduced.
sym::Expr updates_of_state(const Mapping& mapping, const loops::Region& region);
// Whether blocks may have threads for rows past the end (of Columns: columns), which meet barriers and store nothing.
bool has_dead_rows(const Kernel& kernel);
// Bytes of shared memory of a block that its launch asks for.
int64_t dynamic_shared_bytes(const Kernel& kernel);

// Product of the variables' extents, not simplified; of `vars` in groups of `width` along the last one.
sym::Expr points_of(const loops::Region& region, const std::vector<VarId>& vars);
sym::Expr groups_of(const loops::Region& region, const std::vector<VarId>& vars, int width);

namespace detail {

template <class... Shapes>
constexpr bool list_all_members(const std::variant<Shapes...>*) {
  return ((member_count<Shapes> == std::tuple_size_v<std::remove_cvref_t<decltype(Shapes::fields)>>)&&...);
}
static_assert(list_all_members(static_cast<const Shape*>(nullptr)), "a shape's `fields` leave out a member");

}  // namespace detail

}  // namespace cxxinductor::plan

// How a kernel divides its points among threads: a Mapping has a shape, which is one struct per way to do it, with the numbers that this way
// has and no others. A shape states its keyword, whether it is a GPU's or the CPU's, and once, in `fields`, its members: text form, range checks
// and whatever else walks them follow from the list.
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

#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "ir/loops/loops.h"
#include "support/error.h"
#include "support/member_count.h"

namespace cxxinductor::plan {

using loops::VarId;

// One field of a shape: an integer, a flag (false unless the text has it) or a variable.
template <class Shape, class Value>
struct Field {
  std::string_view keyword;
  Value Shape::*member;
  // Of integers.
  int low = 1, high = 1 << 30;
  bool power_of_two = false;
};

inline constexpr int most_block_threads = 1024;  // of any GPU

// ---- GPUs -------------------------------------------------------------------------------------------------------

// Every point of `space` once. No reductions. Thread t of block b takes the groups (b * unroll + u) * block_threads + t, u < unroll.
// grid_x = ceil_div(groups, block_threads * unroll)
struct Pointwise {
  int block_threads = 256;
  int unroll = 1;

  static constexpr std::string_view keyword = "pointwise";
  static constexpr bool on_gpu = true;
  static constexpr auto fields = std::tuple{Field{"block_threads", &Pointwise::block_threads, 1, most_block_threads},
                                            Field{"unroll", &Pointwise::unroll}};
};

// Row = b * rows_per_block + t / threads_per_row; lane = t % threads_per_row takes the groups lane + k * threads_per_row of the row.
// persistent: k < items_per_thread, which holds the longest row, and values with MemorySpace::Persistent survive from row loop to row loop;
// other values are computed again by each row loop that lists them. Otherwise in_flight groups are loaded at a time.
// Rows past the end still meet barriers and shuffles. threads_per_row may exceed the warp. grid_x = ceil_div(rows, rows_per_block)
struct Rows {
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1, in_flight = 1;
  bool persistent = false;

  static constexpr std::string_view keyword = "rows";
  static constexpr bool on_gpu = true;
  static constexpr auto fields = std::tuple{Field{"threads_per_row", &Rows::threads_per_row, 1, most_block_threads, true},
                                            Field{"rows_per_block", &Rows::rows_per_block, 1, most_block_threads},
                                            Field{"items_per_thread", &Rows::items_per_thread},
                                            Field{"in_flight", &Rows::in_flight}, Field{"persistent", &Rows::persistent}};
};

// Persistent rows of which a block executes those of one point of `space`, the points of `serial`, one after the other: rows_per_block at a
// time, t / threads_per_row being the first. Reductions over the serial variable give a value for each element of the row: every thread
// adds up those of its groups, and the threads of a block that hold the same groups join at the end. grid_x = points of space
struct SerialRows {
  VarId serial;
  int threads_per_row = 1, rows_per_block = 1, items_per_thread = 1;

  static constexpr std::string_view keyword = "serial_rows";
  static constexpr bool on_gpu = true;
  static constexpr auto fields = std::tuple{Field{"serial", &SerialRows::serial},
                                            Field{"threads_per_row", &SerialRows::threads_per_row, 1, most_block_threads, true},
                                            Field{"rows_per_block", &SerialRows::rows_per_block, 1, most_block_threads},
                                            Field{"items_per_thread", &SerialRows::items_per_thread}};
};

// The last variable of `space` is the contiguous one in memory and `row` lies across it. Block = strip;
// c = t % (columns_per_block / vector_width) is the thread's group in the strip and y = t / (columns_per_block / vector_width)
// < threads_per_row. It takes points y + k * threads_per_row of the row-major `row`, in_flight of them at a time. grid_x = strips
struct Columns {
  int threads_per_row = 1;  // that share a column
  int columns_per_block = 32, in_flight = 1;

  static constexpr std::string_view keyword = "columns";
  static constexpr bool on_gpu = true;
  static constexpr auto fields = std::tuple{Field{"threads_per_row", &Columns::threads_per_row, 1, most_block_threads, true},
                                            Field{"columns_per_block", &Columns::columns_per_block, 1, 1 << 20},
                                            Field{"in_flight", &Columns::in_flight}};
};

// Pointwise over a transposing access, tile x tile points of tile_var (contiguous in the Staged loads) and the last variable `c` of space
// (contiguous in the stores), cut at the edges; numbered by outer point, then tile. grid_x = tiles
// Block = tile (tile_var, c), threads (x, y) = (t % groups, t / groups) with groups = tile / vector_width. A thread loads squares of
// vector_width x vector_width points, with groups along tile_var at x and along c at y + k * (block_threads / groups), and puts them into
// shared memory as groups along c (tile_layout.h). The body then runs with c = x * vector_width and
// tile_var = y + k * (block_threads / groups). Groups are whole: both extents are multiples of vector_width.
struct Tiles {
  VarId tile_var;
  int tile = 32;
  int block_threads = 256;

  static constexpr std::string_view keyword = "tiles";
  static constexpr bool on_gpu = true;
  static constexpr auto fields = std::tuple{Field{"tile_var", &Tiles::tile_var}, Field{"tile", &Tiles::tile},
                                            Field{"block_threads", &Tiles::block_threads, 1, most_block_threads}};
};

// A product on tensor cores: one sum over the one variable k of `row`, of products of two 16-bit floats (matmul.h names the parts).
// `space` ends with m and n: the left factor varies over m and k, the right one over n and k, both over any of the variables before (the
// batch). Two segments: a RowLoop with all that the sum needs, a PerRow with the epilogue.
// A block computes tile_m x tile_n sums at one point of the batch, in steps of tile_k, of which stages - 1 are under way, with
// warps_m x warps_n warps. Factors pass through shared memory in chunks of 8 elements along k, or along m (n) without left_along_k
// (right_along_k); a factor that is a Load has access Staged and is linear in its variables, other factors are computed by their
// statements, for which the chunk is the group. Sums then pass through shared memory into groups along n, for which the epilogue runs,
// `unroll` groups at a time. Block number = batch point * tiles + number of the tile; tiles are numbered in bands of `group_m` rows of
// tiles, down each column of a band. grid_x = blocks. With warpgroups, warps multiply in groups of four, each for all of tile_n (sm_90a); a
// block computes every grid_x-th tile of all batch points, and grid_x is as many as run at a time.
struct Matmul {
  int tile_m = 1, tile_n = 1, tile_k = 1;
  int warps_m = 1, warps_n = 1, stages = 1, group_m = 1, unroll = 1;
  bool left_along_k = false, right_along_k = false, warpgroups = false;

  static constexpr std::string_view keyword = "matmul";
  static constexpr bool on_gpu = true;
  static constexpr auto fields =
      std::tuple{Field{"tile_m", &Matmul::tile_m, 1, 1 << 30, true}, Field{"tile_n", &Matmul::tile_n, 1, 1 << 30, true},
                 Field{"tile_k", &Matmul::tile_k, 1, 1 << 30, true}, Field{"warps_m", &Matmul::warps_m, 1, 32},
                 Field{"warps_n", &Matmul::warps_n, 1, 32},          Field{"stages", &Matmul::stages, 2},
                 Field{"group_m", &Matmul::group_m},                 Field{"unroll", &Matmul::unroll},
                 Field{"left_along_k", &Matmul::left_along_k},       Field{"right_along_k", &Matmul::right_along_k},
                 Field{"warpgroups", &Matmul::warpgroups}};
};

// ---- The CPU ----------------------------------------------------------------------------------------------------

// In all of these, grain: units below which a second thread does not pay; sequential: one thread executes all units in order, since a store
// has write conflicts.

// Unit u = points [u * chunk, min((u + 1) * chunk, points)) of the row-major linearised `space`; a thread that gets units [begin, end) walks
// one contiguous range of points. grid_x = ceil_div(points, chunk)
struct CpuPointwise {
  int chunk = 1;
  int grain = 1;
  bool sequential = false;

  static constexpr std::string_view keyword = "cpu_pointwise";
  static constexpr bool on_gpu = false;
  static constexpr auto fields = std::tuple{Field{"chunk", &CpuPointwise::chunk}, Field{"grain", &CpuPointwise::grain},
                                            Field{"sequential", &CpuPointwise::sequential}};
};

// Unit = a row, whose vectors are dealt out to `sets` states of each reduction. persistent: values with MemorySpace::Persistent lie in a
// per-thread array of the row's (constant) length. grid_x = rows
struct CpuRows {
  int sets = 1;
  int grain = 1;
  bool persistent = false, sequential = false;

  static constexpr std::string_view keyword = "cpu_rows";
  static constexpr bool on_gpu = false;
  static constexpr auto fields =
      std::tuple{Field{"sets", &CpuRows::sets, 1, 8}, Field{"grain", &CpuRows::grain},
                 Field{"persistent", &CpuRows::persistent}, Field{"sequential", &CpuRows::sequential}};
};

// As Columns; unit = strip. columns_per_unit is a multiple of vector_width. grid_x = strips
struct CpuColumns {
  int columns_per_unit = 32;
  int grain = 1;
  bool sequential = false;

  static constexpr std::string_view keyword = "cpu_columns";
  static constexpr bool on_gpu = false;
  static constexpr auto fields = std::tuple{Field{"columns_per_unit", &CpuColumns::columns_per_unit},
                                            Field{"grain", &CpuColumns::grain}, Field{"sequential", &CpuColumns::sequential}};
};

// As Tiles; unit = tile (c, tile_var), so that a thread reads on where it stopped. Staged loads are transposed into an array on the stack;
// then the body runs for each value of tile_var, in vectors along c, of which tile is a multiple.
struct CpuTiles {
  VarId tile_var;
  int tile = 32;
  int grain = 1;

  static constexpr std::string_view keyword = "cpu_tiles";
  static constexpr bool on_gpu = false;
  static constexpr auto fields = std::tuple{Field{"tile_var", &CpuTiles::tile_var}, Field{"tile", &CpuTiles::tile},
                                            Field{"grain", &CpuTiles::grain}};
};

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

bool is_pointwise(const Mapping& mapping);
bool is_rows(const Mapping& mapping);  // serial ones too
bool is_columns(const Mapping& mapping);
bool is_tiles(const Mapping& mapping);
bool is_of_gpu(const Mapping& mapping);
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
// Groups of a tile that a thread computes.
inline int tile_turns(const Mapping& mapping, const Tiles& tiles) { return tiles.tile * tiles.tile / (mapping.vector_width * tiles.block_threads); }
// Units below which a second thread does not pay; 1 on GPUs.
int grain(const Mapping& mapping);

namespace detail {

template <class... Shapes>
constexpr bool list_all_members(const std::variant<Shapes...>*) {
  return ((member_count<Shapes> == std::tuple_size_v<std::remove_cvref_t<decltype(Shapes::fields)>>) && ...);
}
static_assert(list_all_members(static_cast<const Shape*>(nullptr)), "a shape's `fields` leave out a member");

}  // namespace detail

}  // namespace cxxinductor::plan

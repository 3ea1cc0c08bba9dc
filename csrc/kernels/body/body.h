// The generated part of a kernel as data: the steps that compute one fragment of its elements, lowered once for all targets.
//
// The loops around a body pick the fragment: `width` neighbours along a variable, the others at one point. A Slot says what these loops
// leave to the body; the steps say, in order, what is done, where each value lies and under which conditions. Printers of bodies spell
// steps and decide nothing. lower_body.h makes a body, verify_body.h checks one, print_body.h shows one.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/plan/uniform_masks.h"

namespace cxxinductor::kernels {

using plan::StmtId;
using plan::VarId;

// Where a value lies while a body runs.
enum class Where : uint8_t {
  Value,         // under its own name: made by an earlier step of the same lane or fragment, or around the body
  Memory,        // in the buffer of its parameter
  Group,         // the fragment in memory's form, made by this body; of a matmul's sums: made around it
  Ahead,         // the same, loaded ahead of the body
  Next,          // the same, of the row that the threads compute after this one
  Persistent,    // the fragment's entry of an array that lives from row loop to row loop
  Tile,          // the tile that loads across memory pass through
  Lanes,         // an array over the lanes of this fragment
  Columns,       // an array over the columns of a strip
  State,         // of a reduction: its one state
  Accumulators,  // of a reduction: a state per column of the fragment, to which points of the row are added
  States,        // of a reduction: a state per element of the fragment
  SharedStates,  // the same, in memory that the threads of a block share: steps bring them and put them back
};

struct Place {
  StmtId value;
  Where where = Where::Value;
  friend bool operator==(const Place&, const Place&) = default;
};

// Who may store and check, of the threads that execute the body. None set: all of them.
struct Effects {
  bool first_thread = false;  // of the row
  bool live_row = false;      // not rows (columns) past the end, whose threads only take part in barriers
  friend bool operator==(Effects, Effects) = default;
};

enum class LaneForm : uint8_t {
  Loop,    // each thread has a loop over the lanes (GPUs)
  Vector,  // a value is one vector of all lanes (the CPU)
};

struct Slot {
  std::vector<StmtId> stmts;  // to be executed, in the order of the region
  VarId vector_var;           // of the fragment; invalid: it is one point
  int width = 1;              // elements of a fragment; of vectors, the most
  bool masked_tail = false;   // some of them may not exist; vectors have a loop of single elements for those that are left
  LaneForm lanes = LaneForm::Loop;
  loops::VarSet running;  // variables that the loops around the body run over, or the grid
  Effects effects;
  bool checks_return = false;  // a check that fails ends the kernel, so that what follows needs no test of its own
  std::vector<Place> in;       // there already: operands from outside of stmts, and statements of it that need no step
  std::vector<Place> ahead;    // loads of stmts that an earlier loop makes, and where it puts them
  std::vector<Place> out;      // where later segments look for values of stmts
  plan::UniformMasks uniform;  // masks with one value per fragment, since the loop is cut where they change
};

// When an access, check or update happens; all of its conditions have to hold. Where a load does not happen, its value is Load::other.
struct Guard {
  bool effects = false;          // the thread is one of Slot::effects
  std::vector<VarId> once;       // these are 0
  bool lanes = false;            // the element exists; a group is cut to those that do
  StmtId mask;                   // if valid, it is true
  std::vector<StmtId> in_range;  // Checks that the address relies on have succeeded
  bool empty() const { return !effects && once.empty() && !lanes && !mask.valid() && in_range.empty(); }
};

// How a value is computed.
enum class Form : uint8_t {
  Plain,
  SharedDivisor,  // a quotient, by what its row's divisor was prepared to
  Rounded,        // a cast of a cast: the first one's operand, rounded, so that nothing waits for the narrow value
  FourWide,       // a word of a draw of four lanes
};

struct Step {
  enum class Kind : uint8_t {
    LoadStates,   // SharedStates of the fragment into registers
    StoreStates,  // and back
    Bring,        // a value from `where`, under its name
    LoadGroup,    // a whole group from memory to `where`
    Load,         // the value of a load, from `where`
    Compute,      // the value of a statement, in a form
    Keep,         // a value to `where`
    Reserve,      // room that lanes fill: a Group to store, Lanes of a value or of a reduction's operands, or (FourWide) a draw's words
    BeginLanes,   // what follows is executed for each lane
    EndLanes,
    Fill,        // the lane's entry of what was reserved for a store, a reduction's operands or a quotient's dividends
    Divide,      // quotients of all lanes from their dividends, in place
    StoreGroup,  // what was filled, to memory
    Store,       // a value to memory
    Check,
    Update,       // a reduction's `where` by the value of the lane or fragment
    UpdateGroup,  // a reduction's State by the operands that were filled
  };
  Kind kind = Kind::Compute;
  StmtId stmt;  // invalid: BeginLanes and EndLanes
  Where where = Where::Value;
  Form form = Form::Plain;
  Guard guard;
};

// Kinds of statement that have steps of their own; values of the others are computed.
template <class Kind>
concept HasStep = std::same_as<Kind, loops::Load> || std::same_as<Kind, loops::Reduce> || std::same_as<Kind, loops::Store> || std::same_as<Kind, loops::Check>;

struct Body {
  Slot slot;
  std::vector<Step> ahead;  // loads of Slot::ahead; they need the coordinates of the fragment alone
  std::vector<Step> steps;
};

struct NamedBody {
  std::string name;  // what it is for: "row_loop", "factor %3"
  Body body;
};

// Has it a value for each lane of the fragment, rather than one for all?
bool has_lanes(const plan::Kernel& kernel, const Slot& slot, StmtId id);
// Has the reduction an operand for each lane of the fragment? A value without lanes counts for each of them if the fragment lies along the
// reduced variables.
bool reduces_lanes(const plan::Kernel& kernel, const Slot& slot, const loops::Reduce& reduce);
// Is it a load or store that moves whole groups?
bool is_wide(const plan::Kernel& kernel, const Slot& slot, StmtId id);
// The entry of a value; null where there is none.
const Place* find_place(const std::vector<Place>& places, StmtId value);

}  // namespace cxxinductor::kernels

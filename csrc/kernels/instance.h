// What a family makes of a kernel: an Instance names a template, a source of kernels_templates/ that owns threads, loops and barriers, and
// says what stands in it. Values are data: codegen/ spells them for a target and renders the template.
//
// A variable of a template takes one value. A block of it is repeated for each set of values in a list, which its variables see beside those
// around it. No set: the block is left out; one: it is an optional part. A string is a word of the template, such as a variable that it declares.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

// A literal of an unsigned type.
struct Unsigned {
  int64_t value;
};
// A local variable of the template that belongs to a statement, after a letter that the template gives it: r5.
struct Local {
  char letter;
  StmtId stmt;
};
// Type of the states of a reduction.
struct StateType {
  StmtId reduce;
};
// Type of what holds a fragment of a value: for each of its lanes, where it has lanes.
struct FragmentType {
  StmtId value;
  int width;  // 1: it has none
};
// The address of a parameter.
struct Parameter {
  loops::BufferId buffer;
};
// Where an access begins in memory.
struct Address {
  StmtId access;
};
// A comment with the call of the model that a statement is of; nothing where it has none.
struct OriginComment {
  StmtId stmt;
};
// The number of the block among those of its launch.
struct BlockNumber {};
// Declares variables of the region from the row-major number of a point, an expression of the template. Groups of `width` along the last one
// are a point each.
struct Coordinates {
  std::string_view number;
  std::vector<VarId> vars;
  int width = 1;
};
// Declares the number of elements of a fragment that exist, where some may not.
struct Lanes {
  VarId along;
  int width = 1;
  bool masked_tail = false;
};
// The row-major number of the variables' point.
struct PointNumber {
  std::vector<VarId> vars;
};
// Statements of a body.
struct Steps {
  Slot slot;
  std::vector<Step> steps;
  bool are_ahead = false;       // loads of several fragments, into arrays that the template declares
  std::string_view item = "k";  // the template's number for a fragment among those of a thread
  bool in_lambda = true;        // of the CPU: a failing check ends the fragment's call, not the kernel
};

class Values;
// Sets of values for a block. Copies share them: values are put together from parts, and initializer lists copy.
class Sets {
 public:
  Sets(std::vector<Values> sets);  // NOLINT(google-explicit-constructor): a value like others
  const Values* begin() const;
  const Values* end() const;

 private:
  std::shared_ptr<const std::vector<Values>> sets_;
};
struct Value : std::variant<std::string, bool, int64_t, sym::Expr, DType, VarId, Unsigned, Local, StateType, FragmentType, Parameter, Address, OriginComment,
                            BlockNumber, Coordinates, Lanes, PointNumber, Steps, Sets> {
  using variant::variant;
};
struct NamedValue {
  std::string_view name;  // a literal
  Value value;
};
// A dozen or less, in a list that is searched.
class Values {
 public:
  Values() = default;
  Values(std::initializer_list<NamedValue> values) : values_(values) {}
  // Null where there is none of this name.
  const Value* find(std::string_view name) const;
  // Values of other names.
  void add(std::string_view name, Value value);
  void merge(Values others);
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::vector<NamedValue> values_;
};

struct Instance {
  std::string_view name;  // of the template, without folder and ending
  Values values;
};

// The instance that the family of the kernel's mapping makes.
Instance instantiate(const plan::Kernel& kernel, plan::Variant variant);

// An optional part.
std::vector<Values> when(bool present);
// Numbers of groups of `width` in all runs over vars, simplified; of points, where it is 1.
sym::Expr count_groups(const plan::Kernel& kernel, const std::vector<VarId>& vars, int width);

// What stands in the loop over the fragments that a thread has under way together: once {loads, the loads that are made ahead}, where there
// are any, and once {steps}.
std::vector<Values> passes_of(const Body& body, std::string_view item = "k");
// Arrays of the groups that are loaded ahead: {type, g}.
std::vector<Values> groups_ahead(const plan::Kernel& kernel, const Body& body);
// Where sums are in blocks (Kernel::in_blocks): {turns}, of a loop, after which it puts states aside.
std::vector<Values> puts_aside(const plan::Kernel& kernel, bool in_blocks);
// Loads that a kernel makes once, at its start: {v, address}.
std::vector<Values> loads_made_once(const plan::Kernel& kernel);
FragmentType type_of(const plan::Kernel& kernel, const Slot& slot, StmtId id);
Lanes lanes_of(const Slot& slot);

}  // namespace cxxinductor::kernels

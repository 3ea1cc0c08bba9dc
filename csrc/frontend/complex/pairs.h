// The state of lower_complex: the pair of each complex value, and the calls written so far.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::frontend {

using model::Call;
using model::CallGraph;
using model::CallValue;
using model::CallValueInfo;

// Real and imaginary part of a complex operand: each is a value (OperandRef) or a number. A real operand has imaginary 0.
struct Pair {
  Arg re, im;
};

class PairLowering {
 public:
  PairLowering(const CallGraph& calls, const model::SchemaSource& schemas);
  CallGraph run();

  const CallValueInfo& info(CallValue id) const { return out_.values.at(id); }
  // Whether the argument is a complex value.
  bool is_complex(const Arg& arg) const;
  // Whether it contains a complex value or number, in lists too.
  bool holds_complex(const Arg& arg) const;

  // The parts of an operand, unpacked on first use; none for an argument that is neither a tensor nor a number.
  std::optional<Pair> pair_of(const Arg& arg);
  // States that `result` is this pair; each part is expanded and cast to the result's sizes and component type.
  void set_pair(CallValue result, Pair pair);

  // Writes calls on real tensors. `like` gives sizes, strides and device, component types replacing complex ones.
  // Calls on numbers alone are computed here.
  Arg call(std::string_view callee, std::string_view overload, std::vector<Arg> args, const CallValueInfo& like,
           std::vector<std::pair<std::string, Arg>> kwargs = {});
  Arg add(const Arg& a, const Arg& b, const CallValueInfo& like);
  Arg sub(const Arg& a, const Arg& b, const CallValueInfo& like);
  Arg mul(const Arg& a, const Arg& b, const CallValueInfo& like);
  Arg div(const Arg& a, const Arg& b, const CallValueInfo& like);
  Arg neg(const Arg& a, const CallValueInfo& like);
  Arg select(const Arg& condition, const Arg& yes, const Arg& no, const CallValueInfo& like);

  // The part as a tensor of the size and component type of `like`.
  Arg tensor(const Arg& part, const CallValueInfo& like) { return fit(part, real_like(like)); }
  // A copy of `call` that reads one part of each argument at the positions `data`; returns the values of its results.
  // Real operands there have imaginary 0. Other arguments (indices, masks, sizes) stay.
  std::vector<CallValue> call_on_part(const Call& call, std::initializer_list<size_t> data, bool imaginary);
  // Writes a call whose result is `result`, a real value of the graph.
  void define(CallValue result, std::string_view callee, std::string_view overload, std::vector<Arg> args,
              std::vector<std::pair<std::string, Arg>> kwargs = {});
  // `result`, a real value, is a copy or cast of this part.
  void define_as(CallValue result, const Arg& part);
  // The last dimension of `value` holds (real, imaginary) of `pair`; selects of it need not read the stack.
  void remember_stacked(CallValue value, Pair pair) { stacked_[value] = std::move(pair); }
  const Pair* stacked(CallValue value) const;

 private:
  CallValueInfo real_like(const CallValueInfo& like) const;
  CallValue new_value(CallValueInfo info);
  void lower(const Call& call);
  void keep(const Call& call);
  bool holds_half_complex(const Call& call) const;
  void unpack(CallValue id);
  void pack(CallValue id);
  void pack_all(const Arg& arg);
  // What the call writes, and which of its results are views.
  void remember_views(const Call& call);
  // Whether it is a view of memory that nothing was written to since.
  bool is_live_view(CallValue id) const;
  // The value as eager has it: interleaved, with its bits set, in the memory of what it is a view of.
  CallValue materialize(CallValue id);
  bool is_interleaved_as_declared(CallValue id) const;
  // The same memory without bits.
  CallValue memory_of(CallValue id);
  CallValue without_bits(CallValue id);
  CallValue with_bits(CallValue memory, const CallValueInfo& declared);
  Arg part_of(const Arg& arg, const Call& call, bool imaginary);
  Arg fit(const Arg& part, const CallValueInfo& target);
  Arg cast(const Arg& part, const CallValueInfo& like);
  Arg binary(std::string_view callee, const Arg& a, const Arg& b, const CallValueInfo& like);
  Arg full(const Arg& number, const CallValueInfo& like);

  const CallGraph& calls_;
  const model::SchemaSource& schemas_;
  CallGraph out_;
  OriginId origin_;
  std::map<CallValue, Pair> pairs_;
  std::map<CallValue, Pair> stacked_;
  struct View {
    const Call* call;
    CallValue operand;  // whose memory it shares
  };
  void view_memory(const View& view, CallValue id);
  std::map<CallValue, View> views_;
  std::set<CallValue> overwritten_;                       // by calls: a view of one does not keep what it held
  std::set<CallValue> kept_;                              // results of calls that stay as they were recorded
  std::set<CallValue> interleaved_;                       // complex values that exist in their own form
  std::map<CallValue, CallValue> packed_;                 // of those made of pairs: the real tensor below
  std::map<CallValue, CallValue> materialized_, memory_;  // by the value of the recorded graph
};

// A row rewrites one call and returns true, or returns false without having written anything.
using PairRule = bool (*)(PairLowering& pairs, const Call& call);
const std::map<std::string, PairRule, std::less<>>& pair_rules();

DType component_type(DType complex);  // F32 of C64, F64 of C128, others as they are

}  // namespace cxxinductor::frontend

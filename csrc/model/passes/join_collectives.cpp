// A joined call takes the place of its last member, whose operands are the last to be there. What reads results of earlier members
// moves behind it, in order; everything else stays where it is.
#include "model/passes/join_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ir/callees.h"
#include "ir/live_ranges.h"
#include "model/effects.h"

namespace cxxinductor::model {
namespace {

struct JoinedForm {
  std::string_view callee, coalesced;
  size_t arguments;  // the tensor, then those that members have in common
};
constexpr std::array joined_forms{
    JoinedForm{"_c10d_functional::all_reduce", "_c10d_functional::all_reduce_coalesced", 3},
    JoinedForm{"_c10d_functional::all_gather_into_tensor", "_c10d_functional::all_gather_into_tensor_coalesced", 3},
    JoinedForm{"_c10d_functional::reduce_scatter_tensor", "_c10d_functional::reduce_scatter_tensor_coalesced", 4},
};

const JoinedForm* form_of(const Call& call) {
  const auto* found = std::ranges::find(joined_forms, call.callee, &JoinedForm::callee);
  const bool fits = found != joined_forms.end() && call.args.size() == found->arguments && call.kwargs.empty() && call.results.size() == 1;
  return fits && call.args.front().as<OperandRef>() ? found : nullptr;
}

// Those that return what they make and write to nothing.
bool is_functional_collective(std::string_view callee) {
  static constexpr std::array others{"all_reduce_coalesced", "all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced", "all_to_all_single",
                                     "broadcast"};
  constexpr std::string_view space = "_c10d_functional::";
  return std::ranges::count(joined_forms, callee, &JoinedForm::callee) > 0 ||
         (callee.starts_with(space) && std::ranges::count(others, callee.substr(space.size())) > 0);
}

std::string_view short_name(std::string_view callee) { return callee.substr(callee.rfind(':') + 1); }

class Joining {
 public:
  Joining(CallGraph calls, const SchemaSource& schemas, int64_t limit, bool sizes_may_vary)
      : graph_(std::move(calls)), schemas_(schemas), limit_(limit), sizes_may_vary_(sizes_may_vary) {
    for (CallValue input : graph_.inputs) note_symbols(graph_.values[input]);
  }

  CallGraph run() {
    std::vector<Call>& calls = graph_.calls;
    for (size_t at = 0; at < calls.size();) {
      const JoinedForm* form = form_of(calls[at]);
      if (!form || !join(at, *form)) ++at;  // a joined call leaves one fewer in the list: `at` is the next
    }
    for (Bucket& bucket : buckets_)
      if (bucket.members > 1) {
        Call& call = *std::ranges::find(calls, bucket.first_result, [](const Call& c) { return c.results.empty() ? none : c.results.front(); });
        call.callee = bucket.form->coalesced;
        call.result_is_list = true;
      }
    write_notes();
    return std::move(graph_);
  }

 private:
  static constexpr CallValue none = static_cast<CallValue>(-1);

  // A call that collects members while it still has its own name.
  struct Bucket {
    const JoinedForm* form;
    CallValue first_result;  // by which the call is found
    int64_t bytes;
    size_t members = 1;
  };

  void note_symbols(const CallValueInfo& info) {
    for (sym::Expr size : info.sizes)
      for (sym::Expr symbol : size.free_symbols()) input_symbols_.emplace(symbol.name());
    for (sym::Expr symbol : info.symbol.free_symbols()) input_symbols_.emplace(symbol.name());
  }

  // Nothing where a size is symbolic: its hint may differ between ranks.
  std::optional<int64_t> bytes_of(const Call& call) const {
    int64_t most = 0;
    for (CallValue id : {call.args.front().as<OperandRef>()->operand, call.results.front()}) {
      const CallValueInfo& info = graph_.values[id];
      if (!std::ranges::all_of(info.sizes, [](sym::Expr size) { return size.is_constant(); })) return std::nullopt;
      most = std::max(most, bytes_hint(info.dtype, info.sizes, info.strides, graph_.assumptions));
    }
    return most;
  }

  // Dtype and device of the operand, and the arguments that have to be equal.
  std::string key_of(const Call& call) const {
    const CallValueInfo& info = graph_.values[call.args.front().as<OperandRef>()->operand];
    std::string key = fmt::format("{} {} {}", call.callee, to_string(info.dtype), to_string(info.device));
    for (size_t i = 1; i < call.args.size(); ++i) key += " " + to_string(call.args[i]);
    return key;
  }

  // Joins the call with the open bucket of its kind; else it opens one, where it may have members.
  bool join(size_t at, const JoinedForm& form) {
    const Call& call = graph_.calls[at];
    const CallValueInfo& operand = graph_.values[call.args.front().as<OperandRef>()->operand];
    if (is_opaque(operand.dtype)) return refuse(form, fmt::format("torch's coalesced form does not take {}", to_string(operand.dtype)));
    if (sizes_may_vary_) return refuse(form, "its size may become symbolic on one rank before the others; with torch.compile(dynamic=False) none does");
    const auto bytes = bytes_of(call);
    if (!bytes) return refuse(form, "its size is not known at compile time");
    if (*bytes > limit_) return refuse(form, "it exceeds the limit alone");
    const std::string key = key_of(call);
    if (const auto open = open_.find(key); open != open_.end()) {
      Bucket& bucket = buckets_[open->second];
      if (bucket.bytes + *bytes > limit_) {
        refuse(form, "it would exceed the limit together with those before");
      } else if (const std::string reason = move_bucket(bucket, at); !reason.empty()) {
        refuse(form, reason);
      } else {
        bucket.bytes += *bytes;
        ++bucket.members;
        return true;
      }
    }
    open_[key] = buckets_.size();
    buckets_.push_back({&form, call.results.front(), *bytes});
    return false;
  }

  // Makes the call at `at` the bucket's last member, at that call's place. "", or why that cannot be; then nothing has changed.
  std::string move_bucket(const Bucket& bucket, size_t at) {
    std::vector<Call>& calls = graph_.calls;
    size_t from = at;
    while (calls[from].results.empty() || calls[from].results.front() != bucket.first_result) --from;
    std::set<CallValue> late(calls[from].results.begin(), calls[from].results.end());
    const auto is_late = [&](const Call& call) {
      bool found = false;
      for_each_operand_ref(call, [&](OperandRef ref) { found = found || late.contains(ref.operand); });
      return found;
    };
    std::vector<bool> moves(at);
    for (size_t c = from + 1; c < at; ++c) {
      if (effects_of(calls[c]).is_barrier) return fmt::format("{}, which is between them, may write to memory or start collectives", full_name(calls[c]));
      if (!is_late(calls[c])) continue;
      if (!may_move(calls[c])) return fmt::format("{} keeps its place and needs the result of the first", full_name(calls[c]));
      moves[c] = true;
      late.insert(calls[c].results.begin(), calls[c].results.end());
    }
    if (is_late(calls[at])) return "it needs the result of one before";
    std::vector<Call> staying, moving;
    for (size_t c = from + 1; c < at; ++c) (moves[c] ? moving : staying).push_back(std::move(calls[c]));
    staying.push_back(joined(std::move(calls[from]), std::move(calls[at])));
    const auto next = std::ranges::move(staying, calls.begin() + static_cast<std::ptrdiff_t>(from)).out;
    std::ranges::move(moving, next);
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(at));
    return "";
  }

  static Call joined(Call bucket, Call last) {
    Arg& operands = bucket.args.front();
    if (operands.as<OperandRef>()) operands = ArgList{operands};
    std::get<ArgList>(operands.value).push_back(std::move(last.args.front()));
    bucket.results.push_back(last.results.front());
    bucket.ordered = bucket.ordered || last.ordered;
    bucket.origin = last.origin;
    return bucket;
  }

  // What the schema of a callee states.
  struct Effects {
    bool is_barrier = false, is_ordered = false;
  };
  const Effects& effects_of(const Call& call) {
    const auto [entry, is_new] = effects_.try_emplace(full_name(call));
    if (!is_new || is_functional_collective(call.callee) || waits_for_collective(call.callee)) return entry->second;
    const auto schema = schemas_.find(call.callee, call.overload);
    entry->second.is_barrier = !schema || is_opaque_callee(call.callee) || std::ranges::any_of(schema->arguments, &SchemaArgument::written);
    entry->second.is_ordered = !schema || must_be_ordered(call.callee, *schema);
    return entry->second;
  }

  bool may_move(const Call& call) {
    const bool is_collective = is_functional_collective(call.callee) || waits_for_collective(call.callee);
    if (effects_of(call).is_ordered || (call.ordered && !is_collective)) return false;
    return std::ranges::none_of(call.results, [this](CallValue id) { return defines_symbols(graph_.values[id]); });
  }

  // Later calls may state the symbol alone, without an operand that orders them.
  bool defines_symbols(const CallValueInfo& info) const {
    if (info.kind == CallValueInfo::Kind::None) return false;
    if (info.kind != CallValueInfo::Kind::Tensor) return true;
    return std::ranges::any_of(info.sizes, [this](sym::Expr size) {
      return std::ranges::any_of(size.free_symbols(), [this](sym::Expr symbol) { return !input_symbols_.contains(std::string(symbol.name())); });
    });
  }

  bool refuse(const JoinedForm& form, const std::string& reason) {
    ++refused_[fmt::format("{} not joined with those before: {}", short_name(form.callee), reason)];
    return false;
  }

  void write_notes() {
    for (const Bucket& bucket : buckets_)
      if (bucket.members > 1)
        graph_.collective_notes.push_back(fmt::format("{} x {} joined into one call, {} bytes", bucket.members, short_name(bucket.form->callee), bucket.bytes));
    for (const auto& [what, count] : refused_) graph_.collective_notes.push_back(fmt::format("{} x {}", count, what));
  }

  CallGraph graph_;
  const SchemaSource& schemas_;
  const int64_t limit_;
  const bool sizes_may_vary_;
  std::set<std::string> input_symbols_;
  std::vector<Bucket> buckets_;
  std::map<std::string, size_t> open_;      // by key, the bucket that the next call may join
  std::map<std::string, Effects> effects_;  // by full name
  std::map<std::string, size_t> refused_;   // by what is said of them, how many calls
};

}  // namespace

CallGraph join_collectives(CallGraph calls, const SchemaSource& schemas, int64_t limit, bool sizes_may_vary) {
  if (limit == 0) return calls;
  return Joining(std::move(calls), schemas, limit, sizes_may_vary).run();
}

}  // namespace cxxinductor::model

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

#include "ir/strides.h"
#include "ir/text_parts.h"
#include "model/text.h"
#include "model/verify.h"

namespace cxxinductor::model {
namespace {

class Parser {
 public:
  explicit Parser(TextCursor& cursor) : cursor_(cursor), origins_(calls_.origins) {}

  CallGraph parse() {
    parse_calls();
    return std::move(calls_);
  }

 private:
  void parse_calls() {
    TextCursor::Nested nested(cursor_);
    cursor_.expect("calls");
    calls_.name = cursor_.sigil_name('@', "the call graph's name");
    if (cursor_.accept("on")) device_ = parse_device(cursor_);
    parse_where(cursor_, calls_.assumptions);
    cursor_.expect("{");
    while (cursor_.looking_at("calls")) parse_subgraph();
    while (cursor_.accept("input")) parse_input();
    while (!cursor_.looking_at("final") && !cursor_.looking_at("return")) {
      if (calls_.calls.size() >= max_text_items) cursor_.fail("fewer calls");
      parse_call();
    }
    while (cursor_.accept("final")) parse_mutation();
    cursor_.expect("return");
    if (!cursor_.looking_at("}")) {
      do parse_output();
      while (cursor_.accept(","));
    }
    cursor_.expect("}");
  }

  void parse_subgraph() {
    if (calls_.subgraphs.size() >= max_text_items) cursor_.fail("fewer subgraphs");
    TextCursor start = cursor_;
    auto subgraph = std::make_shared<const CallGraph>(Parser(cursor_).parse());
    const std::string name = subgraph->name;
    if (!calls_.subgraphs.emplace(name, std::move(subgraph)).second) start.fail("a new name of a subgraph");
  }

  std::vector<sym::Expr> parse_strides(size_t rank) {
    std::vector<sym::Expr> strides = parse_expr_list(cursor_);
    if (strides.size() != rank) cursor_.fail(fmt::format("{} strides", rank));
    return strides;
  }

  sym::Expr parse_in_parentheses() {
    cursor_.expect("(");
    const sym::Expr e = parse_expr(cursor_, ")");
    cursor_.expect(")");
    return e;
  }

  void parse_type(CallValueInfo& info) {
    if (cursor_.accept("symint")) {
      info.kind = CallValueInfo::Kind::SymInt;
      info.symbol = parse_in_parentheses();
    } else if (cursor_.accept("symfloat")) {
      info.kind = CallValueInfo::Kind::SymFloat;
    } else if (cursor_.accept("symbool")) {
      info.kind = CallValueInfo::Kind::SymBool;
    } else if (cursor_.accept("object")) {
      info.kind = CallValueInfo::Kind::Opaque;
    } else if (cursor_.accept("none")) {
      info.kind = CallValueInfo::Kind::None;
    } else {
      info.dtype = parse_dtype(cursor_);
      info.sizes = parse_expr_list(cursor_);
      info.strides = cursor_.accept("strides") ? parse_strides(info.sizes.size()) : row_major_strides(info.sizes);
      info.device = cursor_.accept("on") ? parse_device(cursor_) : device_;
      info.storage_offset = cursor_.accept("offset") ? parse_in_parentheses() : sym::Expr(0);
      if (cursor_.accept("storage")) info.storage = static_cast<uint32_t>(parse_int(cursor_, "a storage's number", 1, std::numeric_limits<int>::max()));
      info.conjugate = cursor_.accept("conjugate");
      info.negative = cursor_.accept("negative");
    }
  }

  struct Declaration {
    TextCursor start;
    CallValueInfo info;
  };
  Declaration parse_declaration() {
    Declaration declaration{cursor_, {}};
    declaration.info.name = cursor_.sigil_name('%', "a value's name");
    cursor_.expect(":");
    parse_type(declaration.info);
    return declaration;
  }

  CallValue define(Declaration declaration) {
    const auto id = static_cast<CallValue>(calls_.values.size());
    const std::string& name = declaration.info.name;
    if (!known_.emplace(name, id).second) declaration.start.fail(fmt::format("a new name: %{} is defined above", name));
    calls_.values.push_back(std::move(declaration.info));
    return id;
  }

  CallValue parse_value(TextCursor& cursor) const {
    TextCursor start = cursor;
    const std::string name = cursor.sigil_name('%', "a value");
    const auto found = known_.find(name);
    if (found == known_.end()) start.fail(fmt::format("a value defined above (there is no %{})", name));
    return found->second;
  }

  OperandReader operand_reader() const {
    return [this](TextCursor& cursor) { return OperandRef{parse_value(cursor)}; };
  }

  void parse_input() {
    const auto position = static_cast<uint32_t>(calls_.inputs.size());
    if (position >= max_text_items) cursor_.fail("fewer inputs");
    const CallValue id = define(parse_declaration());
    calls_.inputs.push_back(id);
    if (cursor_.accept("given")) {
      cursor_.expect("strides");
      calls_.input_strides[position] = parse_strides(calls_.values[id].sizes.size());
    }
    if (cursor_.accept("donated")) calls_.donated.insert(position);
    if (cursor_.accept("frozen")) calls_.frozen.insert(position);
    calls_.input_sources.push_back(cursor_.accept("from") ? cursor_.quoted("the input's source") : "");
  }

  void parse_call() {
    std::vector<Declaration> results;
    if (cursor_.looking_at("%")) {
      do results.push_back(parse_declaration());
      while (cursor_.accept(","));
      cursor_.expect("=");
    }
    Call call;
    parse_callee(cursor_, call.callee, call.overload);
    parse_call_args(cursor_, call.args, call.kwargs, operand_reader());
    call.result_is_list = cursor_.accept("list");
    call.ordered = cursor_.accept("ordered");
    while (cursor_.accept("autocast")) {
      const DeviceType type = parse_device(cursor_).type;
      call.autocast.dtypes[type] = parse_dtype(cursor_);
    }
    call.origin = origins_.parse(cursor_);
    for (Declaration& result : results) call.results.push_back(define(std::move(result)));  // it reads none of them
    calls_.calls.push_back(std::move(call));
  }

  void parse_mutation() {
    TextCursor start = cursor_;
    const CallValue input = parse_value(cursor_);
    uint32_t position = 0;
    while (position < calls_.inputs.size() && calls_.inputs[position] != input) ++position;
    if (position == calls_.inputs.size()) start.fail("an input");
    cursor_.expect("=");
    calls_.mutations.emplace_back(position, parse_value(cursor_));
  }

  void parse_output() {
    if (calls_.outputs.size() >= max_text_items) cursor_.fail("fewer outputs");
    calls_.outputs.push_back(parse_arg(cursor_, operand_reader()));
    if (cursor_.accept("flexible")) calls_.flexible_outputs.insert(static_cast<uint32_t>(calls_.outputs.size() - 1));
  }

  TextCursor& cursor_;
  CallGraph calls_;
  OriginReader origins_;
  Device device_;
  std::unordered_map<std::string, CallValue> known_;
};

}  // namespace

CallGraph parse(std::string_view text) {
  TextCursor cursor(text);
  CallGraph calls;
  parse_guarded(cursor, [&] {
    calls = Parser(cursor).parse();
    if (!cursor.at_end()) cursor.fail("the end of the text");
  });
  require_valid("call graph", verify(calls));
  return calls;
}

}  // namespace cxxinductor::model

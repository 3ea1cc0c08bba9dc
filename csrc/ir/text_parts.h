// Text that the three IRs share: expressions, types, immediates, call arguments, `where` clauses, origins.
//
// Each print_ function writes what the parse_ function of the same name reads back. Text is untrusted: every failure is
// a UserError with line and column, lists and ranks are limited, nesting is bounded by TextCursor::Nested.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/call_args.h"
#include "ir/origin.h"
#include "ir/scalar.h"
#include "support/text_cursor.h"
#include "sym/simplify.h"

namespace cxxinductor {

constexpr size_t max_text_rank = 16;        // dimensions of a tensor
constexpr size_t max_text_items = 1000000;  // nodes, statements, buffers, steps, list items

std::string quote(std::string_view text);  // what TextCursor::quoted reads

// "[a, b]". With `spell`, symbols are respelled (statement symbols of the loops IR).
using SymbolSpelling = std::function<std::string(sym::Expr)>;
std::string print_expr_list(const std::vector<sym::Expr>& list, const SymbolSpelling& spell = {});
std::string print_int_list(const std::vector<int>& list);
template <class Integer>
std::string print_integers(const std::vector<Integer>& list) {
  return print_int_list(std::vector<int>(list.begin(), list.end()));
}

// An expression that ends before one of `stops`. `rewrite` sees the text first (statement references).
using ExprRewrite = std::function<std::string(std::string_view)>;
sym::Expr parse_expr(TextCursor& cursor, std::string_view stops, const ExprRewrite& rewrite = {});
std::vector<sym::Expr> parse_expr_list(TextCursor& cursor, const ExprRewrite& rewrite = {}, size_t limit = max_text_rank);
std::vector<int> parse_int_list(TextCursor& cursor, size_t limit = max_text_rank);
int parse_int(TextCursor& cursor, std::string_view what, int low, int high);

DType parse_dtype(TextCursor& cursor);
bool looking_at_dtype(TextCursor cursor);  // a dtype's name, and not a longer word
Device parse_device(TextCursor& cursor);
// "f32(0.5)": an immediate with its dtype.
std::string print_typed_scalar(const Scalar& value);
Scalar parse_typed_scalar(TextCursor& cursor);

// Reads an operand reference; without one it is "$3".
using OperandReader = std::function<OperandRef(TextCursor&)>;
Arg parse_arg(TextCursor& cursor, const OperandReader& read_operand = {});
// "aten::sort.stable", or `"a.b" overload "c"` where the callee itself has a dot; quoted.
std::string print_callee(std::string_view callee, std::string_view overload);
void parse_callee(TextCursor& cursor, std::string& callee, std::string& overload);
// "(arg, arg, key = arg)"
std::string print_call_args(const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs, const OperandSpelling& spell = {});
void parse_call_args(TextCursor& cursor, std::vector<Arg>& args, std::vector<std::pair<std::string, Arg>>& kwargs, const OperandReader& read_operand = {});

// ` where 1 <= s0 <= 65536, 8 | s0`, or nothing when there are none.
std::string print_where(const sym::Assumptions& assumptions);
void parse_where(TextCursor& cursor, sym::Assumptions& assumptions);

// ` from "model.py":12 "h.0" "aten.add.Tensor"`, or nothing for an invalid id. Equal origins share one entry when read.
std::string print_origin(const OriginTable& origins, OriginId id);
class OriginReader {
 public:
  explicit OriginReader(OriginTable& origins) : origins_(origins) {}
  OriginId parse(TextCursor& cursor);

 private:
  OriginTable& origins_;
  std::unordered_map<std::string, OriginId> known_;
};

// Names that print after a sigil: [A-Za-z0-9_.]+
bool is_text_name(std::string_view name);
// Names of symbols and variables: [A-Za-z_][A-Za-z0-9_.]*, but not "stmt.", which the loops IR reserves for statements.
bool is_symbol_name(std::string_view name);
std::string parse_symbol_name(TextCursor& cursor, std::string_view what);

// Runs `parse_all` and turns errors that carry no position (overflow in an expression, a row's type rule) into
// UserErrors with the line that was being read.
void parse_guarded(TextCursor& cursor, const std::function<void()>& parse_all);
// UserError with the first messages, when there are any.
void require_valid(std::string_view what, const std::vector<std::string>& messages);

}  // namespace cxxinductor

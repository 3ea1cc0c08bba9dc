// Text of one region: shared by the loops IR, where accesses name buffers, and the plan, where they name parameters.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "ir/loops/loops.h"
#include "ir/text_parts.h"
#include "support/text_writer.h"

namespace cxxinductor::loops {

struct RegionPrinting {
  std::function<std::string(BufferId)> buffer;    // after "@"
  std::function<std::string(StmtId)> annotation;  // after the statement, with a blank before it; may be empty
  const OriginTable* origins = nullptr;           // null: origins are not printed
  bool name = true;                               // false: neither name, device nor variable-set comments
  Device device;                                  // printed when the region's differs
};
void print_region(TextWriter& writer, const Region& region, const RegionPrinting& how);
// "%3" for the symbol of statement 3, also inside expressions.
std::string print_expr(sym::Expr e);

// "%name" references of embedded expressions, by the statements read so far.
class StatementNames {
 public:
  void define(TextCursor& cursor, const std::string& name, StmtId id);
  StmtId parse(TextCursor& cursor) const;            // "%name"
  std::string rewrite(std::string_view text) const;  // "%a + 1" -> "stmt.3 + 1"; UserError for an unknown name

 private:
  std::unordered_map<std::string, StmtId> ids_;
};

// Reads what print_region writes. `program` gives dtypes of the buffers that parse_buffer returns.
struct RegionParsing {
  const Program* program = nullptr;
  std::function<BufferId(TextCursor&)> parse_buffer;          // reads "@name"
  std::function<void(TextCursor&, StmtId)> parse_annotation;  // after each statement; may be empty
  OriginReader* origins = nullptr;
  Device device;
  bool name_stores = false;  // stores and checks are called by their number
};
Region parse_region(TextCursor& cursor, const RegionParsing& how, StatementNames& names);

}  // namespace cxxinductor::loops

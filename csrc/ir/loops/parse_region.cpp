#include "ir/loops/region_text.h"
#include "support/error.h"

namespace cxxinductor::loops {

void StatementNames::define(TextCursor& cursor, const std::string& name, StmtId id) {
  if (!ids_.emplace(name, id).second) cursor.fail(fmt::format("a new name: %{} is defined above", name));
}

StmtId StatementNames::parse(TextCursor& cursor) const {
  TextCursor start = cursor;
  std::string name = cursor.sigil_name('%', "a statement");
  auto found = ids_.find(name);
  if (found == ids_.end()) start.fail(fmt::format("a statement above (there is no %{})", name));
  return found->second;
}

std::string StatementNames::rewrite(std::string_view text) const {
  // Statements are named by labels only; the parser makes their symbols.
  if (text.find("stmt.") != text.npos) throw_user_error("a statement is written %name, not stmt.n");
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '%') {
      out += text[i++];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && is_text_name(text.substr(end, 1))) ++end;
    auto found = ids_.find(std::string(text.substr(i + 1, end - i - 1)));
    if (found == ids_.end()) throw_user_error("there is no statement {}", text.substr(i, end - i));
    out += sym::to_string(statement_symbol(found->second));
    i = end;
  }
  return out;
}

namespace {

class RegionParser {
 public:
  RegionParser(TextCursor& cursor, const RegionParsing& how, StatementNames& names) : cursor_(cursor), how_(how), builder_(region_), names_(names) {}

  Region parse() {
    cursor_.expect("region");
    region_.device = how_.device;
    if (cursor_.looking_at("@")) region_.name = cursor_.sigil_name('@', "the region's name");
    if (cursor_.accept("on")) region_.device = parse_device(cursor_);
    if (cursor_.accept("over")) {
      do parse_var();
      while (cursor_.accept(","));
    }
    cursor_.expect("{");
    while (!cursor_.accept("}")) {
      if (region_.body.size() >= max_text_items) cursor_.fail("fewer statements");
      parse_stmt();
    }
    return std::move(region_);
  }

 private:
  void parse_var() {
    TextCursor start = cursor_;
    const bool serial = cursor_.accept("serial");
    std::string name = parse_symbol_name(cursor_, "a variable");
    if (region_.vars.size() == 32) start.fail("at most 32 variables");
    cursor_.expect("<");
    region_.vars[builder_.var(name, parse_expr(cursor_, ",{"))].serial = serial;
  }

  void parse_stmt() {
    builder_.set_origin({});
    StmtId id(region_.body.size());
    TextCursor start = cursor_;
    if (cursor_.looking_at("store") || cursor_.looking_at("update") || cursor_.looking_at("check")) {
      if (cursor_.accept("store")) {
        parse_store();
      } else if (cursor_.accept("update")) {
        parse_update();
      } else {
        cursor_.expect("check");
        parse_check();
      }
      if (how_.name_stores) names_.define(start, fmt::format("{}", id.index()), id);
    } else {
      std::string name = cursor_.sigil_name('%', "a statement");
      cursor_.expect("=");
      parse_value();
      names_.define(start, name, id);
    }
    if (how_.parse_annotation) how_.parse_annotation(cursor_, id);
    if (how_.origins) region_.body[id].origin = how_.origins->parse(cursor_);
  }

  std::vector<sym::Expr> parse_coords() {
    return parse_expr_list(cursor_, [this](std::string_view text) { return names_.rewrite(text); });
  }
  sym::Expr parse_embedded() {
    cursor_.expect("(");
    sym::Expr e = parse_expr(cursor_, ")", [this](std::string_view text) { return names_.rewrite(text); });
    cursor_.expect(")");
    return e;
  }
  StmtId parse_mask() { return cursor_.accept("if") ? names_.parse(cursor_) : StmtId(); }

  void parse_store() {
    BufferId buffer = how_.parse_buffer(cursor_);
    std::vector<sym::Expr> coords = parse_coords();
    cursor_.expect("=");
    StmtId value = names_.parse(cursor_);
    StmtId mask = parse_mask();
    builder_.store(*how_.program, buffer, std::move(coords), value, mask);
  }

  void parse_update() {
    Store store;
    if (cursor_.accept("<")) {
      TextCursor start = cursor_;
      const auto combine = find_combine(cursor_.identifier("a way to combine"));
      if (!combine || *combine == Combine::Overwrite) start.fail("a way to combine");
      store.combine = *combine;
      cursor_.expect(">");
    }
    store.buffer = how_.parse_buffer(cursor_);
    store.coords = parse_coords();
    cursor_.expect("=");
    store.value = names_.parse(cursor_);
    store.mask = parse_mask();
    if (cursor_.accept("conflict_order")) store.conflict_order = parse_embedded();
    builder_.update(*how_.program, std::move(store));
  }

  void parse_check() {
    StmtId index = names_.parse(cursor_);
    cursor_.expect("<");
    sym::Expr bound = parse_embedded();
    builder_.check(index, bound, cursor_.quoted("what is checked, in quotes"));
  }

  void parse_value() {
    TextCursor start = cursor_;
    std::string word = cursor_.identifier("a statement kind or scalar op");
    if (word == "load") return parse_load();
    if (word == "constant") {
      builder_.constant(parse_typed_scalar(cursor_));
    } else if (word == "index") {
      builder_.index(parse_embedded());
    } else if (word == "reduce") {
      parse_reduce();
    } else if (word == "project") {
      parse_project();
    } else if (std::optional<ScalarOp> op = find_scalar_op(word)) {
      parse_apply(start, *op);
    } else {
      start.fail("a statement kind or scalar op");
    }
  }

  void parse_load() {
    BufferId buffer = how_.parse_buffer(cursor_);
    std::vector<sym::Expr> coords = parse_coords();
    StmtId mask = parse_mask();
    Scalar other;
    if (mask.valid()) {
      cursor_.expect("else");
      other = parse_typed_scalar(cursor_);
    }
    builder_.load(*how_.program, buffer, std::move(coords), mask, other);
  }

  void parse_apply(TextCursor& start, ScalarOp op) {
    const ScalarOpInfo& row = info(op);
    DType cast_to = DType::F32;
    if (row.rule == TypeRule::Cast) {
      cursor_.expect("<");
      cast_to = parse_dtype(cursor_);
      cursor_.expect(">");
    }
    std::vector<StmtId> operands;
    cursor_.expect("(");
    do {
      operands.push_back(names_.parse(cursor_));
      if (operands.size() > static_cast<size_t>(row.arity)) start.fail(fmt::format("{} operands of {}", row.arity, row.name));
    } while (cursor_.accept(","));
    cursor_.expect(")");
    if (operands.size() != static_cast<size_t>(row.arity)) start.fail(fmt::format("{} operands of {}", row.arity, row.name));
    builder_.apply(op, std::move(operands), cast_to);
  }

  void parse_reduce() {
    cursor_.expect("<");
    TextCursor start = cursor_;
    std::optional<Reduction> reduction = find_reduction(cursor_.identifier("a reduction"));
    if (!reduction) start.fail("a reduction");
    cursor_.expect(">");
    cursor_.expect("(");
    StmtId operand = names_.parse(cursor_);
    cursor_.expect(")");
    VarSet over;
    if (cursor_.accept("over")) {
      do over |= parse_var_name();
      while (cursor_.accept(","));
    }
    builder_.reduce(*reduction, operand, over);
  }

  VarSet parse_var_name() {
    TextCursor start = cursor_;
    std::string name = cursor_.identifier("a variable");
    for (size_t v = 0; v < region_.vars.size(); ++v)
      if (region_.vars[VarId(v)].name == name) return VarSet::of(VarId(v));
    start.fail("a variable of the region");
  }

  void parse_project() {
    cursor_.expect("<");
    TextCursor start = cursor_;
    int result = parse_int(cursor_, "a result number", 0, 8);
    cursor_.expect(">");
    cursor_.expect("(");
    StmtId of = names_.parse(cursor_);
    cursor_.expect(")");
    const auto* reduce = region_.body[of].as<Reduce>();
    if (!reduce || result >= static_cast<int64_t>(form(reduce->reduction).results.size())) start.fail("a result of a reduction");
    builder_.project(of, static_cast<uint32_t>(result));
  }

  TextCursor& cursor_;
  const RegionParsing& how_;
  Region region_;
  RegionBuilder builder_;
  StatementNames& names_;
};

}  // namespace

Region parse_region(TextCursor& cursor, const RegionParsing& how, StatementNames& names) { return RegionParser(cursor, how, names).parse(); }

}  // namespace cxxinductor::loops

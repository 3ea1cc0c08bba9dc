#include "ir/loops/region_text.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

class RegionPrinter {
 public:
  RegionPrinter(TextWriter& writer, const Region& region, const RegionPrinting& how) : writer_(writer), region_(region), how_(how) {}

  void print() {
    std::string head = "region";
    if (how_.name) {
      head += " @" + region_.name;
      if (region_.device != how_.device) head += " on " + to_string(region_.device);
    }
    std::vector<std::string> vars;
    for (const Var& var : region_.vars) vars.push_back(fmt::format("{}{} < {}", var.serial ? "serial " : "", var.name, sym::to_string(var.extent)));
    if (!vars.empty()) head += fmt::format(" over {}", fmt::join(vars, ", "));
    writer_.line("{} {{", head);
    writer_.indent();
    for (size_t s = 0; s < region_.body.size(); ++s) print_stmt(StmtId(s));
    writer_.dedent();
    writer_.line("}}");
  }

 private:
  static std::string ref(StmtId id) { return id.valid() ? fmt::format("%{}", id.index()) : "%?"; }

  std::string var_names(VarSet vars, std::string_view separator) const {
    std::vector<std::string> names;
    for (size_t v = 0; v < region_.vars.size(); ++v)
      if (vars.contains(VarId(v))) names.push_back(region_.vars[VarId(v)].name);
    return fmt::format("{}", fmt::join(names, separator));
  }

  void print_stmt(StmtId id) {
    const Stmt& stmt = region_.body[id];
    std::string text = std::visit([&](const auto& kind) { return kind_text(kind, stmt, id); }, stmt.kind);
    if (how_.annotation) text += how_.annotation(id);
    if (how_.origins) text += print_origin(*how_.origins, stmt.origin);
    if (how_.name) text += fmt::format("  ; ({})", var_names(stmt.vars, " "));
    writer_.raw_line(text);
  }

  std::string coords_text(BufferId buffer, const std::vector<sym::Expr>& coords) const {
    return fmt::format("@{}{}", how_.buffer(buffer), print_expr_list(coords, print_expr));
  }

  std::string kind_text(const Load& load, const Stmt&, StmtId id) const {
    std::string text = fmt::format("{} = load {}", ref(id), coords_text(load.buffer, load.coords));
    if (load.mask.valid()) text += fmt::format(" if {} else {}", ref(load.mask), print_typed_scalar(load.other));
    return text;
  }
  std::string kind_text(const Constant& constant, const Stmt&, StmtId id) const {
    return fmt::format("{} = constant {}", ref(id), print_typed_scalar(constant.value));
  }
  std::string kind_text(const Index& index, const Stmt&, StmtId id) const { return fmt::format("{} = index({})", ref(id), print_expr(index.value)); }
  std::string kind_text(const Apply& apply, const Stmt& stmt, StmtId id) const {
    const ScalarOpInfo& row = info(apply.op);
    std::vector<std::string> operands;
    for (StmtId operand : apply.operands) operands.push_back(ref(operand));
    std::string dtype = row.rule == TypeRule::Cast ? fmt::format("<{}>", to_string(stmt.dtype)) : "";
    return fmt::format("{} = {}{}({})", ref(id), row.name, dtype, fmt::join(operands, ", "));
  }
  std::string kind_text(const Reduce& reduce, const Stmt&, StmtId id) const {
    std::string over = reduce.over.empty() ? "" : " over " + var_names(reduce.over, ", ");
    return fmt::format("{} = reduce<{}>({}){}", ref(id), info(reduce.reduction).name, ref(reduce.operand), over);
  }
  std::string kind_text(const Project& project, const Stmt&, StmtId id) const {
    return fmt::format("{} = project<{}>({})", ref(id), project.result, ref(project.of));
  }
  std::string kind_text(const Store& store, const Stmt&, StmtId) const {
    std::string head = store.update ? "update" : "store";
    if (store.combine != Combine::Overwrite) head += fmt::format("<{}>", name_of(store.combine));
    std::string tail = store.mask.valid() ? fmt::format(" if {}", ref(store.mask)) : "";
    if (store.conflict_order) tail += fmt::format(" conflict_order ({})", print_expr(*store.conflict_order));
    return fmt::format("{} {} = {}{}", head, coords_text(store.buffer, store.coords), ref(store.value), tail);
  }
  std::string kind_text(const Check& check, const Stmt&, StmtId) const {
    return fmt::format("check {} < ({}) {}", ref(check.index), print_expr(check.bound), quote(check.what));
  }

  TextWriter& writer_;
  const Region& region_;
  const RegionPrinting& how_;
};

}  // namespace

std::string print_expr(sym::Expr e) {
  std::string text = sym::to_string(e);
  // Only statement symbols hold "stmt." at the start of a name; respell each as "%n".
  constexpr std::string_view prefix = "stmt.";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool starts_name = i == 0 || !is_text_name(text.substr(i - 1, 1));
    if (!starts_name || text.compare(i, prefix.size(), prefix) != 0) {
      out += text[i++];
      continue;
    }
    size_t end = i + prefix.size();
    while (end < text.size() && is_text_name(std::string_view(text).substr(end, 1))) ++end;
    StmtId id = statement_of_symbol(std::string_view(text).substr(i, end - i));
    out += id.valid() ? fmt::format("%{}", id.index()) : text.substr(i, end - i);
    i = end;
  }
  return out;
}

void print_region(TextWriter& writer, const Region& region, const RegionPrinting& how) { RegionPrinter(writer, region, how).print(); }

}  // namespace cxxinductor::loops

// cxxi-docs: the pages of docs/ that are made from tables. `cxxi-docs --write docs` writes them; `cxxi-docs --check
// docs` fails when one is not what the tables say (a test runs it).
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "driver/stages.h"
#include "frontend/import.h"
#include "ir/dtype.h"
#include "ir/reduction.h"
#include "ir/scalar_op.h"
#include "passes/pass_manager.h"
#include "support/error.h"
#include "support/options.h"
#include "support/text_writer.h"

namespace {

using namespace cxxinductor;

std::string cell(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// "" stays "", else `text`.
std::string code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", cell(text)); }

std::string words_as_code(std::string_view words) {
  std::string out;
  while (!words.empty()) {
    const size_t space = words.find(' ');
    out += (out.empty() ? "" : " ") + code(words.substr(0, space));
    words.remove_prefix(space == std::string_view::npos ? words.size() : space + 1);
  }
  return out;
}

std::string_view types_text(TypeSet types) {
  switch (types) {
    case TypeSet::Floating:
      return "floats";
    case TypeSet::Integral:
      return "integers";
    case TypeSet::IntegralOrBool:
      return "integers, bool";
    case TypeSet::Numeric:
      return "floats, integers";
    case TypeSet::Any:
      return "all";
  }
  return "";
}

std::string_view rule_text(TypeRule rule) {
  switch (rule) {
    case TypeRule::Same:
      return "T";
    case TypeRule::Predicate:
      return "bool";
    case TypeRule::Select:
      return "T; the first operand is bool";
    case TypeRule::Cast:
      return "as asked for";
    case TypeRule::Identity:
      return "T, opaque ones too";
  }
  return "";
}

std::string traits_text(const OpTraits& traits) {
  std::vector<std::string_view> words;
  if (traits.commutative) words.push_back("commutative");
  if (traits.transcendental) words.push_back("transcendental");
  return fmt::format("{}", fmt::join(words, ", "));
}

void add_ops(TextWriter& page) {
  page.line("## Scalar operations");
  page.line(
      "Rows of `csrc/ir/ops.def`. Operands have one dtype T; an op computes in T's compute type and rounds once, at "
      "its");
  page.line(
      "result. The last column names ATen overloads whose plain meaning a row is; forms with more arguments are read "
      "by");
  page.line("`csrc/frontend/`.");
  page.line("");
  page.line("| op | operands | T | result | traits | meaning | ATen |");
  page.line("|---|---|---|---|---|---|---|");
  for (const ScalarOpInfo& row : scalar_ops()) {
    page.line("| `{}` | {} | {} | {} | {} | {} | {} |", row.name, row.arity, types_text(row.types), rule_text(row.rule), traits_text(row.traits), cell(row.doc),
              words_as_code(row.aten));
  }
}

void add_reductions(TextWriter& page) {
  page.line("");
  page.line("## Reductions");
  page.line(
      "Rows of `csrc/ir/reductions.def`. Those whose order matters take compute types, accumulate in them, and are "
      "not");
  page.line("bit-equal to eager.");
  page.line("");
  page.line("| reduction | results | order matters | meaning |");
  page.line("|---|---|---|---|");
  for (const ReductionInfo& row : reduction_rows())
    page.line("| `{}` | {} | {} | {} |", row.name, parse_form(row).results.size(), row.order_matters ? "yes" : "", cell(row.doc));
}

void add_dtypes(TextWriter& page) {
  page.line("");
  page.line("## Dtypes");
  page.line("Rows of `csrc/ir/dtypes.def`.");
  page.line("");
  page.line("| dtype | bytes | computes in | meaning |");
  page.line("|---|---|---|---|");
  constexpr DType all[] = {
#define DTYPE(name, ...) DType::name,
#include "ir/dtypes.def"
#undef DTYPE
  };
  for (DType dtype : all) page.line("| `{}` | {} | `{}` | {} |", to_string(dtype), byte_size(dtype), to_string(compute_type(dtype)), cell(info(dtype).doc));
}

// By operator: "aten::add: Scalar, Tensor".
void add_overloads(TextWriter& page) {
  const std::vector<std::string> overloads = frontend::overloads_imported_whole();
  std::map<std::string, std::vector<std::string>> by_op;
  for (const std::string& overload : overloads) {
    const size_t dot = overload.find('.');
    by_op[overload.substr(0, dot)].push_back(dot == std::string::npos ? "default" : overload.substr(dot + 1));
  }
  page.line("");
  page.line("## What the front-end imports");
  page.line("{} overloads of {} operators are read as they stand and are not decomposed before. Others are decomposed by", overloads.size(), by_op.size());
  page.line("AOTAutograd where it knows how, else they run through ATen as extern calls.");
  page.line("");
  page.line("| operator | overloads |");
  page.line("|---|---|");
  for (const auto& [op, names] : by_op) page.line("| `{}` | {} |", op, cell(fmt::format("{}", fmt::join(names, ", "))));
}

std::string ops_page() {
  TextWriter page;
  page.line("# Operations");
  page.line("Made from the tables by `cxxi-docs`; do not edit.");
  page.line("");
  add_ops(page);
  add_reductions(page);
  add_dtypes(page);
  add_overloads(page);
  return std::move(page).take();
}

std::string options_page() {
  TextWriter page;
  page.line("# Options");
  page.line("Made from `include/cxxinductor/options.def` by `cxxi-docs`; do not edit.");
  page.line("");
  page.line(
      "`torch.compile(model, backend=\"cxxinductor\", options={{\"name\": value}})` wins over the environment "
      "variable; an empty variable");
  page.line("leaves the default. Unknown names and values are errors that list the known ones. `print(cxxinductor.option_table())` prints this table.");
  page.line(
      "In C++ and C a variable counts where the program passes the options that `options_from_environment()` or "
      "`cxxinductor_create_options_from_environment` made.");
  page.line("");
  page.line("| option | variable | default | values | meaning |");
  page.line("|---|---|---|---|---|");
  for (const OptionInfo& option : option_table()) {
    std::string values;
    for (std::string_view word : option_values(option.name)) values += (values.empty() ? "" : ", ") + code(word);
    if (const size_t dots = option.accepts.find(".."); option.type != "std::string" && dots != std::string_view::npos)
      values = fmt::format("{} to {}", option.accepts.substr(0, dots), option.accepts.substr(dots + 2));
    if (option.name == "skip_passes") values = "names of passes, below";
    if (option.name == "dump") values += " of a stage below";
    if (values.empty()) values = option.type == "bool" ? "true, false" : option.type == "int64_t" ? "a number" : "text";
    page.line("| `{}` | `{}` | {} | {} | {} |", option.name, environment_variable(option.name), code(get_option(Options(), option.name)), values,
              cell(option.doc));
  }
  page.line("");
  page.line("## Other variables");
  page.line("They are no options of a compile. The environment alone sets them.");
  page.line("");
  page.line("| variable | meaning |");
  page.line("|---|---|");
  for (const VariableInfo& variable : variable_table()) page.line("| `{}` | {} |", variable.name, cell(variable.doc));
  page.line("");
  page.line("## Stages");
  page.line("In the order that they run, from `csrc/driver/stages.cpp`: what `dump=after:NAME` may name. Options may skip stages.");
  page.line("Passes of users (`register_graph_pass(stage=NAME)`) may follow on some.");
  page.line("");
  page.line("| stage | what it does | takes | makes | passes of users |");
  page.line("|---|---|---|---|---|");
  for (const driver::Stage& stage : driver::stage_table())
    page.line("| `{}` | {} | {} | {} | {} |", stage.name, cell(stage.doc), driver::to_string(stage.takes), driver::to_string(stage.makes),
              stage.passes_of_users ? "yes" : "");
  page.line("");
  page.line("## Passes");
  page.line("In the order that they run, from `csrc/passes/pipelines.cpp`: what `skip_passes` may name.");
  page.line("");
  page.line("| pass | what it does |");
  page.line("|---|---|");
  for (const passes::PassInfo& pass : passes::pass_table()) page.line("| `{}` | {} |", pass.name, cell(pass.doc));
  return std::move(page).take();
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int run(const std::string& folder, bool write) {
  int stale = 0;
  for (const auto& [name, text] : std::map<std::string, std::string>{{"ops.md", ops_page()}, {"options.md", options_page()}}) {
    const std::string path = folder + "/" + name;
    if (write) {
      std::ofstream file(path);
      file << text;
      file.close();
      if (!file) throw_user_error("cannot write {}", path);
    } else if (read(path) != text) {
      std::cerr << "cxxi-docs: " << path << " is not what the tables say; run cxxi-docs --write " << folder << "\n";
      ++stale;
    }
  }
  return stale == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string write, check;
  CLI::App app{"Writes or checks the pages of docs/ that are made from tables."};
  auto* writes = app.add_option("--write", write, "folder to write ops.md and options.md into");
  app.add_option("--check", check, "folder whose ops.md and options.md must be up to date")->excludes(writes);
  app.require_option(1);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(write.empty() ? check : write, !write.empty());
  } catch (const cxxinductor::Error& error) {
    std::cerr << "cxxi-docs: " << error.what() << "\n";
    return 1;
  }
}

#include "codegen/render_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <vector>

#include "codegen/templates.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace cxxinductor::codegen {
namespace {

using kernels::Value;
using kernels::Values;

constexpr std::string_view begin_mark = "/*{{", name_end = "*/", end_mark = "/*}}*/", block_mark = "for ";
constexpr size_t none = std::string_view::npos;

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    visit(text.substr(0, newline));
    text.remove_prefix(std::min(newline + 1, text.size()));
  }
}

std::string_view trimmed(std::string_view line) {
  const size_t first = line.find_first_not_of(' ');
  return first == none ? std::string_view() : line.substr(first, line.find_last_not_of(' ') + 1 - first);
}

std::string without_comments(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_line(text, [&](std::string_view line) {
    if (!trimmed(line).starts_with("//")) out.append(line).append("\n");
  });
  return out;
}

struct Node {
  enum class Kind : uint8_t { Text, Variable, Block };
  Kind kind = Kind::Text;
  std::string_view text;     // or the name
  bool has_lines = false;    // a block that begins and ends with its lines
  std::vector<Node> inside;  // of a block
};
using Nodes = std::vector<Node>;

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  // Up to the end of the text, or of a block.
  Nodes parse(std::string_view block = {}) {
    Nodes nodes;
    while (true) {
      const size_t begin = text_.find(begin_mark, at_), end = text_.find(end_mark, at_), next = std::min(begin, end);
      nodes.push_back({Node::Kind::Text, text_.substr(at_, std::min(next, text_.size()) - at_), false, {}});
      at_ = std::min(next, text_.size());
      if (next == none && !block.empty()) throw_internal("{}: the block '{}' does not end", file_, block);
      if (next == none) return nodes;
      if (begin < end) {
        nodes.push_back(parse_marked());
        continue;
      }
      if (block.empty()) throw_internal("{}: a variable ends that did not begin", file_);
      at_ += end_mark.size();
      return nodes;
    }
  }

 private:
  Node parse_marked() {
    const size_t begin = at_, name = begin + begin_mark.size(), after_name = text_.find(name_end, name);
    if (after_name == none) throw_internal("{}: the name of a variable does not end", file_);
    Node node{Node::Kind::Variable, text_.substr(name, after_name - name), false, {}};
    at_ = after_name + name_end.size();
    if (node.text.starts_with(block_mark)) {
      node.kind = Node::Kind::Block;
      node.text.remove_prefix(block_mark.size());
      node.inside = parse(node.text);
      node.has_lines =
          trimmed(text_.substr(0, begin).substr(text_.rfind('\n', begin) + 1)).empty() && trimmed(text_.substr(at_, text_.find('\n', at_) - at_)).empty();
      return node;
    }
    const size_t end = text_.find(end_mark, at_);
    if (end == none) throw_internal("{}: the variable '{}' does not end", file_, node.text);
    if (text_.find(begin_mark, at_) < end) throw_internal("{}: the variable '{}' holds another", file_, node.text);
    at_ = end + end_mark.size();
    return node;
  }

  std::string_view text_, file_;
  size_t at_ = 0;
};

void find_named(const Nodes& nodes, std::string_view name, std::vector<const Node*>& found) {
  for (const Node& node : nodes) {
    if (node.kind != Node::Kind::Text && node.text == name) found.push_back(&node);
    find_named(node.inside, name, found);
  }
}

// Each value has its place in one of the lists of nodes, or in a part that is left out. Templates and values are the program's own: tests run
// with this check, and programs without, for which it would be a third of the time that a kernel's text takes.
[[maybe_unused]] void check_places(const Values& values, const std::vector<const Nodes*>& lists, std::string_view file) {
  for (const auto& [name, value] : values) {
    std::vector<const Node*> places;
    for (const Nodes* nodes : lists) find_named(*nodes, name, places);
    if (places.empty()) throw_internal("{}: there is no variable '{}'", file, name);
    std::vector<const Nodes*> inside;
    for (const Node* place : places) inside.push_back(&place->inside);
    if (const auto* sets = std::get_if<kernels::Sets>(&value))
      for (const Values& set : *sets) check_places(set, inside, file);
  }
}

// A source taken apart. It stays where it is: nodes are parts of its code.
struct Template {
  Template(std::string_view text, std::string_view name) : file(name), code(without_comments(text)), nodes(Parser(code, file).parse()) {}
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;

  const std::string file, code;
  const Nodes nodes;
};

class Renderer {
 public:
  Renderer(const SpellValue& spell, std::string_view file) : spell_(spell), file_(file) {}

  struct Scope {
    const Values& values;
    const Scope* around = nullptr;
  };
  void render(const Nodes& nodes, const Scope& scope) {
    for (const Node& node : nodes) {
      if (node.kind == Node::Kind::Text) {
        out_ += node.text;
        continue;
      }
      const Value& value = find(node.text, scope);
      const auto* sets = std::get_if<kernels::Sets>(&value);
      if ((node.kind == Node::Kind::Block) != (sets != nullptr))
        throw_internal("{}: '{}' is a {}, but its value is {}", file_, node.text, sets ? "variable" : "block", sets ? "a list" : "not a list");
      if (!sets) {
        out_ += spell_(value);
        while (out_.ends_with('\n')) out_.pop_back();
        continue;
      }
      for (const Values& set : *sets) {
        render(node.inside, {set, &scope});
        if (node.has_lines) out_ += '\n';
      }
    }
  }
  std::string take() && { return std::move(out_); }

 private:
  const Value& find(std::string_view name, const Scope& scope) const {
    for (const Scope* at = &scope; at; at = at->around)
      if (const Value* found = at->values.find(name)) return *found;
    throw_internal("{}: no value for the variable '{}'", file_, name);
  }

  const SpellValue& spell_;
  const std::string_view file_;
  std::string out_;
};

// Lines without the blank ones, each indented by the brackets that are open at its start.
std::string indent_lines(std::string_view text) {
  std::string out, open;  // brackets
  out.reserve(2 * text.size());
  for_each_line(text, [&](std::string_view whole) {
    std::string_view line = trimmed(whole);
    if (line.empty()) return;
    const bool is_directive = line.starts_with('#');
    const bool closes = line.starts_with('}') && !open.empty();
    if (closes) open.pop_back();
    const auto braces = static_cast<size_t>(std::ranges::count(open, '{'));
    if (!out.empty()) out += '\n';
    out.append(2 * braces + (open.ends_with('(') ? 4 : 0), ' ').append(line);
    if (is_directive) return;
    line = line.substr(closes ? 1 : 0, line.find("//") - (closes ? 1 : 0));
    for (const char c : line) {
      if (c == '{' || c == '(') open += c;
      if ((c == '}' || c == ')') && !open.empty()) open.pop_back();
    }
  });
  return out;
}

std::string render_template(const Template& source, const Values& values, const SpellValue& spell) {
  assert((check_places(values, {&source.nodes}, source.file), true));
  Renderer renderer(spell, source.file);
  renderer.render(source.nodes, {values});
  return indent_lines(std::move(renderer).take());
}

using ParsedTemplates = std::map<std::string, Template, std::less<>>;
constinit MadeOnce<ParsedTemplates, ForkLock::Leaf> parsed_templates;

// Of the embedded text; all kernels of a family share it.
const Template& template_of_file(std::string_view name) {
  ParsedTemplates& parsed = parsed_templates.get([] { return ParsedTemplates(); });
  const ForkGuard guard(ForkLock::Leaf);
  const auto found = parsed.find(name);
  return found != parsed.end() ? found->second : parsed.try_emplace(std::string(name), template_text(name), name).first->second;
}

}  // namespace

std::string render_template(std::string_view text, const Values& values, const SpellValue& spell, std::string_view file) {
  return render_template(Template(text, file), values, spell);
}

std::string render_template_file(std::string_view name, const Values& values, const SpellValue& spell) {
  return render_template(template_of_file(name), values, spell);
}

std::string spell_plain(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (const auto* local = std::get_if<kernels::Local>(&value)) return fmt::format("{}{}", local->letter, local->stmt.index());
  if (const auto* parameter = std::get_if<kernels::Parameter>(&value)) return fmt::format("p{}", parameter->buffer.index());
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  throw_internal("a value of kind {} has no text on this target", value.index());
}

}  // namespace cxxinductor::codegen

#include "codegen/render_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "codegen/templates.h"
#include "support/error.h"

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

class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  // Up to the end of the text, or of a block.
  std::vector<Node> parse(std::string_view block = {}) {
    std::vector<Node> nodes;
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
      node.has_lines = trimmed(text_.substr(0, begin).substr(text_.rfind('\n', begin) + 1)).empty() &&
                       trimmed(text_.substr(at_, text_.find('\n', at_) - at_)).empty();
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

void find_named(const std::vector<Node>& nodes, std::string_view name, std::vector<const Node*>& found) {
  for (const Node& node : nodes) {
    if (node.kind != Node::Kind::Text && node.text == name) found.push_back(&node);
    find_named(node.inside, name, found);
  }
}

class Renderer {
 public:
  Renderer(const SpellValue& spell, std::string_view file) : spell_(spell), file_(file) {}

  struct Scope {
    const Values& values;
    const Scope* around = nullptr;
  };
  void render(const std::vector<Node>& nodes, const Scope& scope) {
    for (const Node& node : nodes) {
      if (node.kind == Node::Kind::Text) {
        out_ += node.text;
        continue;
      }
      const Value& value = find(node.text, scope);
      const auto* sets = std::get_if<std::vector<Values>>(&value);
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
  // After render: each value has its place in one of the lists of nodes. Those that were used have one, the others are looked for: they may be in
  // a block without sets.
  void check_places(const Values& values, const std::vector<const std::vector<Node>*>& lists) {
    std::ranges::sort(used_);
    check_unused(values, lists);
  }
  std::string take() && { return std::move(out_); }

 private:
  void check_unused(const Values& values, const std::vector<const std::vector<Node>*>& lists) const {
    for (const auto& [name, value] : values) {
      if (is_used(value)) continue;
      std::vector<const Node*> places;
      for (const std::vector<Node>* nodes : lists) find_named(*nodes, name, places);
      if (places.empty()) throw_internal("{}: there is no variable '{}'", file_, name);
      const auto* sets = std::get_if<std::vector<Values>>(&value);
      if (!sets) continue;
      std::vector<const std::vector<Node>*> inside;
      for (const Node* block : places) inside.push_back(&block->inside);
      for (const Values& set : *sets) check_unused(set, inside);
    }
  }
  // With all that is in it.
  bool is_used(const Value& value) const {
    if (!std::ranges::binary_search(used_, &value)) return false;
    const auto* sets = std::get_if<std::vector<Values>>(&value);
    return !sets || std::ranges::all_of(*sets, [this](const Values& set) {
      return std::ranges::all_of(set, [this](const auto& named) { return is_used(named.second); });
    });
  }
  const Value& find(std::string_view name, const Scope& scope) {
    for (const Scope* at = &scope; at; at = at->around)
      if (const auto found = at->values.find(name); found != at->values.end()) {
        used_.push_back(&found->second);
        return found->second;
      }
    throw_internal("{}: no value for the variable '{}'", file_, name);
  }

  const SpellValue& spell_;
  const std::string_view file_;
  std::string out_;
  std::vector<const Value*> used_;
};

// Lines without the blank ones, each indented by the brackets that are open at its start.
std::string indent_lines(std::string_view text) {
  std::string out, open;  // brackets
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

}  // namespace

std::string render_template(std::string_view text, const Values& values, const SpellValue& spell, std::string_view file) {
  const std::string code = without_comments(text);
  const std::vector<Node> nodes = Parser(code, file).parse();
  Renderer renderer(spell, file);
  renderer.render(nodes, {values});
  renderer.check_places(values, {&nodes});
  return indent_lines(std::move(renderer).take());
}

std::string render_template_file(std::string_view name, const Values& values, const SpellValue& spell) {
  return render_template(template_text(name), values, spell, name);
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

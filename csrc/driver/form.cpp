#include "driver/form.h"

#include <array>

#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "ir/text_parts.h"
#include "model/text.h"
#include "model/verify.h"
#include "support/error.h"
#include "support/text_cursor.h"

namespace cxxinductor::driver {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Form>> kind_names{"calls", "graph", "loops", "plan", "text"};
constexpr std::array<std::string_view, 4> first_words{"calls", "graph", "program", "plan"};

struct Print {
  std::string operator()(const model::CallGraph& calls) const { return model::print(calls); }
  std::string operator()(const graph::Graph& graph) const { return graph::print(graph); }
  std::string operator()(const loops::Program& program) const { return loops::print(program); }
  std::string operator()(const plan::Plan& plan) const { return plan::print(plan); }
  std::string operator()(const std::string& text) const { return text; }
};

struct Verify {
  std::string_view after;
  void operator()(const model::CallGraph& calls) const { require_valid(fmt::format("call graph after {}", after), model::verify(calls)); }
  void operator()(const graph::Graph& graph) const { graph::verify_or_throw(graph, after); }
  void operator()(const loops::Program& program) const { loops::verify_or_throw(program, after); }
  void operator()(const plan::Plan& plan) const { plan::verify_or_throw(plan, after); }
  void operator()(const std::string&) const {}
};

}  // namespace

FormKind kind_of(const Form& form) { return static_cast<FormKind>(form.index()); }

std::string_view to_string(FormKind kind) { return kind_names[static_cast<size_t>(kind)]; }

FormKind kind_of_text(std::string_view text) {
  TextCursor cursor(text);
  for (size_t kind = 0; kind < first_words.size(); ++kind)
    if (cursor.looking_at(first_words[kind])) return static_cast<FormKind>(kind);
  cursor.fail("calls, graph, program or plan");
}

Form parse_form(std::string_view text) {
  switch (kind_of_text(text)) {
    case FormKind::Calls:
      return model::parse(text);
    case FormKind::Graph:
      return graph::parse(text);
    case FormKind::Loops:
      return loops::parse(text);
    case FormKind::Plan:
      return plan::parse(text);
    case FormKind::Text:
      break;
  }
  throw_internal("kind_of_text finds IRs alone");
}

std::string print(const Form& form) { return std::visit(Print(), form); }

void verify_or_throw(const Form& form, std::string_view after) { std::visit(Verify{after}, form); }

}  // namespace cxxinductor::driver

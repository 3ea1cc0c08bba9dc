// Text that programs of the loops IR and plans share: inputs, outputs, views of buffers, extern calls; and eager's peaks, which graphs have too.
// The structs differ in their buffer ids alone, so these are templates over them. `name` spells a buffer with its "@";
// `parse_buffer` reads one. Limits and errors are those of text_parts.h.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "ir/call_text.h"
#include "ir/text_parts.h"
#include "support/text_writer.h"

namespace cxxinductor {

// A line per device; `device` is the one that texts leave out.
inline void print_eager_peaks(TextWriter& writer, const std::map<Device, int64_t>& peaks, Device device) {
  for (const auto& [of, bytes] : peaks) writer.line("eager_peak{} {}", of == device ? "" : " on " + to_string(of), bytes);
}
inline std::map<Device, int64_t> parse_eager_peaks(TextCursor& cursor, Device device) {
  std::map<Device, int64_t> peaks;
  while (cursor.accept("eager_peak")) {
    TextCursor start = cursor;
    const Device of = cursor.accept("on") ? parse_device(cursor) : device;
    const int64_t bytes = cursor.integer("a number of bytes");
    if (bytes < 0 || !peaks.emplace(of, bytes).second) start.fail("one number of bytes per device");
  }
  return peaks;
}

// `tensor` and `tensor_name`: declaration and name of the buffer of a tensor input.
template <class Input>
std::string print_input(const Input& input, const std::string& tensor, const std::string& tensor_name) {
  std::string text = "opaque", expected_source;
  if (input.kind == Input::Kind::Tensor) {
    text = tensor + (input.donated ? " donated" : "");
    expected_source = tensor_name;
  } else if (input.kind == Input::Kind::Symbol) {
    text = "sym " + input.symbol;
    expected_source = input.symbol;
  }
  return input.source == expected_source ? text : text + " from " + quote(input.source);
}

// parse_declaration reads a tensor input, sets input.buffer and returns the buffer's name.
template <class Input, class ParseDeclaration>
Input parse_input(TextCursor& cursor, ParseDeclaration parse_declaration) {
  Input input;
  if (cursor.accept("sym")) {
    input.kind = Input::Kind::Symbol;
    input.symbol = input.source = parse_symbol_name(cursor, "a symbol");
  } else if (cursor.accept("opaque")) {
    input.kind = Input::Kind::Opaque;
  } else {
    input.source = parse_declaration(input);
    input.donated = cursor.accept("donated");
  }
  if (cursor.accept("from")) input.source = cursor.quoted("the input's source");
  return input;
}

inline sym::Expr parse_parenthesized_expr(TextCursor& cursor, const ExprRewrite& rewrite = {}) {
  cursor.expect("(");
  sym::Expr e = parse_expr(cursor, ")", rewrite);
  cursor.expect(")");
  return e;
}

template <class View, class Name>
std::string print_view(const View& view, Name name) {
  return fmt::format("view {}: {}{} strides {} offset ({})", name(view.buffer), to_string(view.dtype), print_expr_list(view.sizes),
                     print_expr_list(view.strides), sym::to_string(view.offset));
}
template <class View, class ParseBuffer>
View parse_view(TextCursor& cursor, ParseBuffer parse_buffer) {  // after "view"
  View view;
  view.buffer = parse_buffer(cursor);
  cursor.expect(":");
  view.dtype = parse_dtype(cursor);
  view.sizes = parse_expr_list(cursor);
  cursor.expect("strides");
  view.strides = parse_expr_list(cursor);
  if (view.strides.size() != view.sizes.size()) cursor.fail("as many strides as sizes");
  cursor.expect("offset");
  view.offset = parse_parenthesized_expr(cursor);
  return view;
}
template <class View, class Buffer>
bool is_whole(const View& view, const Buffer& buffer) {
  return view.dtype == buffer.dtype && view.sizes == buffer.sizes && view.strides == buffer.strides && view.offset.is_constant(0);
}

template <class Output, class Name>
std::string print_output(const Output& output, Name name) {
  switch (output.kind) {
    case Output::Kind::Tensor:
      return name(output.buffer);
    case Output::Kind::View:
      return print_view(output.view, name);
    case Output::Kind::Symbol:
      return fmt::format("expr({})", sym::to_string(output.symbol));
    case Output::Kind::None:
      return "none";
  }
  return "";
}
template <class Output, class ParseBuffer>
Output parse_output(TextCursor& cursor, ParseBuffer parse_buffer) {
  Output output;
  if (cursor.accept("none")) {
    output.kind = Output::Kind::None;
  } else if (cursor.accept("expr")) {
    output.kind = Output::Kind::Symbol;
    output.symbol = parse_parenthesized_expr(cursor);
  } else if (cursor.accept("view")) {
    output.kind = Output::Kind::View;
    output.view = parse_view<decltype(output.view)>(cursor, parse_buffer);
  } else {
    output.buffer = parse_buffer(cursor);
  }
  return output;
}
template <class Output, class Name>
std::string print_return(const std::vector<Output>& outputs, Name name) {
  std::vector<std::string> items;
  for (const Output& output : outputs) items.push_back(print_output(output, name));
  return fmt::format("return{}{}", items.empty() ? "" : " ", fmt::join(items, ", "));
}
template <class Output, class ParseBuffer>
void parse_outputs(TextCursor& cursor, std::vector<Output>& outputs, ParseBuffer parse_buffer) {  // after "return"
  if (cursor.looking_at("}")) return;
  do outputs.push_back(parse_output<Output>(cursor, parse_buffer));
  while (cursor.accept(","));
}

// `buffer_of` gives the buffer (with dtype, sizes, strides) that an id names: an operand that is all of it prints as
// its name alone.
template <class View, class ExternCall, class Name, class BufferOf>
std::string print_extern(const ExternCall& call, Name name, BufferOf buffer_of) {
  std::vector<std::string> results, operands;
  for (auto result : call.results) results.push_back(name(result));
  std::string text = results.empty() ? "" : fmt::format("{} = ", fmt::join(results, ", "));
  for (const auto& operand : call.operands) {
    const auto* view = std::get_if<View>(&operand);
    const auto* buffer = view ? buffer_of(view->buffer) : nullptr;
    if (!view)
      operands.push_back(fmt::format("expr({})", sym::to_string(std::get<sym::Expr>(operand))));
    else
      operands.push_back(buffer && is_whole(*view, *buffer) ? name(view->buffer) : print_view(*view, name));
  }
  text += print_call(call, operands);
  if constexpr (requires { call.ordered; })
    if (call.ordered) text += " ordered";
  return text;
}

template <class View, class ExternCall, class ParseBuffer, class BufferOf>
ExternCall parse_extern(TextCursor& cursor, ParseBuffer parse_buffer, BufferOf buffer_of) {
  ExternCall call;
  if (!cursor.looking_at("extern")) {
    do call.results.push_back(parse_buffer(cursor));
    while (cursor.accept(","));
    cursor.expect("=");
  }
  cursor.expect("extern");
  static_cast<Call&>(call) = parse_call(cursor, call.results.size(), [&] {
    cursor.expect("(");
    do {
      if (call.operands.size() >= max_text_items) cursor.fail("fewer operands");
      if (cursor.accept("expr")) {
        call.operands.emplace_back(parse_parenthesized_expr(cursor));
      } else if (cursor.accept("view")) {
        call.operands.emplace_back(parse_view<View>(cursor, parse_buffer));
      } else {
        auto id = parse_buffer(cursor);
        const auto* buffer = buffer_of(id);
        call.operands.emplace_back(View{id, buffer->dtype, buffer->sizes, buffer->strides, 0});
      }
    } while (cursor.accept(","));
    cursor.expect(")");
  });
  if constexpr (requires { call.ordered; }) call.ordered = cursor.accept("ordered");
  return call;
}

}  // namespace cxxinductor

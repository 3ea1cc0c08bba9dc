#include "ir/declared_buffers.h"
#include "ir/loops/region_text.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "ir/program_text.h"
#include "ir/strides.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text), origins_(program_.origins) {}

  Program parse() {
    parse_guarded(cursor_, [&] { parse_program(); });
    require_valid("program", verify(program_));
    return std::move(program_);
  }

 private:
  void parse_program() {
    cursor_.expect("program");
    program_.name = cursor_.sigil_name('@', "the program's name");
    if (cursor_.accept("on")) device_ = parse_device(cursor_);
    cursor_.expect("(");
    if (!cursor_.accept(")")) {
      do parse_input();
      while (cursor_.accept(","));
      cursor_.expect(")");
    }
    parse_where(cursor_, program_.assumptions);
    cursor_.expect("{");
    program_.eager_peaks = parse_eager_peaks(cursor_, device_);
    for (;;) {
      if (program_.buffers.size() >= max_text_items) cursor_.fail("fewer buffers");
      if (cursor_.accept("output"))
        parse_buffer(Buffer::Role::Output);
      else if (cursor_.accept("temporary"))
        parse_buffer(Buffer::Role::Temporary);
      else
        break;
    }
    while (!cursor_.accept("return")) {
      if (program_.steps.size() >= max_text_items) cursor_.fail("fewer steps");
      if (cursor_.looking_at("region"))
        parse_region_step();
      else
        parse_extern();
    }
    parse_outputs(cursor_, program_.outputs, [this](TextCursor& cursor) { return declared_.parse(cursor); });
    cursor_.expect("}");
    if (!cursor_.at_end()) cursor_.fail("the end of the text");
  }

  BufferId parse_buffer(Buffer::Role role) {
    Buffer buffer;
    TextCursor start = cursor_;
    buffer.name = cursor_.sigil_name('@', "a buffer's name");
    buffer.role = role;
    buffer.fixed = role == Buffer::Role::Input;
    buffer.device = device_;
    cursor_.expect(":");
    buffer.dtype = parse_dtype(cursor_);
    buffer.sizes = parse_expr_list(cursor_);
    buffer.strides = row_major_strides(buffer.sizes);
    if (cursor_.accept("strides")) buffer.strides = parse_expr_list(cursor_);
    if (buffer.strides.size() != buffer.sizes.size()) start.fail("as many strides as sizes");
    if (cursor_.accept("fixed"))
      buffer.fixed = true;
    else if (cursor_.accept("flexible"))
      buffer.fixed = false;
    if (cursor_.accept("on")) buffer.device = parse_device(cursor_);
    BufferId id(program_.buffers.size());
    declared_.add(buffer.name, id, start);
    return program_.buffers.push_back(std::move(buffer));
  }

  void parse_input() {
    program_.inputs.push_back(cxxinductor::parse_input<ProgramInput>(cursor_, [this](ProgramInput& input) {
      input.buffer = parse_buffer(Buffer::Role::Input);
      return program_.buffers[input.buffer].name;
    }));
  }

  void parse_region_step() {
    RegionParsing how;
    how.program = &program_;
    how.parse_buffer = [this](TextCursor& cursor) { return declared_.parse(cursor); };
    how.origins = &origins_;
    how.device = device_;
    StatementNames names;
    program_.steps.emplace_back(parse_region(cursor_, how, names));
  }

  void parse_extern() {
    auto call = cxxinductor::parse_extern<View, ExternCall>(
        cursor_, [this](TextCursor& cursor) { return declared_.parse(cursor); }, [this](BufferId id) { return &program_.buffers[id]; });
    call.origin = origins_.parse(cursor_);
    program_.steps.emplace_back(std::move(call));
  }

  TextCursor cursor_;
  Program program_;
  OriginReader origins_;
  Device device_;
  DeclaredBuffers<BufferId> declared_;
};

}  // namespace

Program parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace cxxinductor::loops

// What the interpreters of the three IRs share about arguments, results and calls of externs. Templates, because the
// loops and the plan IR have windows and outputs of the same shape but of different types.
#pragma once

#include "interp/memory.h"
#include "support/error.h"

namespace cxxinductor::interp {

// A value of the graph that is no tensor, as a result or an operand of an extern.
Tensor integer_tensor(int64_t value);

// UserError unless the argument has the dtype and sizes that the program declares.
void check_argument(const Tensor& argument, std::string_view name, DType dtype, const std::vector<int64_t>& sizes);

// Calls the handler with expressions evaluated; checks that there is a tensor for each result and mutated operand. Two
// calls have a meaning of their own: aten::_local_scalar_dense gives the element of its operand as one tensor, for the
// symbol that it defines, and aten::_assert_scalar raises a FailedAssertion where its first argument is 0.
std::vector<Tensor> call_extern(const ExternHandler& externs, const Call& call, const std::vector<Tensor>& operands, const Symbols& symbols, size_t results);

// The symbols that the results of a call define get their values; those must be within the assumptions
// (FailedAssertion).
void define(const std::vector<Definition>& definitions, const sym::Assumptions& assumptions, const std::vector<Tensor>& results, Symbols& symbols);
void define(const std::string& symbol, const sym::Assumptions& assumptions, int64_t value, Symbols& symbols);

// A window that a View of the loops or plan IR opens on a buffer's.
template <class View>
MemRef memref_of(const View& view, const MemRef& buffer, const Symbols& symbols) {
  MemRef memref{buffer.storage, view.dtype, buffer.byte_offset, evaluate(view.sizes, symbols), evaluate(view.strides, symbols)};
  memref.byte_offset += evaluate(view.offset, symbols) * byte_size(buffer.dtype);
  return memref;
}

// Results are stored by `give(result, tensor)`, where buffers may not exist before the call; symbols that the call
// defines have their values by then.
template <class ExternCall, class Give>
void call_extern(const ExternCall& call, const std::vector<MemRef>& buffers, const sym::Assumptions& assumptions, Symbols& symbols,
                 const ExternHandler& externs, Give give) {
  std::vector<Tensor> operands;
  std::vector<MemRef> memrefs(call.operands.size());
  for (size_t i = 0; i < call.operands.size(); ++i) {
    if (const auto* e = std::get_if<sym::Expr>(&call.operands[i])) {
      operands.push_back(integer_tensor(evaluate(*e, symbols)));
      continue;
    }
    const auto& view = std::get<0>(call.operands[i]);
    memrefs[i] = memref_of(view, buffers[view.buffer.index()], symbols);
    operands.push_back(read_tensor(memrefs[i]));
  }
  const std::vector<Tensor> results = call_extern(externs, call, operands, symbols, call.results.size());
  define(call.defines, assumptions, results, symbols);
  for (size_t r = 0; r < call.results.size(); ++r) give(call.results[r], results[r]);
  for (size_t m = 0; m < call.mutated_operands.size(); ++m) write_tensor(memrefs[call.mutated_operands[m]], results[call.results.size() + m]);
}

template <class Output>
Tensor read_output(const Output& output, const std::vector<MemRef>& buffers, const Symbols& symbols) {
  switch (output.kind) {
    case Output::Kind::Tensor:
      return read_tensor(buffers[output.buffer.index()]);
    case Output::Kind::View:
      return read_tensor(memref_of(output.view, buffers[output.view.buffer.index()], symbols));
    case Output::Kind::Symbol:
      return integer_tensor(evaluate(output.symbol, symbols));
    case Output::Kind::None:
      break;
  }
  return integer_tensor(0);
}

// Lays the arguments out in memory as the inputs' strides say. UserError where elements that share an address differ.
template <class Program>
void bind_inputs(const Program& program, const Arguments& arguments, std::vector<MemRef>& buffers) {
  using Input = typename decltype(program.inputs)::value_type;
  size_t next = 0;
  for (const Input& input : program.inputs) {
    if (input.kind != Input::Kind::Tensor) continue;
    if (next == arguments.tensors.size()) throw_user_error("expected more than {} tensor arguments", next);
    const Tensor& argument = arguments.tensors[next++];
    MemRef& memref = buffers[input.buffer.index()];
    const std::string& name = program.buffers[input.buffer].name;
    check_argument(argument, name, memref.dtype, memref.sizes);
    if (is_opaque(memref.dtype)) throw_unsupported("argument {} has dtype {}", name, to_string(memref.dtype));
    allocate(memref, name);
    write_tensor(memref, argument);
    if (read_tensor(memref).elements != argument.elements) throw_user_error("expected equal elements where the strides of argument {} overlap", name);
  }
}

// The value at the end of each input that is marked as written.
template <class Program>
void append_mutated_inputs(const Program& program, const std::vector<bool>& written, const std::vector<MemRef>& buffers, std::vector<Tensor>& results) {
  using Input = typename decltype(program.inputs)::value_type;
  for (const Input& input : program.inputs)
    if (input.kind == Input::Kind::Tensor && written[input.buffer.index()]) results.push_back(read_tensor(buffers[input.buffer.index()]));
}

}  // namespace cxxinductor::interp

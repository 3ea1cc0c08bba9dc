// Programs of the loops IR: buffers with the strides that the program gives them, regions and externs in order.
#include "interp/calls.h"
#include "interp/region_interp.h"

namespace cxxinductor::interp {
namespace {

void mark_written(const loops::Step& step, std::vector<bool>& written) {
  if (const auto* region = std::get_if<loops::Region>(&step)) {
    for (const loops::Access& access : loops::accesses(*region))
      if (access.store) written[access.buffer.index()] = true;
    return;
  }
  const auto& call = std::get<loops::ExternCall>(step);
  for (uint32_t operand : call.mutated_operands) written[std::get<loops::View>(call.operands[operand]).buffer.index()] = true;
}

}  // namespace

std::vector<Tensor> run(const loops::Program& program, const Arguments& arguments, const ExternHandler& externs) {
  Symbols symbols = arguments.symbols;
  RegionMemory memory;
  memory.memrefs.resize(program.buffers.size());
  std::vector<bool> made(program.buffers.size(), false);
  // Buffers whose sizes are known by now.
  const auto make_buffers = [&] {
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const loops::Buffer& buffer = program.buffers[loops::BufferId(b)];
      if (made[b] || !are_known(buffer.sizes, symbols) || !are_known(buffer.strides, symbols)) continue;
      MemRef& memref = memory.memrefs[b];
      memref = {nullptr, buffer.dtype, 0, evaluate(buffer.sizes, symbols), evaluate(buffer.strides, symbols)};
      if (buffer.role != loops::Buffer::Role::Input) allocate(memref, buffer.name);
      made[b] = true;
    }
  };
  make_buffers();
  bind_inputs(program, arguments, memory.memrefs);

  std::vector<bool> written(program.buffers.size(), false);
  for (const loops::Step& step : program.steps) {
    make_buffers();
    mark_written(step, written);
    if (const auto* region = std::get_if<loops::Region>(&step)) {
      run_region(*region, symbols, memory);
      continue;
    }
    const auto& call = std::get<loops::ExternCall>(step);
    call_extern(call, memory.memrefs, program.assumptions, symbols, externs, [&](loops::BufferId result, const Tensor& tensor) {
      make_buffers();
      const MemRef& memref = memory.memrefs[result.index()];
      check_argument(tensor, fmt::format("{} (result of {})", program.buffers[result].name, call.callee), memref.dtype, memref.sizes);
      write_tensor(memref, tensor);
    });
  }

  std::vector<Tensor> results;
  for (const loops::ProgramOutput& output : program.outputs) results.push_back(read_output(output, memory.memrefs, symbols));
  append_mutated_inputs(program, written, memory.memrefs, results);
  return results;
}

}  // namespace cxxinductor::interp

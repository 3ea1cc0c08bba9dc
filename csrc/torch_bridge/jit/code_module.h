// The code of a region as a method of a module, which PyTorch saves and loads.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>

namespace cxxinductor::torch_bridge {

void add_code(const torch::jit::Module& module, torch::jit::Graph& code);
bool has_code(const torch::jit::Module& module);
// A copy without calls of methods. UserError where it reads attributes or gives no tuple, as damaged files may have it.
std::shared_ptr<torch::jit::Graph> read_code(const torch::jit::Module& module);

// What a file gives back of the code. Files have no names of overloads: a call may be of another one there.
std::shared_ptr<torch::jit::Graph> as_loaded(torch::jit::Graph& code);

}  // namespace cxxinductor::torch_bridge

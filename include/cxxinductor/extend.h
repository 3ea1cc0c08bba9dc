// Ops of your own library that the compiler computes in its kernels, fused with what is around them, instead of calling them.
//
//   TORCH_LIBRARY(mylib, m) { m.def("swish(Tensor x, Scalar beta) -> Tensor", &swish); }      // what eager runs
//   cxxinductor::register_op({.overload = "mylib::swish", .arguments = {"x", "beta"},
//                             .cuda = "swish({0}, {1})",
//                             .cuda_source = "template <class T> __device__ T swish(T x, T b) { return x / (T(1) + exp(-b * x)); }",
//                             .definition = "result = mul(x, sigmoid(mul(beta, x)))"});
//
// Registrations hold for the life of the process, for graphs that are compiled afterwards. They are part of the keys of all caches.
#pragma once

#include <cxxinductor/error.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cxxinductor {

enum class OperandTypes : uint8_t { Floating, Integral, Numeric };

// An elementwise op: each element of the result is a function of the operands' elements, which are broadcast and promoted to one dtype. Numbers
// among the operands are not rounded to it.
struct RegisteredOp {
  std::string overload;                // as the dispatcher names it: "mylib::swish", "mylib::swish.Tensor"
  std::vector<std::string> arguments;  // names of the operands, tensors and numbers, in the order of the schema: one to five
  OperandTypes types = OperandTypes::Floating;
  bool transcendental = false;  // costs tens of instructions: fusion then computes it once
  // An expression with {0} {1} ... for the operands, which have the compute type (float for float16 and bfloat16), and {T} for its name.
  // Empty: kernels of that target do not compute the op, and calls of it run as they are.
  std::string cuda, cpu;
  // Functions that the expressions call, in CUDA C++ (marked __device__) and C++ (marked inline). They are compiled into kernels as they stand:
  // register text that you trust, with names that no other text defines.
  std::string cuda_source, cpu_source;
  // Results always have the operands' broadcast sizes, their common dtype (Floating: the default float dtype for integers), and the strides that
  // pointwise ops of PyTorch give them. Recorded functions (compile) and the recorded device know the result before the op runs then, and fuse it;
  // else they call the op. torch.compile asks the op itself, and needs no such promise.
  bool standard_result = false;
  // The meaning, as statements over the operands' names that assign `result` (docs/extend.md): for the interpreter, which option check uses, and
  // for constants. Empty: neither knows it.
  std::string definition;
};

// An op that takes (Tensor, int[] dim, bool keepdim), the last two optional, and returns as many tensors as `results` lists. Texts are those of
// docs/extend.md; merging states has to be associative and commutative, but for rounding.
struct RegisteredReduction {
  std::string overload;
  std::string state, results, start, lift, merge, finish;
  bool order_matters = true;  // the last bits of the result depend on the order of merging
  bool standard_result = false;  // results are contiguous, of the types in `results`, where T is the operand's dtype: see RegisteredOp
};

// A pass of the program's. After a stage of the compiler it gets the text of the form that the stage made (docs/ir.md), and returns it, or the text of
// another form that takes and returns the same. What it returns is parsed and verified: where it is not valid, and where the pass raises, the graph runs
// through ATen, for a reason that names the pass; load and package throw. That kernels stay inside of their tensors is not proved: register passes that
// you trust.
struct RegisteredPass {
  std::string name;   // of letters, digits, '_', '-' and '.'. Options skip_passes and dump ("after:NAME") know it
  std::string stage;  // one that passes may follow on (docs/options.md), such as "graph-passes"
  std::string version;  // a text that changes when what the function does changes: keys of caches contain it
  std::function<std::string(const std::string& text)> function;  // of several threads at once; it compiles nothing
};

// Error::Kind::User where a text is not valid, or the overload is registered with another definition; again with the same one does nothing.
void register_op(const RegisteredOp& op);
void register_reduction(const RegisteredReduction& reduction);

// Passes run in the order of their registration, in graphs that are compiled afterwards. Error::Kind::User where the pass is not valid, or its name is
// registered with another stage or version; again with the same does nothing.
void register_graph_pass(const RegisteredPass& pass);
void unregister_graph_pass(const std::string& name);  // for graphs that are compiled afterwards; does nothing where there is none

}  // namespace cxxinductor

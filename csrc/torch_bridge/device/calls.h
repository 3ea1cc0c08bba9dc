// Calls of a recording: what names them, so that equal recordings are found, and what they are.
#pragma once

#include <ATen/core/function_schema.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "model/call_graph.h"
#include "torch_bridge/device/buffer.h"

namespace cxxinductor::torch_bridge {

// Words of a code. Of an integer or a float among the arguments the word is all: the number is in a list of its own.
enum CodeWord : int64_t {
  None,
  Operand,  // value
  Scalar,   // what follows: a tensor made of a number
  Integer,
  Integers,  // how many
  Enum,      // value
  Bool,      // value
  Real,
  Complex,  // two values
  Text,     // how many letters, and they
  List,     // how many items, and they
  DeviceWord,
  FixedReals,  // how many, and their bits: those of the call before, on which the metadata of its results depends
  Input,       // dtype, rank; on the backing device
  CpuInput,    // likewise
  Call         // OpInfo, arguments
};

// Ops, operand numbers, dtypes and other arguments; beside them sizes and integers, and floats, in the order of the calls.
struct CallCode {
  std::vector<int64_t> words, numbers;
  std::vector<double> reals;

  void clear() {
    words.clear();
    numbers.clear();
    reals.clear();
  }
};

struct RecordedCalls {
  // Where each call ends in `code`, and how many values there are then.
  struct End {
    size_t words = 0, numbers = 0, reals = 0, values = 0;
    bool has_fixed_reals = false;
  };
  // Of a value. memory: the value that is the base of its storage. None: no tensor. number: a size, no tensor either.
  struct Value {
    Form form;
    uint32_t memory = 0;
    bool is_none = false;
    std::optional<int64_t> number;
  };

  CallCode code;
  std::vector<End> ends;
  std::vector<Value> values;
  model::CallGraph graph;  // without outputs

  // The first calls alone, with these floats.
  RecordedCalls prefix(size_t count, std::vector<double> reals) const;
};

// Positions in code.numbers of the integers among arguments: the others are sizes and strides of inputs.
std::vector<size_t> integer_arguments(const CallCode& code);

// Where a number stands among the arguments of a call, which leaves those out at the end that are defaults.
class NumberSlot {
 public:
  NumberSlot(model::Call* call, const c10::Argument* formal, Arg* arg) : call_(call), formal_(formal), arg_(arg) {}
  // Leaves out a float that is the default.
  void set(double number) const;
  void set(Arg number) const;

 private:
  model::Call* const call_;
  const c10::Argument* const formal_;  // null: of an item of a list
  Arg* const arg_;                     // null: left out
};

// Visits the integers and floats among the arguments of the calls with their positions in code.numbers and code.reals.
using NumberVisitor = std::function<void(size_t position, const NumberSlot& slot)>;
void for_each_number(const CallCode& code, std::vector<model::Call>& calls, const NumberVisitor& integer, const NumberVisitor& real);

}  // namespace cxxinductor::torch_bridge

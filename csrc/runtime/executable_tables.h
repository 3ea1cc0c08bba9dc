// What Executable works out once from a plan: slots of one flat sym::Program, buffer numbers, prebuilt steps. Internal
// to the runtime. All slots index the call's workspace of int64 values; all lists that a call walks are contiguous.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/host.h"
#include "support/error.h"
#include "sym/program.h"

namespace cxxinductor::runtime {

using Slot = uint32_t;

// A symbol that a step defines: by a size or stride of a result, or (result < 0) by a value, as in Definition.
struct DefinitionRecord {
  Slot slot;
  int result, dim;
  sym::Interval range;
  int64_t divisor = 1;
};

// What a step that defines symbols makes known. Moments are numbered as times of the program are; moment 0 is that of
// the inputs, which SymbolBindings give.
struct MomentRecord {
  std::vector<DefinitionRecord> definitions;
  std::vector<uint32_t> conditions;  // in Tables::conditions: what is asked once these symbols are known, and not before
};

struct SymbolBinding {
  Slot slot;
  uint32_t input;
  int dim;        // as in plan::SymbolSource
  uint32_t rank;  // declared rank of that input
  sym::Interval range;
  int64_t divisor = 1;
};

// Sizes, then strides: 2 * rank slots from `first` in Tables::dims.
struct Geometry {
  uint32_t first = 0;
  uint32_t rank = 0;
};

struct BufferRecord {
  plan::Buffer::Kind kind;
  DType dtype;
  Device device;
  Geometry geometry;
  Slot arena_offset = 0;  // of an Arena buffer
  Slot bytes = 0;
  uint32_t slices_first = 0, slices_count = 0;  // of an Arena or Standalone buffer: what lies in it, in Tables::slices
};

struct ArenaRecord {
  Device device;
  Slot bytes;
  std::vector<uint32_t> buffers;
};

struct SliceRecord {
  uint32_t buffer;
  Slot offset;  // in elements, from the first of the Arena or Standalone buffer that it lies in
};

// A launch with the kernel of a specialization, for calls in which Tables::conditions[condition] holds.
struct SpecialLaunch {
  uint32_t condition;
  uint32_t launch;  // in Tables::launches
};

struct LaunchRecord {
  uint32_t kernel;
  std::vector<uint32_t> args;  // buffers
  std::vector<Slot> symbols;
  std::vector<uint32_t> aligned_args;  // positions whose address decides whether the vectorised variant may run
  std::vector<bool> written;           // by position
  Slot grid_x, grid_y, index_limit;
  bool checks_index_limit;
  int stream;  // in Tables::stream_devices; -1: a CPU kernel
  std::vector<SpecialLaunch> specializations;
};

// A symbol's value is in the range and a multiple of the divisor.
struct Property {
  Slot symbol;
  sym::Interval range;
  int64_t divisor = 1;
};

// Launches [first, first + count) of Tables::launches, all of one kernel.
struct GroupedLaunchRecord {
  uint32_t first, count;
};

struct OperandRecord {
  bool is_tensor;
  Slot integer = 0;
  uint32_t buffer = 0;
  DType dtype = DType::F32;
  Geometry geometry;
  Slot offset = 0;
  bool whole = false;
};

struct ExternRecord {
  std::unique_ptr<ExternCallee> callee;
  std::string name;
  std::vector<OperandRecord> operands;
  std::vector<int64_t> results;  // buffers; -1: not wanted
  std::vector<bool> result_aliases;
  // No kernel touches the result: the op decides on which device it is (attention keeps its random state on the CPU,
  // while its metadata says CUDA).
  std::vector<bool> result_on_any_device;
  bool planned_out;
  uint32_t moment = 0;  // what its results define
};

struct ReadRecord {
  OperandRecord from;
  uint32_t moment;
};

struct AssertRecord {
  Slot condition;
  std::string message;
};

struct ReuseRecord {
  uint32_t from, to;  // buffers
  Slot bytes;
};

struct StepRecord {
  enum class Kind : uint8_t { Allocate, Free, Reuse, Launch, GroupedLaunch, Extern, Read, Assert };
  Kind kind;
  uint32_t index;                                   // Allocate, Free: the buffer; else into the list of its kind
  uint32_t releases_first = 0, releases_count = 0;  // inputs that nobody reads after this step, in Tables::releases
  uint32_t arenas_first = 0, arenas_count = 0;      // allocated before this step, in Tables::arenas
};

struct OutputRecord {
  plan::Output::Kind kind;
  uint32_t buffer = 0;
  bool last_use = false;  // Tensor: no later output needs the buffer: it is moved
  DType dtype = DType::F32;
  Geometry geometry;
  Slot offset = 0;
  Slot symbol = 0;
};

struct Tables {
  sym::Program program;
  std::vector<SymbolBinding> bindings;
  std::vector<Slot> dims;
  std::vector<BufferRecord> buffers;
  std::vector<SliceRecord> slices;
  std::vector<int64_t> input_buffers;   // for each plan input: buffer, or -1
  std::vector<bool> donated_inputs;     // for each plan input
  std::vector<uint32_t> unused_inputs;  // buffers released before the first step
  std::vector<uint32_t> releases;
  std::vector<StepRecord> steps;
  std::vector<ReuseRecord> reuses;
  std::vector<LaunchRecord> launches;
  std::vector<std::vector<Property>> conditions;  // asked once a call
  std::vector<MomentRecord> moments;
  std::vector<GroupedLaunchRecord> grouped_launches;
  std::vector<ExternRecord> externs;
  std::vector<ReadRecord> reads;
  std::vector<AssertRecord> assertions;
  std::vector<OutputRecord> outputs;
  std::vector<ArenaRecord> arenas;     // in the order of their first uses
  std::vector<Device> stream_devices;  // GPUs that kernels and library calls run on
  // Largest needs of one step, for the call's scratch memory.
  size_t most_args = 0, most_symbols = 0, most_launches = 0, most_operands = 0, most_results = 0, most_dims = 0;
};

// `plan` must outlive the tables (callees refer to its calls). InternalError when the plan breaks an invariant.
Tables build_tables(const plan::Plan& plan, Host& host);

// UserError naming the input, what was expected and what was found. Runs before the symbols are bound.
void check_ranks_and_types(const plan::Plan& plan, const std::vector<Value>& inputs);
// Ranges of symbols, and that every place that gives a symbol agrees; needs the symbols in the workspace.
void check_symbols(const plan::Plan& plan, const Tables& tables, const std::vector<Value>& inputs, std::span<const int64_t> values);
// Sizes and strides, once the workspace holds all values.
void check_geometry(const plan::Plan& plan, const Tables& tables, const std::vector<Value>& inputs, std::span<const int64_t> values);

// Why a value that a step found for a symbol cannot be: it is outside what the plan was made for.
[[noreturn]] void reject_definition(const std::string& symbol, const DefinitionRecord& definition, int64_t value);

// What an extern returned is not what the plan expects. is_data: the sizes expected are, so that the program may be at fault.
[[noreturn]] void reject_result(const ExternRecord& record, size_t index, const TensorRef& result, const BufferRecord& declared, std::span<const int64_t> sizes,
                                bool is_data);
// Likewise for a result that has to be an alias.
[[noreturn]] void reject_strides(const ExternRecord& record, size_t index, const TensorRef& result, std::span<const int64_t> strides);

// Names of the inputs that the steps up to this one write, the step itself included: "x, y".
std::string written_inputs(const plan::Plan& plan, size_t step);
// " (at step 3 of 12, ...; these inputs had been written: x)" for an error raised by a step.
std::string describe_failed_step(const plan::Plan& plan, size_t step);
// The error that a step raised, of its kind, with that text.
[[noreturn]] void rethrow_with_step(const Error& error, const plan::Plan& plan, size_t step);

}  // namespace cxxinductor::runtime

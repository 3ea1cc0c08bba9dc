// Creation of tensors: dtype, device and sizes are in the reader's metadata.
#include <cmath>

#include "frontend/aten_table.h"
#include "frontend/pointwise.h"

namespace cxxinductor::frontend {
namespace {

std::vector<ValueId> filled(CallContext& context, Operand value) {
  const CallValueInfo& result = context.result();
  return {context.build.full(std::move(value), result.dtype, result.device, result.sizes)};
}

Results import_constant(CallContext& context, double value) { return filled(context, Operand(immediate_real(context.result().dtype, value))); }

std::vector<ValueId> spread(CallContext& context, ValueId number) {
  const ValueId source = context.build.cast(number, context.result().dtype);
  return {context.build.elementwise(ScalarOp::Identity, {context.build.expand(source, context.result().sizes)})};
}

Results filled(CallContext& context, const ScalarArg& number) {
  const DType dtype = context.result().dtype;
  const auto operand = number_operand(context, number, dtype);
  if (!operand || !may_fill(dtype, number)) return std::nullopt;
  const auto* value = std::get_if<ValueId>(&*operand);
  return value != nullptr ? spread(context, *value) : filled(context, *operand);
}

Results import_full(CallContext& context, size_t position) {
  const auto value = context.scalar_arg(position, position == 0 ? "s" : "fill_value");
  return value ? filled(context, *value) : std::nullopt;
}

// fill(self, value) with a rank-0 tensor.
Results import_fill_tensor(CallContext& context) {
  const auto value = term(context, 1, "value");
  if (!value) return std::nullopt;
  if (const ScalarArg* number = scalar_arg_of(*value)) return filled(context, *number);
  const auto given = context.on_device_of_result(std::get<ValueId>(*value));
  return given ? Results(spread(context, *given)) : std::nullopt;
}

// start + step * i. Integers exactly; floats in the accumulate type when both are whole, else as a call.
Results arange(CallContext& context, sym::Expr start, sym::Expr step) {
  const CallValueInfo& result = context.result();
  if (result.sizes.size() != 1) return std::nullopt;
  const ValueId counted = context.build.iota(start, step, result.sizes.front(), DType::I64, result.device);
  return std::vector{context.build.cast(counted, result.dtype)};
}

std::optional<sym::Expr> whole(const CallContext& context, size_t position, std::string_view name, sym::Expr otherwise) {
  const Arg* arg = context.find(position, name);
  if (arg == nullptr) return otherwise;
  const auto number = context.scalar_arg(position, name);
  if (!number) return std::nullopt;
  if (const auto* symbol = std::get_if<sym::Expr>(&*number)) return *symbol;
  const double value = *constant_real(*number);
  if (std::trunc(value) != value || std::abs(value) > 0x1p53)
    return context.decline("floats that are not whole numbers, which ATen's kernel rounds in an order of its own");
  return sym::Expr(static_cast<int64_t>(value));
}

Results import_arange(CallContext& context) { return arange(context, 0, 1); }

Results import_arange_start(CallContext& context) {
  const auto start = whole(context, 0, "start", 0), step = whole(context, 2, "step", 1);
  return start && step ? arange(context, *start, *step) : std::nullopt;
}

// prims::iota(length, start=, step=)
Results import_iota(CallContext& context) {
  const auto start = whole(context, 1, "start", 0), step = whole(context, 2, "step", 1);
  return start && step ? arange(context, *start, *step) : std::nullopt;
}

}  // namespace

void add_creation_rows(ImportTable& table) {
  const auto add = [&table](std::initializer_list<const char*> names, const Importer& importer) {
    for (const char* name : names) table.emplace(name, ImportRow{importer, Accepts::Copies});
  };
  add({"aten::zeros", "aten::zeros_like", "aten::new_zeros"}, [](CallContext& c) { return import_constant(c, 0); });
  add({"aten::ones", "aten::ones_like", "aten::new_ones"}, [](CallContext& c) { return import_constant(c, 1); });
  const auto add_full = [&table](const char* name, size_t position) {
    table.emplace(name,
                  ImportRow{.importer = [position](CallContext& c) { return import_full(c, position); }, .accepts = Accepts::Copies, .given_reals = true});
  };
  for (const char* name : {"aten::full", "aten::full_like", "aten::fill.Scalar"}) add_full(name, 1);
  add_full("aten::new_full", 2);
  add_full("aten::scalar_tensor", 0);
  table.emplace("aten::fill.Tensor", ImportRow{.importer = import_fill_tensor, .accepts = Accepts::Copies, .host_constants = true});
  add({"aten::arange"}, import_arange);
  add({"aten::arange.start"}, [](CallContext& c) {
    const auto start = whole(c, 0, "start", 0);
    return start ? arange(c, *start, 1) : Results();
  });
  add({"aten::arange.start_step"}, import_arange_start);
  add({"prims::iota"}, import_iota);
}

}  // namespace cxxinductor::frontend

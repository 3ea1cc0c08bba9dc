#include "ir/call_args.h"

#include <fmt/format.h>

#include "ir/scalar.h"
#include "ir/text_parts.h"

namespace cxxinductor {
namespace {

struct Printer {
  const OperandSpelling& spell;

  std::string operator()(None) const { return "none"; }
  std::string operator()(OperandRef ref) const { return spell(ref); }
  std::string operator()(sym::Expr e) const { return fmt::format("expr({})", sym::to_string(e)); }
  std::string operator()(int64_t i) const { return fmt::format("{}", i); }
  std::string operator()(double d) const { return to_string(Scalar::from_real(DType::F64, d)); }
  std::string operator()(std::complex<double> z) const { return fmt::format("complex({}, {})", (*this)(z.real()), (*this)(z.imag())); }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(const std::string& s) const { return quote(s); }
  std::string operator()(DType dtype) const { return std::string(to_string(dtype)); }
  std::string operator()(Device device) const { return fmt::format("device({})", to_string(device)); }
  std::string operator()(LayoutArg layout) const { return fmt::format("layout({})", layout.torch_layout); }
  std::string operator()(MemoryFormatArg format) const { return fmt::format("memory_format({})", format.torch_memory_format); }
  std::string operator()(Handle handle) const { return fmt::format("handle({})", handle.index); }
  std::string operator()(const ArgList& list) const {
    std::string text = "[";
    for (const Arg& item : list) text += (text.size() > 1 ? ", " : "") + std::visit(*this, item.value);
    return text + "]";
  }
};

}  // namespace

std::string to_string(const Arg& arg, const OperandSpelling& spell) { return std::visit(Printer{spell}, arg.value); }

std::string to_string(const Arg& arg) {
  return to_string(arg, [](OperandRef ref) { return fmt::format("${}", ref.operand); });
}

}  // namespace cxxinductor

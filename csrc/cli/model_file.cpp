#include "cli/model_file.h"

#include <fmt/ranges.h>

#include "api/model_source.h"
#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/types.h"

namespace cxxinductor::cli {

ModelFile read_model(const std::string& path) {
  api::ModelSource source = api::read_model(path, Options(), false);
  return {std::move(source.bytes), std::move(source.program)};
}

Options library_options(const Arguments& arguments) {
  Options options = options_from_environment();
  for (const std::string& text : arguments.options) {
    const size_t equals = text.find('=');
    if (equals == text.npos) throw_user_error("--option: expected name=value, found '{}'", text);
    set_option(options, text.substr(0, equals), text.substr(equals + 1));
  }
  return options;
}

std::string size_text(int64_t bytes) { return bytes >= 10'000 ? fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6) : fmt::format("{} bytes", bytes); }

std::string value_text(const c10::IValue& value) {
  if (!value.isTensor()) return c10::str(value);
  const at::Tensor& tensor = value.toTensor();
  return fmt::format("{}[{}] on {}", to_string(torch_bridge::from_torch(tensor.scalar_type())), fmt::join(tensor.sizes(), ", "), tensor.device().str());
}

}  // namespace cxxinductor::cli

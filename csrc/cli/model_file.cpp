#include "cli/model_file.h"

#include <fmt/ranges.h>

#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/types.h"

namespace cxxinductor::cli {

ModelFile read_model(const std::string& path) {
  torch_bridge::check_process();
  ModelFile file{api::map_file(path), {}};
  file.program = readers::read_pt2(file.bytes.span, torch_bridge::DispatcherSchemas());
  return file;
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

std::string size_text(int64_t bytes) {
  return bytes >= 10'000 ? fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6) : fmt::format("{} bytes", bytes);
}

std::string value_text(const c10::IValue& value) {
  if (!value.isTensor()) return c10::str(value);
  const at::Tensor& tensor = value.toTensor();
  return fmt::format("{}[{}] on {}", to_string(torch_bridge::from_torch(tensor.scalar_type())), fmt::join(tensor.sizes(), ", "),
                     tensor.device().str());
}

}  // namespace cxxinductor::cli

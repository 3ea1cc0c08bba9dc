#include "support/text_writer.h"

#include <iterator>

namespace cxxinductor {

void TextWriter::formatted_line(fmt::string_view format, fmt::format_args args) {
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
  fmt::vformat_to(std::back_inserter(text_), format, args);
  text_.push_back('\n');
}

}  // namespace cxxinductor

// An error at a position of a text; thrown by TextCursor.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "support/error.h"

namespace cxxinductor {

class TextError : public UserError {
 public:
  // position: "line 3, column 7".
  TextError(const std::string& place, std::string reason) : UserError(fmt::format("{}: {}", place, reason)), reason_(std::move(reason)) {}
  const std::string& reason() const { return reason_; }  // the message without the position

 private:
  std::string reason_;
};

}  // namespace cxxinductor

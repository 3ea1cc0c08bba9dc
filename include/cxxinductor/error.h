// What the library throws, whatever went wrong. Exceptions of PyTorch's and of custom ops pass through unchanged.
#pragma once

#include <stdexcept>
#include <string>

namespace cxxinductor {

class Error : public std::runtime_error {
 public:
  enum class Kind {
    User,         // what was passed is wrong; the message says what was expected, what was found, what to do
    Unsupported,  // the model has what this version cannot read or compile; the message names it
    Assertion,    // what the model asserts does not hold for the data of this call
    Internal,     // a bug of this library
  };

  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

}  // namespace cxxinductor
